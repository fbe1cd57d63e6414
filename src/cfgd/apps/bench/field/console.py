"""`cfgd bench` on the console: progress, tables, goals, and the paths of the files."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cfgd.apps.bench.field import cutest, pinn
from cfgd.apps.bench.field.claims import check_claims
from cfgd.apps.bench.field.groups import BenchOptions, make_instances, select_groups
from cfgd.apps.bench.field.runner import BenchReport, check_files, run_instances
from cfgd.apps.bench.field.summary import summarize
from cfgd.apps.bench.field.tables import LINE_GROUPS, error_table, line_table, section_table
from cfgd.apps.bench.progress import progress_bar
from cfgd.apps.data import gas

DEFAULT_SEEDS = {True: 1, False: 5}  # with and without --quick


def show(
    console: Console,
    out: Path,
    *,
    only: list[str],
    seeds: int | None,
    quick: bool,
    data: Path | None,
    resume: bool,
    seconds: float | None = None,
) -> int:
    """Run the benchmark, print its tables and return the exit code."""
    from threadpoolctl import threadpool_limits

    names, notices = select_groups(only, quick)
    gas_data = gas.read(data) if data is not None else gas.cached()
    if "least-squares" in names and gas_data is None:
        notices.append(
            "The problem 'gas' is skipped: it needs --data FILE, or the copy that"
            " `cfgd reproduce uci` caches."
        )
    for notice in notices:
        console.print(notice, highlight=False)
    check_files(out, [])  # fails before the imports, which take up to a minute
    if set(cutest.KINDS) & set(names):
        console.print("Loading the problems of CUTEst (about a minute).", highlight=False)
    options = BenchOptions(quick, seeds or DEFAULT_SEEDS[quick], gas_data, seconds)
    instances = make_instances(names, options)
    check_files(out, instances)
    # All solvers get one thread of BLAS and OpenMP: on a machine in use, two threads that wait for
    # each other take up to a hundred times as long.
    with threadpool_limits(1), progress_bar(console, len(instances)) as progress:
        report = run_instances(out, instances, quick=quick, resume=resume, progress=progress)
    show_report(console, out, report)
    return report.end.exit_code()


def show_report(console: Console, out: Path, report: BenchReport) -> None:
    """Print the tables, the goals and the paths of the files."""
    for group in LINE_GROUPS:
        if any(run.group == group for run in report.runs):
            console.print(line_table(report.runs, group))
    summaries = [one for one in summarize(report.runs) if one.group not in LINE_GROUPS]
    errors = [one for one in summaries if one.group == pinn.GROUP]
    others = [one for one in summaries if one.group != pinn.GROUP]
    if others:
        console.print(section_table(others, console.width))
    if errors:
        console.print(error_table(errors, console.width))
    for sentence in check_claims(report.runs):
        console.print(sentence, highlight=False)
    if report.end.write_error is None:
        paths = [out.resolve() / name for name in ("bench.json", "bench.png", "pinn.png")]
        console.print(" and ".join(str(path) for path in paths if path.exists()), soft_wrap=True)
    report.end.show(console)
