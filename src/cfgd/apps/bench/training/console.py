"""`cfgd bench --training`: what is asked for is looked at before anything is loaded or trained."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cfgd._core.extras import import_extra

SEEDS = {True: 2, False: 5}  # where none are asked for, quick or not
WHO = "`cfgd bench --training`"


def show_training(
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
    if data is not None:
        raise ValueError("--data is the gas data of `cfgd bench`: --training has no use for it.")
    for module in ("optax", "sklearn"):
        import_extra(module, WHO, "bench")
    # these need optax
    from cfgd.apps.bench.training import catalogue, optimizers
    from cfgd.apps.bench.training.progress import show
    from cfgd.apps.bench.training.runner import Plan

    plan = Plan(
        catalogue.chosen(only, quick),
        optimizers.optimizers(quick),
        optimizers.RATES,
        seeds or SEEDS[quick],
        quick,
    )
    if quick:
        left = "half of the steps" if only else "three of five problems, half of the steps"
        console.print(f"--quick leaves out {left}, the longer lag and cfadamw.", highlight=False)
    return show(console, out, plan, resume)
