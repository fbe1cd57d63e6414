"""The tables of `cfgd bench --training`: the same rows in training.md and on the console."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from cfgd.apps.bench.training.comparison import (
    EQUAL,
    GRADIENTS,
    SECONDS,
    STEPS,
    GammaLagRatios,
    OptimizerSummary,
    Quartiles,
    compare,
    conclusions,
    gamma_lag_ratios,
)
from cfgd.apps.bench.training.optimizers import (
    BASES,
    HESSIAN_PRODUCT_COST,
    MOMENTUM,
    RATES,
    Optimizer,
)
from cfgd.apps.bench.training.problem import TrainingProblem

HEAD = (
    "optimizer",
    "rate",
    "loss, equal gradients",
    "over γ = 0",
    "test error",
    "rate",
    "loss, equal time",
    "over γ = 0",
    "test error",
    "µs a step",
)
COST_NOTE = (
    f"A gradient of a batch counts 1, a product with the Hessian {HESSIAN_PRODUCT_COST}. A step of "
    f"ours costs {Optimizer('cfadam').cost:g} (a product at every tenth), of AdaHessian-like "
    f"{Optimizer('AdaHessian-like').cost:g}, of all others 1. Equal gradients: as many gradient "
    "equivalents as the run has steps. Equal time: processor seconds, as many as the shortest run "
    "of the problem takes. A loss is the median of the last three of the thirty checkpoints of a "
    "run."
)


def markdown(
    problems: Sequence[TrainingProblem], summaries: Sequence[OptimizerSummary], seeds: int
) -> str:
    """Return the text of training.md."""
    rates = ", ".join(f"{rate:.2g}" for rate in RATES)
    lines = [
        "# Does the fractional direction help in training?",
        "",
        f"Medians over {seeds} seeds (0 to {seeds - 1}), quartiles in brackets; the loss is that on"
        f" all training data. Learning rates for all: {rates}; the best by the median training "
        "loss, ! where it is the first or last of them. Ours are named by (gamma, lag); heavy ball "
        f"and Nesterov have the momentum {MOMENTUM:g}. * is the least loss of a column. Over γ = 0:"
        " the loss over that of SGD for cfgd, of Adam for cfadam, of AdamW for cfadamw; ✗ where "
        f"ours lose by more than {EQUAL:.0%}.",
        "",
        COST_NOTE,
        "",
        "## Conclusions",
        "",
        *(f"- {sentence}" for sentence in conclusions(summaries)),
        "",
        "## Gamma and lag",
        "",
        *_gamma_lag_table(gamma_lag_ratios(summaries)),
    ]
    for problem in problems:
        some = [one for one in summaries if one.problem == problem.name]
        if some:
            lines += [
                "",
                f"## {problem.name}",
                "",
                f"{_capitalized(problem.what)}. {_run_note(problem)}",
            ]
            lines += ["", *_markdown_table(HEAD, rows(some))]
    return "\n".join(lines) + "\n"


def tables(
    problems: Sequence[TrainingProblem], summaries: Sequence[OptimizerSummary]
) -> list[Table]:
    """Return a table for the console for each problem."""
    tables = []
    for problem in problems:
        some = [one for one in summaries if one.problem == problem.name]
        if some:
            table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"{problem.name}: {problem.what}")
            for i, name in enumerate(HEAD):
                table.add_column(name, justify="right" if i else "left")
            for row in rows(some):
                table.add_row(*row)
            tables.append(table)
    return tables


def rows(some: Sequence[OptimizerSummary]) -> list[tuple[str, ...]]:
    """Return a row for each optimizer of a problem."""
    by_name = {(one.measure, one.optimizer.name): one for one in some}
    least = {
        measure: min(one.loss[0] for one in some if one.measure == measure)
        for measure in (GRADIENTS, SECONDS)
    }
    rows = []
    for name in dict.fromkeys(one.optimizer.name for one in some):
        row = [name]
        for measure in (GRADIENTS, SECONDS):
            one = by_name[measure, name]
            star = "*" if one.loss[0] == least[measure] else ""
            edge = "!" if one.at_the_edge else ""
            base = by_name.get((measure, BASES.get(one.optimizer.kind, "")))
            ratio = _ratio(one, base) if base else ""
            loss, error = _format(one.loss) + star, _format(one.error)
            row += [f"{one.rate:.2g}{edge}", loss, ratio, error]
        rows.append((*row, f"{1e6 * by_name[SECONDS, name].seconds:.0f}"))
    return rows


def _ratio(ours: OptimizerSummary, base: OptimizerSummary) -> str:
    result, factor = compare(ours.loss[0], base.loss[0])
    return f"{factor:.2f}" + (" ✗" if result == "ours lose" else "")


def _gamma_lag_table(ratios: list[GammaLagRatios]) -> list[str]:
    """Return a table of losses over that of the same optimizer with gamma = 0."""
    some = [one for one in ratios if one.measure == GRADIENTS]
    if not some:
        return []
    problems = list(some[0].ratios)
    means = {(one.kind, one.gamma, one.lag, one.measure): one.mean for one in ratios}
    head = ("loss over gamma = 0", *problems, "mean", "in equal time", "with equal steps")
    lines = []
    for one in some:
        name = f"{one.kind} ({one.gamma:g}, {one.lag})"
        other = [means[one.kind, one.gamma, one.lag, measure] for measure in (SECONDS, STEPS)]
        numbers = [*one.ratios.values(), one.mean, *other]
        lines.append((name, *(f"{number:.2f}" for number in numbers)))
    return _markdown_table(head, lines)


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def _format(quartiles: Quartiles) -> str:
    median, low, high = quartiles
    return f"{median:.3g} [{low:.3g}, {high:.3g}]"


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def _run_note(problem: TrainingProblem) -> str:
    precision = "float64" if problem.double else "float32"
    run = f"{problem.steps} steps on batches of {problem.batch}, {precision}"
    return f"{run}; the test error is the {problem.error_is}."
