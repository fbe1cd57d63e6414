"""`cfgd bench --training` on the console; arguments are checked before JAX is imported."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cfgd._core.extras import import_extra
from cfgd.apps.bench.progress import progress_bar

DEFAULT_SEEDS = {True: 2, False: 5}  # with and without --quick
COMMAND = "`cfgd bench --training`"


def show_training(
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
    """Train, print the tables and the paths of the files, and return the exit code."""
    if data is not None:
        raise ValueError("--data is the file of the gas data; it cannot be used with --training.")
    if seconds is not None:
        raise ValueError("--seconds applies to the group pinn; it cannot be used with --training.")
    for module in ("optax", "sklearn"):
        import_extra(module, COMMAND, "bench")
    # these need optax
    from cfgd.apps.bench.training import catalogue, comparison, optimizers, report, runner

    plan = runner.TrainingPlan(
        catalogue.select_problems(only, quick),
        optimizers.optimizers(quick),
        optimizers.RATES,
        seeds or DEFAULT_SEEDS[quick],
        quick,
    )
    if quick:
        skipped = "" if only else "three of five problems, "
        console.print(
            f"--quick runs half of the steps, and skips {skipped}lag 5 and cfadamw.",
            highlight=False,
        )
    runner.check_files(out, plan)
    with progress_bar(console, plan.runs) as progress:
        results = runner.run_plan(out, plan, resume=resume, progress=progress)
    for table in report.tables(plan.problems, results.summaries):
        console.print(table)
    for sentence in comparison.conclusions(results.summaries):
        console.print(sentence, highlight=False)
    if results.end.write_error is None:
        paths = [str(out.resolve() / name) for name in runner.FILES]
        console.print(" and ".join(paths), soft_wrap=True)
    results.end.show(console)
    return results.end.exit_code()
