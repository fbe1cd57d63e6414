"""The command `cfgd`, also as `python -m cfgd`."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # the exit code of a command that Ctrl-C ended: 128 and the number of SIGINT


def main() -> None:
    """Run the command line, or say which library it needs."""
    try:
        from cfgd.apps.cli import app
    except ModuleNotFoundError as error:
        sys.exit(f"The command cfgd needs {error.name}: pip install 'cfgd[cli]'.")
    try:
        app()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("Interrupted by Ctrl-C.", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
