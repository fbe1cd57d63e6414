"""CUTEst through sif2jax: gradients to one of 1e-8 of that at the start, against L-BFGS-B.

All problems without constraints that sif2jax has, up to 1024 variables, in its order. Both solvers
see the same compiled function, whose calls are counted up to the first small gradient. What Auto
takes until it says converged stands in a line of its own.
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
from cfgd.apps.bench.field.cases import TARGET
from cfgd.apps.bench.field.instance import Instance, Say
from cfgd.apps.bench.field.standing import ENDED, OURS, Run

LARGEST = 1024  # variables
MOST = 5000  # gradients
PATIENCE = 30.0  # seconds
RIVAL = "L-BFGS-B"


def is_installed() -> bool:
    return importlib.util.find_spec("sif2jax") is not None


def instances(quick: bool) -> Iterator[Instance]:
    """`quick` takes every eighth. The import alone takes a minute."""
    with jax.enable_x64(True):
        problems = importlib.import_module("sif2jax").unconstrained_minimisation_problems
        small = [one for one in problems if one.num_variables() <= LARGEST]
    for problem in small[:: 8 if quick else 1]:
        yield Instance("cutest", problem.name, 0, partial(measured, problem))


class EnoughError(Exception):
    """The gradient is small, or there were too many."""


class Looks:
    """Value and gradient, counted; a point that was seen last is not looked at again.

    A small gradient counts where the value is the least so far: a search that looks at a plateau
    high above has not found anything.
    """

    def __init__(self, both: Callable[[Any], Any], x0: Any, ends: bool) -> None:
        self.both, self.ends = both, ends
        self.count, self.first, self.least = 0, float("inf"), float("inf")
        self.value = float("inf")  # where the gradient is small first
        self.last: Any = None
        self.seen: tuple[float, Any] = (0.0, None)
        value, gradient = both(x0)
        self.start, self.goal = float(value), TARGET * np.linalg.norm(np.asarray(gradient))

    def __call__(self, x: Any) -> tuple[float, Any]:
        if self.last is None or not np.array_equal(x, self.last):
            self.count += 1
            value, gradient = self.both(x)
            self.last, self.seen = np.array(x), (float(value), np.asarray(gradient))
            norm = np.linalg.norm(self.seen[1])
            self.least = min(self.least, self.seen[0])
            above = self.seen[0] - self.least
            low = above <= TARGET * abs(self.start - self.least)
            if norm <= self.goal and low and self.count <= min(self.first, MOST):
                self.first, self.value = self.count, self.seen[0]
        if self.ends and (self.first <= self.count or self.count >= MOST):
            raise EnoughError
        return self.seen


def measured(problem: Any, say: Say) -> list[Run]:
    with jax.enable_x64(True), np.errstate(all="ignore"):
        y0, unravel = jax.flatten_util.ravel_pytree(problem.y0)
        x0, args = np.asarray(y0, float), problem.args
        both = jax.jit(jax.value_and_grad(lambda x: jnp.sum(problem.objective(unravel(x), args))))
        say(OURS)
        looks = Looks(both, x0, ends=False)
        ends = cfgd.minimize(cfgd.External(looks), x0, max_iterations=MOST, time_limit=PATIENCE)
        say(RIVAL)
        theirs = Looks(both, x0, ends=True)
        options = {"maxiter": MOST, "maxfun": MOST, "gtol": 0.0, "ftol": 0.0}
        with contextlib.suppress(EnoughError):
            scipy.optimize.minimize(theirs, x0, jac=True, method=RIVAL, options=options)

    def run(solver: str, work: float, value: float) -> Run:
        return Run(
            problem=problem.name,
            group="cutest",
            unit="gradients",
            solver=solver,
            seed=0,
            work=work,
            seconds=float("inf"),  # it is not the time that is compared
            value=value,
            solved=bool(np.isfinite(work)),
            error="" if solver == RIVAL else ends.status.name,
            dimension=x0.size,
        )

    whole = float(looks.count) if ends.success else float("inf")
    return [
        run(OURS, float(looks.first), looks.value),
        run(ENDED, whole, float(ends.value)),
        run(RIVAL, float(theirs.first), theirs.value),
    ]
