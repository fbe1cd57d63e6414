"""The command `cfgd`, also as `python -m cfgd`."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from cfgd.apps.cli import app
    except ModuleNotFoundError as error:
        needed = f"The command cfgd needs {error.name}: pip install 'cfgd[cli]'."
        sys.exit(needed)
    app()


if __name__ == "__main__":
    main()
