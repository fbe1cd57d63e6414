"""The solvers of physics-informed networks, stopped by the time limit of a `Trace`.

Every solver starts at the same point, with compiled functions. BFGS is that of `ssbroyden`, because
SciPy's BFGS multiplies d x d matrices in each iteration.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

import cfgd
from cfgd.apps.bench.field import ssbroyden
from cfgd.apps.bench.field.cases import GAMMAS
from cfgd.apps.bench.field.instance import AUTO
from cfgd.apps.bench.field.pinn_network import PinnProblem
from cfgd.apps.bench.field.pinn_trace import Trace
from cfgd.apps.bench.field.timing import TimeLimitError
from cfgd.apps.data.network_functions import ALPHAS

PinnSolver = Callable[[PinnProblem, np.ndarray, Trace], Any]

NO_LIMIT = 10**9  # iterations: every run ends earlier, at its time limit
MEMORY = 50  # pairs of L-BFGS
# Adam as the tutorials of DeepXDE and of Raissi et al. run it, for a third of the time.
ADAM_RATE, ADAM_DECAYS, ADAM_SHARE = 1e-3, (0.9, 0.999), 1 / 3
ADAM_EPSILON = 1e-8
# Levenberg-Marquardt with the damping of Nielsen (1999): the initial damping divided by the largest
# diagonal entry of J'J, and the largest factor by which an accepted step reduces the damping.
LM_FIRST_DAMPING, LM_MOST_DECREASE = 1e-3, 3.0
# Iterations of cfgd between two recorded points.
KEEP_EVERY = 5
# A run of cfgd that spends more than this fraction of its time on compilation is repeated, up to
# this number of runs.
COMPILING_SHARE, MOST_RUNS = 0.02, 3
# The paper's direction with the diagonal of the Gauss-Newton matrix, whose cost does not grow with
# the number of weights; order and gamma as for the paper's own network h1.
PAPER = cfgd.AdaptiveTerminal(ALPHAS["h1"], gamma=GAMMAS["h1"], step=cfgd.ArmijoStep())


def _recorded(problem: PinnProblem, trace: Trace) -> ssbroyden.ValueAndGradient:
    def value_and_gradient(p: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.value_and_gradient(p)
        trace.record(value, p)
        return value, gradient

    return value_and_gradient


# ---------------------------------------------------------------------- methods of cfgd


@functools.lru_cache(maxsize=1)
def residuals_objective(problem: PinnProblem) -> cfgd.ResidualTerms:
    """Return the problem as named residual terms; a mean of n squares has the weight 1/n."""
    terms = {term.name: cfgd.Residuals(term.fn, samples=term.samples) for term in problem.terms}
    weights = {term.name: term.weight / len(term.samples[0]) for term in problem.terms}
    return cfgd.ResidualTerms(weights=weights, **terms)


def _cfgd(
    method: Any,
    objective: Callable[[PinnProblem], Any],
    problem: PinnProblem,
    x0: np.ndarray,
    trace: Trace,
) -> None:
    def keep(solution: cfgd.Solution) -> None:
        with contextlib.suppress(TimeLimitError):  # the run ends itself
            trace.record(float(solution.value), np.asarray(solution.x))

    for _ in range(MOST_RUNS):
        trace.restart()
        solution = cfgd.minimize(
            objective(problem),
            x0,
            method,
            tolerance=0.0,
            time_limit=trace.seconds,
            max_iterations=NO_LIMIT,
            every=KEEP_EVERY,
            callback=keep,
        )
        if solution.compile_seconds <= COMPILING_SHARE * trace.seconds:
            break
    trace.improve(float(solution.value), np.asarray(solution.x))


def _local(problem: PinnProblem) -> cfgd.Local:
    return cfgd.Local(residuals_objective(problem), "gauss_newton")


auto = partial(_cfgd, cfgd.Auto(), residuals_objective)
paper = partial(_cfgd, PAPER, _local)


# ---------------------------------------------------------------------- quasi-Newton methods


def ssbroyden_run(problem: PinnProblem, x0: np.ndarray, trace: Trace) -> None:
    ssbroyden.minimize(_recorded(problem, trace), x0, ssbroyden.ssbroyden_update)


def bfgs(problem: PinnProblem, x0: np.ndarray, trace: Trace) -> None:
    ssbroyden.minimize(_recorded(problem, trace), x0, ssbroyden.bfgs_update)


def lbfgs(problem: PinnProblem, x0: np.ndarray, trace: Trace) -> None:
    scipy.optimize.minimize(
        _recorded(problem, trace),
        x0,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxcor": MEMORY,
            "maxiter": NO_LIMIT,
            "maxfun": NO_LIMIT,
            "gtol": 0.0,
            "ftol": 0.0,
        },
    )


def adam_then_lbfgs(problem: PinnProblem, x0: np.ndarray, trace: Trace) -> None:
    value_and_gradient = _recorded(problem, trace)
    x, m, v, k = x0.copy(), np.zeros_like(x0), np.zeros_like(x0), 0
    first, second = ADAM_DECAYS
    while trace.elapsed() < ADAM_SHARE * trace.seconds:
        k += 1
        _, g = value_and_gradient(x)
        m = first * m + (1 - first) * g
        v = second * v + (1 - second) * g**2
        step = m / (1 - first**k) / (np.sqrt(v / (1 - second**k)) + ADAM_EPSILON)
        x = x - ADAM_RATE * step
    lbfgs(problem, x, trace)


# ---------------------------------------------------------------------- Levenberg-Marquardt


def levenberg_marquardt(problem: PinnProblem, x0: np.ndarray, trace: Trace) -> None:
    """Run Levenberg-Marquardt with the Jacobian of all samples.

    The smaller of J'J + mu I and JJ' + mu I is factorised.
    """
    x = x0
    r, J = problem.residuals_and_jacobian(x)
    f = float(r @ r) / 2
    trace.record(f, x)
    few_rows = len(r) < len(x)
    gram = J @ J.T if few_rows else J.T @ J
    mu, growth = LM_FIRST_DAMPING * float(np.max(np.sum(J**2, axis=0))), 2.0
    while True:
        damped = gram.copy()
        damped[np.diag_indices_from(damped)] += mu
        try:
            factor = scipy.linalg.cho_factor(damped, overwrite_a=True, check_finite=False)
            if few_rows:
                s = -J.T @ scipy.linalg.cho_solve(factor, r, check_finite=False)
            else:
                s = -scipy.linalg.cho_solve(factor, J.T @ r, check_finite=False)
        except np.linalg.LinAlgError:  # damping below the rounding of the matrix
            mu, growth = growth * mu, 2 * growth
            continue
        trial = problem.residuals(x + s)
        value = float(trial @ trial) / 2
        trace.record(value, x + s)
        image = J @ s
        predicted = -float(r @ image) - float(image @ image) / 2
        gain = (f - value) / predicted if predicted > 0 else -1.0
        if not (gain > 0 and np.isfinite(value)):
            if mu > 1 / np.finfo(float).eps * np.max(gram):
                return
            mu, growth = growth * mu, 2 * growth
            continue
        mu, growth = mu * max(1 / LM_MOST_DECREASE, 1 - (2 * gain - 1) ** 3), 2.0
        x = x + s
        r, J = problem.residuals_and_jacobian(x)
        f, gram = value, J @ J.T if few_rows else J.T @ J


SOLVERS: dict[str, PinnSolver] = {
    AUTO: auto,
    "SSBroyden": ssbroyden_run,
    "BFGS": bfgs,
    f"L-BFGS-B, memory {MEMORY}": lbfgs,
    "Adam, L-BFGS-B": adam_then_lbfgs,
    "LM": levenberg_marquardt,
    "the paper": paper,
}
