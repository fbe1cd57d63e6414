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
    "learning rate",
    "loss, equal gradients",
    "loss / loss with γ = 0",
    "test error",
    "learning rate",
    "loss, equal time",
    "loss / loss with γ = 0",
    "test error",
    "µs per step",
)
COST_NOTE = (
    "A gradient of a batch has the cost 1, a Hessian-vector product the cost "
    f"{HESSIAN_PRODUCT_COST}. A step of the cfgd optimizers costs {Optimizer('cfadam').cost:g} (one"
    " Hessian-vector product in ten steps), of AdaHessian-like "
    f"{Optimizer('AdaHessian-like').cost:g}, of all others 1. At equal gradients, every"
    " optimizer has a budget of as many gradients as a run has steps. At equal time, it has the CPU"
    " time of the fastest optimizer of the problem. A loss is the median of the last three of the"
    " thirty checkpoints within the budget."
)


def markdown(
    problems: Sequence[TrainingProblem], summaries: Sequence[OptimizerSummary], seeds: int
) -> str:
    """Return the text of training.md."""
    rates = ", ".join(f"{rate:.2g}" for rate in RATES)
    lines = [
        "# The fractional direction in network training",
        "",
        f"Entries are medians over {_seeds(seeds)}, with the quartiles in brackets. The loss is the"
        " loss on all training data. The learning rate is the one with the lowest median training "
        f"loss out of {rates}; ! marks the first and the last of them. The numbers in parentheses "
        f"are (gamma, lag). Heavy ball and Nesterov have the momentum {MOMENTUM:g}. * marks the "
        "lowest loss of a column. The optimizers with γ = 0 are SGD for cfgd, Adam for cfadam and "
        f"AdamW for cfadamw; ✗ marks losses that are more than {EQUAL:.0%} higher.",
        "",
        COST_NOTE,
        "",
        "## Conclusions",
        "",
        *(f"- {sentence}" for sentence in conclusions(summaries)),
        "",
        "## Gamma and lag",
        "",
        "Loss / loss of the same optimizer with gamma = 0, for the problems at equal gradients. "
        "The means are geometric.",
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


def _seeds(count: int) -> str:
    return "seed 0" if count == 1 else f"{count} seeds (0 to {count - 1})"


def tables(
    problems: Sequence[TrainingProblem], summaries: Sequence[OptimizerSummary]
) -> list[Table]:
    """Return two tables for each problem, at equal gradients and at equal time."""
    tables = []
    for problem in problems:
        some = [one for one in summaries if one.problem == problem.name]
        if some:
            full = rows(some)
            tables += [
                _console_table(problem, "equal gradients", [row[:5] for row in full]),
                _console_table(problem, "equal time", [row[:1] + row[5:] for row in full]),
            ]
    return tables


def _console_table(
    problem: TrainingProblem, measure: str, rows: Sequence[tuple[str, ...]]
) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title=f"{problem.name}, {measure}, medians: {problem.what}",
        caption=f"ratio: loss / loss with gamma = 0 (✗: more than {EQUAL:.0%} higher); test error:"
        f" {problem.error_is}; *: lowest loss; !: first or last of the learning rates;"
        " training.md has the quartiles",
    )
    head = ("optimizer", "learning rate", "loss", "ratio", "test error", "µs/step")
    for i, name in enumerate(head[: len(rows[0])]):
        table.add_column(name, justify="right" if i else "left", no_wrap=True)
    for name, rate, loss, ratio, error, *time in rows:
        star = "*" if loss.endswith("*") else " "
        table.add_row(name, rate, _median(loss) + star, ratio, _median(error), *time)
    return table


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
    return f"{factor:.2f}" + (" ✗" if result == "higher" else "")


def _gamma_lag_table(ratios: list[GammaLagRatios]) -> list[str]:
    """Return a table of losses / losses of the same optimizer with gamma = 0."""
    some = [one for one in ratios if one.measure == GRADIENTS]
    if not some:
        return []
    problems = list(some[0].ratios)
    means = {(one.kind, one.gamma, one.lag, one.measure): one.mean for one in ratios}
    head = (
        "optimizer (gamma, lag)",
        *problems,
        "mean, equal gradients",
        "mean, equal time",
        "mean, equal steps",
    )
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


def _median(entry: str) -> str:
    """Return an entry of `rows` without the quartiles."""
    return entry.split(" [")[0]


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def _run_note(problem: TrainingProblem) -> str:
    precision = "float64" if problem.double else "float32"
    run = f"{problem.steps} steps with batches of {problem.batch} rows, {precision}"
    return f"{run}; the test error is the {problem.error_is}."
