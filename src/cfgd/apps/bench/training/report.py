"""training.md and the tables of the console: the same rows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from cfgd.apps.bench.training.optimizers import BASES, MOMENTUM, PRODUCT, RATES, Optimizer
from cfgd.apps.bench.training.problem import Problem
from cfgd.apps.bench.training.table import GRADIENTS, SECONDS, STEPS, Spread, Standing
from cfgd.apps.bench.training.verdicts import SAME, Pair, compared, pairs, verdicts

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
COUNTED = (
    f"A gradient of a batch counts 1, a product with the Hessian {PRODUCT}. A step of ours is "
    f"{Optimizer('cfadam').cost:g} (a product at every tenth), of the AdaHessian-like rival "
    f"{Optimizer('AdaHessian-like').cost:g}, of all others 1. Equal gradients: as many gradient "
    "equivalents as the run has steps. Equal time: seconds of the processor, as many as the "
    "shortest whole run of the problem takes. A loss is the median of the last three of thirty "
    "places of a run."
)


def markdown(problems: Sequence[Problem], found: Sequence[Standing], seeds: int) -> str:
    rates = ", ".join(f"{rate:.2g}" for rate in RATES)
    lines = [
        "# Does the fractional direction help in training?",
        "",
        f"Medians over {seeds} seeds (0 to {seeds - 1}), quartiles in brackets; the loss is that on"
        f" all training data. Learning rates for all: {rates}; the best by the median training "
        "loss, ! where it is the first or last of them. Ours are named by (gamma, lag); heavy ball "
        f"and Nesterov have the momentum {MOMENTUM:g}. * is the least loss of a column. Over γ = 0:"
        " the loss over that of SGD for cfgd, of Adam for cfadam, of AdamW for cfadamw; ✗ where "
        f"ours lose by more than {SAME:.0%}.",
        "",
        COUNTED,
        "",
        "## In words",
        "",
        *(f"- {said}" for said in verdicts(found)),
        "",
        "## Gamma and lag",
        "",
        *_pairs(pairs(found)),
    ]
    for problem in problems:
        some = [one for one in found if one.problem == problem.name]
        if some:
            lines += ["", f"## {problem.name}", "", f"{_capital(problem.what)}. {_run(problem)}"]
            lines += ["", *_lines(HEAD, rows(some))]
    return "\n".join(lines) + "\n"


def tables(problems: Sequence[Problem], found: Sequence[Standing]) -> list[Table]:
    made = []
    for problem in problems:
        some = [one for one in found if one.problem == problem.name]
        if some:
            shown = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"{problem.name}: {problem.what}")
            for i, name in enumerate(HEAD):
                shown.add_column(name, justify="right" if i else "left")
            for row in rows(some):
                shown.add_row(*row)
            made.append(shown)
    return made


def rows(some: Sequence[Standing]) -> list[tuple[str, ...]]:
    """One for each optimizer of a problem."""
    by = {(one.measure, one.optimizer.name): one for one in some}
    least = {
        measure: min(one.loss[0] for one in some if one.measure == measure)
        for measure in (GRADIENTS, SECONDS)
    }
    made = []
    for name in dict.fromkeys(one.optimizer.name for one in some):
        row = [name]
        for measure in (GRADIENTS, SECONDS):
            one = by[measure, name]
            star = "*" if one.loss[0] == least[measure] else ""
            edge = "!" if one.at_the_edge else ""
            base = by.get((measure, BASES.get(one.optimizer.kind, "")))
            over = _over(one, base) if base else ""
            row += [f"{one.rate:.2g}{edge}", _spread(one.loss) + star, over, _spread(one.error)]
        made.append((*row, f"{1e6 * by[SECONDS, name].seconds:.0f}"))
    return made


def _over(ours: Standing, base: Standing) -> str:
    word, factor = compared(ours.loss[0], base.loss[0])
    return f"{factor:.2f}" + (" ✗" if word == "ours lose" else "")


def _pairs(every: list[Pair]) -> list[str]:
    """The loss over that of the same optimizer with gamma = 0."""
    some = [one for one in every if one.measure == GRADIENTS]
    if not some:
        return []
    problems = list(some[0].ratios)
    means = {(one.kind, one.gamma, one.lag, one.measure): one.mean for one in every}
    head = ("loss over gamma = 0", *problems, "mean", "in equal time", "with equal steps")
    lines = []
    for one in some:
        name = f"{one.kind} ({one.gamma:g}, {one.lag})"
        other = [means[one.kind, one.gamma, one.lag, measure] for measure in (SECONDS, STEPS)]
        numbers = [*one.ratios.values(), one.mean, *other]
        lines.append((name, *(f"{number:.2f}" for number in numbers)))
    return _lines(head, lines)


def _lines(head: Sequence[str], made: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *made)]


def _spread(of: Spread) -> str:
    return f"{of[0]:.3g} [{of[1]:.3g}, {of[2]:.3g}]"


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _run(problem: Problem) -> str:
    precision = "float64" if problem.double else "float32"
    of = f"{problem.steps} steps on batches of {problem.batch}, {precision}"
    return f"{of}; the test error is the {problem.error_is}."
