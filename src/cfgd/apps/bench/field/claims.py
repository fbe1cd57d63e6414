"""The goals of the project for `Auto`, checked against the runs of `cfgd bench`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from cfgd.apps.bench.field import fits
from cfgd.apps.bench.field.estimators import COLUMNS, CORE, GROUP, ROWS
from cfgd.apps.bench.field.instance import AUTO, AUTO_CONVERGED, SolverRun
from cfgd.apps.bench.field.networks_timed import SECONDS
from cfgd.apps.bench.field.summary import SolverSummary, auto_loses, summarize

# The bounds are goals that the project has set; docs/measured.md has the measured values.
MAX_ESTIMATOR_OVERHEAD = 1.2  # time of an estimator / time of the same fit by `minimize`
MAX_FIT_WORK, MAX_FIT_TIME = 1.15, 1.0  # gradients and time of a fit / those of SciPy's lm
MANY_VARIABLES = 50  # CUTEst problems with fewer and with at least as many are checked separately
MAX_ERROR_FACTOR = 2.0  # error on a physics-informed network / error of the best solver
PAPER_LOSS_SECONDS = 0.2  # time to the loss that the paper reaches on h1

RunsByInstance = dict[tuple[str, int], SolverRun]


def check_claims(runs: list[SolverRun]) -> list[str]:
    """Return a sentence for each measurement, and whether its goal is met."""
    summaries = summarize(runs)
    return [
        *_nist(runs),
        *_fits(runs),
        *_bounds(runs),
        *_linear_models(summaries),
        *_estimators(summaries),
        *_networks_at_equal_time(summaries),
        *_networks_at_equal_work(summaries),
        *_differential_equations(summaries),
        *_least_squares(summaries),
        *_smooth(summaries),
        *_cutest(runs, "cutest"),
        *_cutest(runs, "cutest-bounds"),
    ]


# ---------------------------------------------------------------------- wording


def _at_most(what: str, measured: float, bound: float, unit: str = "") -> str:
    return f"{what}: {measured:.4g}{unit}; goal: at most {bound:g}{unit}, {_met(measured <= bound)}"


def _in_cases(what: str, count: int, total: int, goal: int, things: str = "cases") -> str:
    return f"{what} in {count} of {total} {things}; goal: {goal}, {_met(count >= goal)}"


def _met(is_met: bool) -> str:
    return "met" if is_met else "NOT MET"


def _share(total: int, part: int, whole: int) -> int:
    """Return `total * part / whole`, rounded up."""
    return -(-part * total // whole)


# ---------------------------------------------------------------------- single runs


def _nist(runs: list[SolverRun]) -> Iterator[str]:
    by_solver = _by_solver(runs, "nist")
    auto = by_solver.get(AUTO, {})
    if not auto:
        return
    for solver, some in by_solver.items():
        solved = sum(run.solved for run in some.values())
        digits = np.median([run.digits for run in some.values()])
        missed = [f"{run.problem} {run.seed + 1}" for run in some.values() if not run.solved]
        sentence = (
            f"nist: {solver} reaches six digits from {solved} of {len(some)} starts"
            f" (median {digits:.3g} digits; missed: {', '.join(missed) or 'none'})"
        )
        if solver == AUTO:
            goal = _share(len(some), 53, 54)
            yield f"{sentence}; goal: {goal}, {_met(solved >= goal)}"
        else:
            yield sentence
    for solver in (name for name in by_solver if name != AUTO):
        ratio = _median_work_ratio(auto, by_solver[solver])
        what = f"nist: Jacobians of Auto / Jacobians of {solver}, median"
        yield _at_most(what, ratio, 1.2) if solver == "SciPy lm" else f"{what}: {ratio:.4g}"


def _fits(runs: list[SolverRun]) -> Iterator[str]:
    by_solver = _by_solver(runs, fits.GROUP)
    auto = by_solver.get(AUTO, {})
    if not auto:
        return
    shares = {}
    for solver, some in by_solver.items():
        solved = sum(run.solved for run in some.values())
        shares[solver] = solved / len(some)
        raised = sum(bool(run.error) for run in some.values())
        yield (
            f"fits: {solver} reaches the best known sum of squares in {solved} of {len(some)} runs"
            f" ({100 * shares[solver]:.1f} %; runs that raised an exception: {raised})"
        )
    most = max(share for solver, share in shares.items() if solver != AUTO)
    what = "fits: largest such number of another solver / that of Auto"
    yield _at_most(what, most / max(shares[AUTO], 1e-9), 1.0)
    for solver in (name for name in by_solver if name != AUTO):
        both = [key for key, run in by_solver[solver].items() if run.solved and auto[key].solved]
        if not both:
            continue
        for words, field, bound in (
            ("gradients", "work", MAX_FIT_WORK),
            ("time", "seconds", MAX_FIT_TIME),
        ):
            ours, theirs = (
                np.array([getattr(some[key], field) for key in both])
                for some in (auto, by_solver[solver])
            )
            what = (
                f"fits: {words} of Auto / {words} of {solver} where both succeed (ratio of the"
                f" totals {ours.sum() / theirs.sum():.3g}), median"
            )
            ratio = float(np.median(ours / theirs))
            yield _at_most(what, ratio, bound) if solver == "SciPy lm" else (f"{what}: {ratio:.4g}")
    status = Counter(run.status for run in auto.values())
    at_best = Counter(run.status for run in auto.values() if run.solved)
    ends = ", ".join(f"{name} {count} ({at_best[name]})" for name, count in status.items())
    yield (
        f"fits: statuses of Auto, with the number of runs (of these at the best point): {ends};"
        f" false `converged`: {status[fits.FALSE]}; goal: 0, {_met(not status[fits.FALSE])}"
    )


def _bounds(runs: list[SolverRun]) -> Iterator[str]:
    by_solver = _by_solver(runs, "bounds")
    auto = by_solver.get(AUTO, {})
    if not auto:
        return
    for solver, some in by_solver.items():
        missed = [f"{run.problem} {run.seed + 1}" for run in some.values() if not run.solved]
        sentence = (
            f"bounds: {solver} reaches the lowest sum of squares from {len(some) - len(missed)} of "
            f"{len(some)} starts (missed: {', '.join(missed) or 'none'})"
        )
        yield f"{sentence}; goal: all, {_met(not missed)}" if solver == AUTO else sentence
    for solver in (name for name in by_solver if name != AUTO):
        ratio = _median_work_ratio(auto, by_solver[solver])
        what = f"bounds: Jacobians of Auto / Jacobians of {solver}, median"
        yield _at_most(what, ratio, 1.0) if solver == "SciPy trf" else f"{what}: {ratio:.4g}"


def _cutest(runs: list[SolverRun], group: str) -> Iterator[str]:
    by_solver = _by_solver(runs, group)
    auto, lbfgsb = by_solver.get(AUTO, {}), by_solver.get("L-BFGS-B", {})
    for words, few in (
        (f"fewer than {MANY_VARIABLES}", True),
        (f"{MANY_VARIABLES} or more", False),
    ):
        some = {key: run for key, run in lbfgsb.items() if (run.dimension < MANY_VARIABLES) == few}
        if any(run.solved for run in some.values()):
            what = f"{group}: gradients of Auto / gradients of L-BFGS-B, {words} variables, median"
            yield _at_most(what, _median_work_ratio(auto, some), 1.05)
    if not lbfgsb:
        return
    converged = by_solver.get(AUTO_CONVERGED, {})
    lost = [key[0] for key, run in lbfgsb.items() if auto_loses(auto[key], run, converged.get(key))]
    more = [key[0] for key, run in lbfgsb.items() if auto[key].solved and not run.solved]
    solved = sum(run.solved for run in lbfgsb.values())
    yield (
        f"{group}: Auto fails on {len(lost)} of the {solved} problems that L-BFGS-B solves"
        f" ({', '.join(lost) or 'none'}) and solves {len(more)} others; goal: no failure, "
        f"{_met(not lost)}"
    )


def _by_solver(runs: list[SolverRun], group: str) -> dict[str, RunsByInstance]:
    found: dict[str, RunsByInstance] = {}
    for run in runs:
        if run.group == group:
            found.setdefault(run.solver, {})[(run.problem, run.seed)] = run
    return found


def _median_work_ratio(auto: RunsByInstance, other: RunsByInstance) -> float:
    """Return the median ratio over what the other solves; the work of a failed run is infinite."""
    return float(np.median([auto[key].work / run.work for key, run in other.items() if run.solved]))


# ---------------------------------------------------------------------- medians over seeds


def _linear_models(summaries: list[SolverSummary]) -> Iterator[str]:
    ratios = _ratios_to_fastest([one for one in summaries if one.group == "glm"])
    if not ratios:
        return
    shown = "; ".join(f"{problem} {ratio:.2g}" for problem, ratio in ratios.items())
    yield f"glm: time of Auto / time of scikit-learn's fastest solver: {shown}"
    fast = sum(ratio <= 1 for ratio in ratios.values())
    what = "glm: Auto is at least as fast"
    yield _in_cases(what, fast, len(ratios), _share(len(ratios), 4, 6), "data sets")
    yield _at_most("glm: the largest of these ratios", max(ratios.values()), 2)


def _estimators(summaries: list[SolverSummary]) -> Iterator[str]:
    some = [one for one in summaries if one.group == GROUP]
    overhead = {one.problem: one.seconds_ratio for one in some if one.solver == CORE}
    if overhead:
        shown = ", ".join(f"{problem} {ratio:.3g}" for problem, ratio in overhead.items())
        what = (
            f"estimators: time / time of the same fit by cfgd.minimize, {ROWS:,} x {COLUMNS}"
            f" ({shown}), maximum"
        )
        yield _at_most(what, max(overhead.values()), MAX_ESTIMATOR_OVERHEAD)
    ratios = _ratios_to_fastest([one for one in some if one.solver != CORE])
    if ratios:
        names = {problem: problem.removeprefix("fit: ") for problem in ratios}
        shown = "; ".join(f"{names[problem]} {ratio:.2g}" for problem, ratio in ratios.items())
        slower = [names[problem] for problem, ratio in ratios.items() if ratio > 1]
        yield (
            f"estimators: time / time of scikit-learn's fastest solver: {shown}. "
            f"Slower than scikit-learn: {'; '.join(slower) or 'none'}"
        )


def _ratios_to_fastest(summaries: Sequence[SolverSummary]) -> dict[str, float]:
    """Return time of Auto / time of the fastest other solver, by problem."""
    ratios: dict[str, float] = {}
    for one in summaries:
        if one.solver != AUTO:  # the ratio to the fastest solver is the largest
            ratios[one.problem] = max(ratios.get(one.problem, 0.0), one.seconds_ratio)
    return ratios


def _networks_at_equal_time(summaries: list[SolverSummary]) -> Iterator[str]:
    some = [one for one in summaries if one.measure == "timed loss"]
    problems = list(dict.fromkeys(one.problem for one in some))
    if not problems:
        return
    won = [one.problem for one in some if one.winner and one.solver == AUTO]
    lost = {one.problem: one.solver for one in some if one.winner and one.problem not in won}
    what = f"networks: after {SECONDS:g} s Auto has the lowest loss"
    sentence = _in_cases(what, len(won), len(problems), _share(len(problems), 5, 6))
    if lost:
        others = "; ".join(f"{problem}: {solver}" for problem, solver in lost.items())
        sentence += f". Lower loss of another solver: {others}"
    yield sentence
    h1 = [one for one in some if one.solver == AUTO and one.problem.startswith("h1,")]
    if h1:
        seconds = max(one.to_reference for one in h1)
        what = "networks: time of Auto to the loss that the paper reaches on h1, maximum"
        yield _at_most(what, seconds, PAPER_LOSS_SECONDS, " s")


def _networks_at_equal_work(summaries: list[SolverSummary]) -> Iterator[str]:
    pairs = _pairs_with_lbfgsb([one for one in summaries if one.measure == "loss"])
    if not pairs:
        return
    goal = _share(len(pairs), 5, 6)
    better = sum(auto.score[0] <= lbfgsb.score[0] for auto, lbfgsb in pairs)
    what = "networks: at equal work the loss of Auto is at most that of L-BFGS-B"
    yield _in_cases(what, better, len(pairs), goal)
    shares = [auto.to_reference / lbfgsb.seconds[0] for auto, lbfgsb in pairs]
    what = (
        "networks: Auto reaches the final loss of L-BFGS-B in at most 0.2 of its time"
        f" (ratios {np.min(shares):.2g} to {np.max(shares):.2g})"
    )
    yield _in_cases(what, sum(share <= 0.2 for share in shares), len(pairs), goal)


def _differential_equations(summaries: list[SolverSummary]) -> Iterator[str]:
    by_problem: dict[str, dict[str, SolverSummary]] = {}
    for one in summaries:
        if one.group == "pinn":
            by_problem.setdefault(one.problem, {})[one.solver] = one
    if not by_problem:
        return
    factors = {}
    for problem, by_solver in by_problem.items():
        best = min(by_solver.values(), key=lambda one: one.score[0])
        low = min(by_solver.values(), key=lambda one: one.value)
        auto = by_solver[AUTO]
        factors[problem] = auto.score[0] / best.score[0]
        yield (
            f"pinn: {problem}: lowest error {best.score[0]:.2g} ({best.solver}), lowest loss"
            f" {low.value:.2g} ({low.solver}); Auto: error {auto.score[0]:.2g}, loss"
            f" {auto.value:.2g}"
        )
    won = sum(factor == 1 for factor in factors.values())
    what = "pinn: Auto has the lowest median error"
    yield _in_cases(what, won, len(factors), _share(len(factors), 5, 7), "equations")
    what = "pinn: median error of Auto / lowest median error, maximum"
    yield _at_most(what, max(factors.values()), MAX_ERROR_FACTOR)


def _least_squares(summaries: list[SolverSummary]) -> Iterator[str]:
    by_name = {(one.problem, one.solver): one for one in summaries}
    auto, cg = by_name.get(("random d = 20", AUTO)), by_name.get(("random d = 20", "CG, Jacobi"))
    if auto is not None and cg is not None:
        what = "least-squares, random d = 20: matrix products of Auto / those of CG"
        yield _at_most(what, auto.score[0] / cg.score[0], 1.3)
    if gas := by_name.get(("gas", AUTO)):  # two products in each iteration
        what = "least-squares, gas: iterations of Auto to a relative error of 1e-8"
        yield _at_most(what, gas.score[0] / 2, 4000)


def _smooth(summaries: list[SolverSummary]) -> Iterator[str]:
    pairs = [
        (auto, lbfgsb)
        for auto, lbfgsb in _pairs_with_lbfgsb([one for one in summaries if one.group == "smooth"])
        if np.isfinite(lbfgsb.score[0])
    ]
    if pairs:
        ratio = float(np.median([auto.score[0] / lbfgsb.score[0] for auto, lbfgsb in pairs]))
        yield _at_most("smooth: gradients of Auto / gradients of L-BFGS-B, median", ratio, 3)
        missed = [auto.problem for auto, lbfgsb in pairs if auto.solved < lbfgsb.solved]
        what = "smooth: problems on which L-BFGS-B succeeds for more seeds than Auto"
        yield f"{what}: {', '.join(missed) or 'none'}; goal: none, {_met(not missed)}"


def _pairs_with_lbfgsb(
    summaries: Sequence[SolverSummary],
) -> list[tuple[SolverSummary, SolverSummary]]:
    """Return the summaries of Auto and of L-BFGS-B for each problem that has both."""
    auto = {one.problem: one for one in summaries if one.solver == AUTO}
    return [
        (auto[one.problem], one)
        for one in summaries
        if one.solver == "L-BFGS-B" and one.problem in auto
    ]
