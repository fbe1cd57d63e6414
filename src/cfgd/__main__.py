"""The command `cfgd`, also as `python -m cfgd`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say which library it needs."""
    try:
        from cfgd.apps.cli import app
    except ModuleNotFoundError as error:
        sys.exit(f"The command cfgd needs {error.name}: pip install 'cfgd[cli]'.")
    app()


if __name__ == "__main__":
    main()
