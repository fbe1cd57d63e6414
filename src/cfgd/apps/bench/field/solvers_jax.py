"""Solvers of optax and optimistix, which run inside JAX."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd.apps.bench.field.cases import TARGET, Case
from cfgd.apps.bench.field.work import MAX_ITERATIONS, SolverResult, compile_residuals

LEARNING_RATES = (1e-3, 1e-2, 1e-1, 1.0)  # the grid of Adam; the best run counts


def adam(case: Case, tolerance: float) -> SolverResult:
    """Run Adam with the best learning rate: least work to the target, or else lowest value."""
    runs = [
        _optax("adam")(case.fn, case.x0, jnp.asarray(rate), *_limits(case))
        for rate in LEARNING_RATES
    ]

    def rank(run: Any) -> tuple[bool, float, float]:
        _, work, value, met = run
        return not met, float(work) if met else 0.0, np.nan_to_num(float(value), nan=np.inf)

    best = min(runs, key=rank)
    return SolverResult(np.asarray(best[0]), float(best[1]))


def optax_lbfgs(case: Case, tolerance: float) -> SolverResult:
    x, work, _, _ = _optax("lbfgs")(case.fn, case.x0, jnp.zeros(()), *_limits(case))
    return SolverResult(np.asarray(x), float(work))


def _limits(case: Case) -> tuple[Any, Any]:
    """Return the target of the relative gradient norm and the limit of the work."""
    target, max_work = (TARGET, MAX_ITERATIONS) if case.budget is None else (0.0, case.budget)
    return jnp.asarray(target), jnp.asarray(float(max_work))


@functools.cache
def _optax(kind: str) -> Any:
    optax: Any = importlib.import_module("optax")

    @eqx.filter_jit
    def run(fn: Any, x: Any, rate: Any, target: Any, max_work: Any) -> Any:
        optimizer = optax.adam(rate) if kind == "adam" else optax.lbfgs()
        x = jnp.asarray(x)
        floor = target * jnp.linalg.norm(jax.grad(fn)(x))
        value_and_gradient = optax.value_and_grad_from_state(fn) if kind == "lbfgs" else None

        def unfinished(carry: Any) -> Any:
            _, _, work, value, gradient = carry
            return (work < max_work) & (jnp.linalg.norm(gradient) > floor) & jnp.isfinite(value)

        def step(carry: Any) -> Any:
            x, state, work, value, gradient = carry
            if value_and_gradient is None:
                update, state = optimizer.update(gradient, state, x)
                x, work = x + update, work + 1.0
                value, gradient = jax.value_and_grad(fn)(x)
            else:  # its line search has evaluated the next point and stores it in the state
                update, state = optimizer.update(
                    gradient, state, x, value=value, grad=gradient, value_fn=fn
                )
                x, work = x + update, work + state[-1].info.num_linesearch_steps
                value, gradient = value_and_gradient(x, state=state)
            return x, state, work, value, gradient

        initial = (x, optimizer.init(x), jnp.ones(()), *jax.value_and_grad(fn)(x))
        x, _, work, value, gradient = jax.lax.while_loop(unfinished, step, initial)
        return x, work, value, jnp.linalg.norm(gradient) <= floor

    return run


def optimistix_bfgs(case: Case, tolerance: float) -> SolverResult:
    limit = case.budget or MAX_ITERATIONS
    result = _optimistix("bfgs")(case.fn, case.x0, _tolerance(case, tolerance), limit)
    return SolverResult(np.asarray(result[0]), float(result[1]))


def optimistix_lm(case: Case, tolerance: float) -> SolverResult:
    d = case.x0.size
    m = len(compile_residuals(case.residuals)[0](case.x0))
    limit = MAX_ITERATIONS if case.budget is None else max(1, case.budget // (min(m, d) + 1))
    result = _optimistix("lm")(case.residuals, case.x0, _tolerance(case, tolerance), limit)
    return SolverResult(np.asarray(result[0]), float(result[1]) * (min(m, d) + 0.5))


def optimistix_lm_steps(residuals: Any, x0: Any, steps: int) -> Any:
    """Return the point after a fixed number of steps, without a convergence test."""
    return optimistix_lm_with_steps(residuals, x0, jnp.zeros(()), steps)[0]


def optimistix_lm_with_steps(residuals: Any, x0: Any, tolerance: Any, steps: int) -> Any:
    """Return the point and the number of steps, at most `steps`."""
    return _optimistix("lm")(residuals, x0, tolerance, steps)


def _tolerance(case: Case, tolerance: float) -> Any:
    return jnp.asarray(0.0 if case.budget else tolerance)


@functools.cache
def _optimistix(kind: str) -> Any:
    optimistix: Any = importlib.import_module("optimistix")

    @eqx.filter_jit
    def run(fn: Any, x: Any, tolerance: Any, max_steps: int) -> Any:
        solver, solve = (
            (optimistix.BFGS, optimistix.minimise)
            if kind == "bfgs"
            else (optimistix.LevenbergMarquardt, optimistix.least_squares)
        )
        result = solve(
            lambda x, _: fn(x),
            solver(rtol=tolerance, atol=tolerance),
            jnp.asarray(x),
            max_steps=max_steps,
            throw=False,
        )
        return result.value, result.stats["num_steps"]

    return run
