"""The command `cfgd` without the libraries of its command line: help, version and explorer."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Sequence
from pathlib import Path

from cfgd._core.extras import install_command
from cfgd._core.files import NotWrittenError

COMMANDS = ("reproduce", "bench", "fit", "predict", "launch")  # those that need libraries


def main(arguments: Sequence[str], missing: str | None) -> int:
    """Run `cfgd` and return the exit code; `missing` is the library that was not found."""
    if arguments and arguments[0] in COMMANDS:
        extra = "fit" if arguments[0] in ("fit", "predict") else "cli"
        print(f"`cfgd {arguments[0]}` needs {missing}: {install_command(extra)}.", file=sys.stderr)
        return 2
    options = _parser().parse_args(arguments or ["--help"])
    from cfgd.apps.explore.console import show_explorer

    try:
        return show_explorer(options.out, options.open)
    except (ValueError, NotWrittenError) as error:
        print(f"cfgd: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    needing = ", ".join(COMMANDS)
    parser = argparse.ArgumentParser(
        prog="cfgd",
        description="Caputo fractional gradient descent: gradient descent with a memory.",
        epilog=f"The commands {needing} need more libraries: {install_command('fit')}.",
    )
    version = f"cfgd {importlib.metadata.version('cfgd')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    summary = "explore fractional gradients on an interactive page"
    explore = commands.add_parser("explore", help=summary, description=summary)
    explore.add_argument("--out", metavar="FILE", type=Path, default=Path("explorer.html"))
    explore.add_argument("--open", action=argparse.BooleanOptionalAction, default=True)
    return parser
