"""What is seen of a run: progress, the tables, and where they were written."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cfgd._core.files import INTERRUPTED
from cfgd.apps.bench.progress import show_files, watched
from cfgd.apps.bench.training.report import tables
from cfgd.apps.bench.training.runner import FILES, Plan, check_files, run
from cfgd.apps.bench.training.verdicts import verdicts


def show(console: Console, out: Path, plan: Plan, resume: bool) -> int:
    """The exit code; what could not be written is raised after the tables."""
    check_files(out, plan)
    with watched(console, plan.runs) as watch:
        report = run(
            out, plan, resume=resume, say=watch.say, finished=watch.finished, warn=watch.warn
        )
    for shown in tables(plan.problems, report.standings):
        console.print(shown)
    for verdict in verdicts(report.standings):
        console.print(verdict, highlight=False)
    files = [str(out.resolve() / name) for name in FILES]
    show_files(console, files, report.interrupted, report.unwritten is not None)
    if report.unwritten is not None:
        raise report.unwritten
    return INTERRUPTED if report.interrupted else 0
