"""Rivals that run inside JAX: optax and optimistix."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd.apps.bench.field.cases import TARGET, Case
from cfgd.apps.bench.field.work import MOST, Outcome, residuals_of

RATES = (1e-3, 1e-2, 1e-1, 1.0)  # Adam's grid


def adam(case: Case, tolerance: float) -> Outcome:
    """The best of the learning rates: least work to the target, else the least value."""
    runs = [_optax("adam")(case.fn, case.x0, jnp.asarray(rate), *_limits(case)) for rate in RATES]

    def rank(run: Any) -> tuple[bool, float, float]:
        _, work, value, met = run
        return not met, float(work) if met else 0.0, np.nan_to_num(float(value), nan=np.inf)

    least = min(runs, key=rank)
    return Outcome(np.asarray(least[0]), float(least[1]))


def optax_lbfgs(case: Case, tolerance: float) -> Outcome:
    x, work, _, _ = _optax("lbfgs")(case.fn, case.x0, jnp.zeros(()), *_limits(case))
    return Outcome(np.asarray(x), float(work))


def _limits(case: Case) -> tuple[Any, Any]:
    """The relative gradient to reach and the work that may be spent."""
    target, most = (TARGET, MOST) if case.budget is None else (0.0, case.budget)
    return jnp.asarray(target), jnp.asarray(float(most))


@functools.cache
def _optax(kind: str) -> Any:
    optax: Any = importlib.import_module("optax")

    @eqx.filter_jit
    def run(fn: Any, x: Any, rate: Any, target: Any, most: Any) -> Any:
        tool = optax.adam(rate) if kind == "adam" else optax.lbfgs()
        x = jnp.asarray(x)
        floor = target * jnp.linalg.norm(jax.grad(fn)(x))
        fresh = optax.value_and_grad_from_state(fn) if kind == "lbfgs" else None

        def again(at: Any) -> Any:
            _, _, work, value, gradient = at
            return (work < most) & (jnp.linalg.norm(gradient) > floor) & jnp.isfinite(value)

        def once(at: Any) -> Any:
            x, state, work, value, gradient = at
            if fresh is None:
                step, state = tool.update(gradient, state, x)
                x, work = x + step, work + 1.0
                value, gradient = jax.value_and_grad(fn)(x)
            else:  # its search has seen the next point and keeps it
                step, state = tool.update(
                    gradient, state, x, value=value, grad=gradient, value_fn=fn
                )
                x, work = x + step, work + state[-1].info.num_linesearch_steps
                value, gradient = fresh(x, state=state)
            return x, state, work, value, gradient

        first = (x, tool.init(x), jnp.ones(()), *jax.value_and_grad(fn)(x))
        x, _, work, value, gradient = jax.lax.while_loop(again, once, first)
        return x, work, value, jnp.linalg.norm(gradient) <= floor

    return run


def optimistix_bfgs(case: Case, tolerance: float) -> Outcome:
    most = case.budget or MOST
    ends = _optimistix("bfgs")(case.fn, case.x0, _tolerance(case, tolerance), most)
    return Outcome(np.asarray(ends[0]), float(ends[1]))


def optimistix_lm(case: Case, tolerance: float) -> Outcome:
    d = case.x0.size
    m = len(residuals_of(case.residuals)[0](case.x0))
    most = MOST if case.budget is None else max(1, case.budget // (min(m, d) + 1))
    ends = _optimistix("lm")(case.residuals, case.x0, _tolerance(case, tolerance), most)
    return Outcome(np.asarray(ends[0]), float(ends[1]) * (min(m, d) + 0.5))


def optimistix_lm_steps(residuals: Any, x0: Any, steps: int) -> Any:
    """So many steps, without looking at a tolerance."""
    return _optimistix("lm")(residuals, x0, jnp.zeros(()), steps)[0]


def _tolerance(case: Case, tolerance: float) -> Any:
    return jnp.asarray(0.0 if case.budget else tolerance)


@functools.cache
def _optimistix(kind: str) -> Any:
    optimistix: Any = importlib.import_module("optimistix")

    @eqx.filter_jit
    def run(fn: Any, x: Any, tolerance: Any, most: int) -> Any:
        solver, solve = (
            (optimistix.BFGS, optimistix.minimise)
            if kind == "bfgs"
            else (optimistix.LevenbergMarquardt, optimistix.least_squares)
        )
        ends = solve(
            lambda x, _: fn(x),
            solver(rtol=tolerance, atol=tolerance),
            jnp.asarray(x),
            max_steps=most,
            throw=False,
        )
        return ends.value, ends.stats["num_steps"]

    return run
