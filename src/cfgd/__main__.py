"""The command `cfgd`, also as `python -m cfgd`."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # the exit code of a command that Ctrl-C ended: 128 and the number of SIGINT


def main() -> None:
    """Run the command line, or what of it needs no extra."""
    try:
        from cfgd.apps.cli import app
    except ModuleNotFoundError as error:
        from cfgd.apps import without_extras

        sys.exit(without_extras.main(sys.argv[1:], error.name))
    try:
        app()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("Interrupted by Ctrl-C.", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
