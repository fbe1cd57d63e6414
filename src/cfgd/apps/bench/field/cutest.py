"""CUTEst through sif2jax: evaluations until the gradient norm is 1e-8 of its initial value.

The group "cutest" has all problems of sif2jax with up to 1024 variables and no constraints, the
group "cutest-bounds" those with bounds only. Auto and L-BFGS-B call the same compiled function. Its
evaluations are counted until the norm of the gradient (with bounds: of its free coordinates) is
small. The evaluations of Auto until its own convergence test are reported as a separate solver.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import cfgd
from cfgd._core.box import Box
from cfgd.apps.bench.field.cases import TARGET
from cfgd.apps.bench.field.instance import (
    AUTO,
    AUTO_CONVERGED,
    Instance,
    ShowStatus,
    SolverRun,
)

MAX_VARIABLES = 1024
MAX_GRADIENTS = 5000
TIME_LIMIT = 30.0  # seconds of Auto for each problem
LBFGSB = "L-BFGS-B"


def is_installed() -> bool:
    return importlib.util.find_spec("sif2jax") is not None


KINDS = {
    "cutest": ("unconstrained_minimisation_problems",),
    "cutest-bounds": ("bounded_minimisation_problems", "bounded_quadratic_problems"),
}


def instances(quick: bool, group: str = "cutest") -> Iterator[Instance]:
    """Yield the instances; `quick` takes every eighth. The import alone takes a minute."""
    with jax.enable_x64(True):
        sif2jax = importlib.import_module("sif2jax")
        found = {one.name: one for kind in KINDS[group] for one in getattr(sif2jax, kind)}
        small = [one for one in found.values() if one.num_variables() <= MAX_VARIABLES]
    for problem in small[:: 8 if quick else 1]:
        yield Instance(group, problem.name, 0, partial(run_solvers, problem, group))


class TargetReachedError(Exception):
    """Raised to stop a solver at a small gradient or at the limit of evaluations."""


class CountedGradient:
    """Value and gradient with a counter; evaluating the same point again is free.

    A small gradient counts only if the value is the lowest so far: a small gradient on a plateau,
    evaluated by a line search, is not a solution.

    Attributes
    ----------
    count : number of evaluations so far
    first : number of evaluations until the first small gradient, or infinity
    value : value at that point
    """

    def __init__(
        self, value_and_gradient: Callable[[Any], Any], x0: Any, box: Box, stop_at_target: bool
    ) -> None:
        self.value_and_gradient, self.stop_at_target = value_and_gradient, stop_at_target
        self.box = box
        self.count, self.first, self.least = 0, float("inf"), float("inf")
        self.value = float("inf")
        self.last_x: Any = None
        self.last: tuple[float, Any] = (0.0, None)
        value, gradient = value_and_gradient(x0)
        self.start, self.goal = float(value), TARGET * self._norm(x0, gradient)

    def _norm(self, x: Any, gradient: Any) -> Any:
        return np.linalg.norm(self.box.free_gradient(np.asarray(x), np.asarray(gradient)))

    def __call__(self, x: Any) -> tuple[float, Any]:
        if self.last_x is None or not np.array_equal(x, self.last_x):
            self.count += 1
            value, gradient = self.value_and_gradient(x)
            self.last_x, self.last = np.array(x), (float(value), np.asarray(gradient))
            norm = self._norm(self.last_x, self.last[1])
            self.least = min(self.least, self.last[0])
            is_least = self.last[0] - self.least <= TARGET * abs(self.start - self.least)
            if norm <= self.goal and is_least and self.count <= min(self.first, MAX_GRADIENTS):
                self.first, self.value = self.count, self.last[0]
        if self.stop_at_target and (self.first <= self.count or self.count >= MAX_GRADIENTS):
            raise TargetReachedError
        return self.last


def box_of(problem: Any, size: int) -> Box:
    """Return the bounds of a problem as vectors; missing bounds are infinite."""
    if getattr(problem, "bounds", None) is None:
        return Box(np.full(size, -np.inf), np.full(size, np.inf))
    sides = (np.asarray(jax.flatten_util.ravel_pytree(side)[0]) for side in problem.bounds)
    return Box(*(np.broadcast_to(side, (size,)).astype(float) for side in sides))


def run_solvers(problem: Any, group: str, show_status: ShowStatus) -> list[SolverRun]:
    with jax.enable_x64(True), np.errstate(all="ignore"):
        y0, unravel = jax.flatten_util.ravel_pytree(problem.y0)
        args, box = problem.args, box_of(problem, y0.size)
        x0 = box.project(np.asarray(y0, float))
        is_bounded = bool(np.isfinite([*box.lower, *box.upper]).any())
        compiled = jax.jit(
            jax.value_and_grad(lambda x: jnp.sum(problem.objective(unravel(x), args)))
        )
        show_status(AUTO)
        auto = CountedGradient(compiled, x0, box, stop_at_target=False)
        solution = cfgd.minimize(
            cfgd.External(auto),
            x0,
            bounds=tuple(box) if is_bounded else None,
            max_iterations=MAX_GRADIENTS,
            time_limit=TIME_LIMIT,
        )
        show_status(LBFGSB)
        lbfgsb = CountedGradient(compiled, x0, box, stop_at_target=True)
        bounds = scipy.optimize.Bounds(*box) if is_bounded else None
        options = {"maxiter": MAX_GRADIENTS, "maxfun": MAX_GRADIENTS, "gtol": 0.0, "ftol": 0.0}
        with contextlib.suppress(TargetReachedError):
            scipy.optimize.minimize(
                lbfgsb, x0, jac=True, bounds=bounds, method=LBFGSB, options=options
            )

    def run(solver: str, work: float, value: float) -> SolverRun:
        return SolverRun(
            problem=problem.name,
            group=group,
            unit="gradients",
            solver=solver,
            seed=0,
            work=work,
            seconds=float("inf"),  # times are not compared
            value=value,
            solved=bool(np.isfinite(work)),
            error="" if solver == LBFGSB else solution.status.name,
            dimension=x0.size,
        )

    until_converged = float(auto.count) if solution.success else float("inf")
    return [
        run(AUTO, float(auto.first), auto.value),
        run(AUTO_CONVERGED, until_converged, float(solution.value)),
        run(LBFGSB, float(lbfgsb.first), lbfgsb.value),
    ]
