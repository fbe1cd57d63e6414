"""`cfgd bench --fractional` on the console; arguments are checked before JAX is imported."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cfgd._core.extras import import_extra
from cfgd.apps.bench.progress import progress_bar

DEFAULT_SEEDS, TUNING_SEEDS = 5, 2


def show_fractional(
    console: Console,
    out: Path,
    *,
    only: list[str],
    seeds: int | None,
    quick: bool,
    data: Path | None,
    resume: bool,
    rule: str | None = None,
    seconds: float | None = None,
) -> int:
    """Run the comparison, print its summary and return the exit code."""
    if seconds is not None:
        raise ValueError(
            "--seconds applies to the group pinn; it cannot be used with --fractional."
        )
    for module in ("optax", "sklearn"):
        import_extra(module, "`cfgd bench --fractional`", "bench")
    from cfgd.apps.bench.fractional import competitors, own_rule, problems, report, runner
    from cfgd.apps.bench.fractional.conclusions import Comparison, sentences
    from cfgd.apps.data import gas

    found = problems.problems(quick, None if data is None else gas.read(data))
    groups = list(dict.fromkeys(one.group for one in found))
    unknown = [name for name in only if name not in groups]
    if unknown:
        known = ", ".join(groups)
        raise ValueError(
            f"There is no group {unknown[0]!r}; the groups of --fractional are {known}."
        )
    rules = [*competitors.RULES, *competitors.BASELINES]
    if rule is not None:
        rules.append(own_rule.read_rule(rule))
    if quick:
        rules = [competitors.thinned(one) for one in rules]
    if data is None:
        console.print(
            "The problem 'gas' is skipped: it needs the data file, given by --data FILE.",
            highlight=False,
        )
    plan = runner.FractionalPlan(
        [one for one in found if not only or one.group in only],
        rules,
        seeds or DEFAULT_SEEDS,
        TUNING_SEEDS,
        quick,
    )
    runner.check_files(out, plan)
    with progress_bar(console, len(plan.problems)) as progress:
        results = runner.run_plan(out, plan, resume=resume, progress=progress)
    comparison = Comparison.of(plan.problems, plan.competitors, results.results)
    for sentence in sentences(comparison):
        console.print(sentence, highlight=False)
    if results.end.write_error is None:
        console.print(
            " and ".join(str(out.resolve() / name) for name in report.FILES), soft_wrap=True
        )
    results.end.show(console)
    return results.end.exit_code()
