"""What `cfgd bench` shows on the console: progress, the tables, and where they were written."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cfgd._core.files import INTERRUPTED
from cfgd.apps.bench.field.groups import Choice, chosen, instances
from cfgd.apps.bench.field.instance import Instance
from cfgd.apps.bench.field.runner import Report, check_files, run
from cfgd.apps.bench.field.standing import table
from cfgd.apps.bench.field.tables import BY_LINE, by_line, by_section
from cfgd.apps.bench.field.verdicts import verdicts
from cfgd.apps.bench.progress import show_files, watched
from cfgd.apps.data import gas

SEEDS = {True: 1, False: 5}  # where none are asked for, quick or not


def show(
    console: Console,
    out: Path,
    *,
    only: list[str],
    seeds: int | None,
    quick: bool,
    data: Path | None,
    resume: bool,
) -> int:
    """Run with progress, print the tables and where they were written; the exit code."""
    from threadpoolctl import threadpool_limits

    names, left_out = chosen(only, quick)
    found = gas.read(data) if data is not None else gas.cached()
    if "least-squares" in names and found is None:
        left_out.append("The gas data are left out: they are not there; --data gives them.")
    for said in left_out:
        console.print(said, highlight=False)
    check_files(out, [])  # before a minute of imports
    if "cutest" in names:
        console.print("The problems of CUTEst are read, which takes a minute.", highlight=False)
    problems = instances(names, Choice(quick, seeds or SEEDS[quick], found))
    # one thread of BLAS and OpenMP for everyone: two of them that wait for one another, while
    # somebody else uses the machine, take up to a hundred times as long
    with threadpool_limits(1):
        report = _run(console, out, problems, quick, resume)
    show_report(console, out, report)
    if report.unwritten is not None:
        raise report.unwritten
    return INTERRUPTED if report.interrupted else 0


def _run(console: Console, out: Path, found: list[Instance], quick: bool, resume: bool) -> Report:
    check_files(out, found)
    with watched(console, len(found)) as watch:

        def name(one: Instance) -> str:
            return f"{one.group}: {one.problem}, {one.seed}"

        return run(
            out,
            found,
            quick=quick,
            resume=resume,
            say=lambda one, what: watch.say(f"{name(one)}: {what}"),
            finished=lambda one, reused: watch.finished(name(one), reused),
            warn=watch.warn,
        )


def show_report(console: Console, out: Path, report: Report) -> None:
    for group in BY_LINE:
        if any(one.group == group for one in report.runs):
            console.print(by_line(report.runs, group))
    sections = [one for one in table(report.runs) if one.group not in BY_LINE]
    if sections:
        console.print(by_section(sections, console.width))
    for verdict in verdicts(report.runs):
        console.print(verdict, highlight=False)
    where = out.resolve()
    files = [str(where / name) for name in ("bench.json", "bench.png")]
    show_files(console, files, report.interrupted, report.unwritten is not None)
