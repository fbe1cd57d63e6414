"""Solvers of one case: cfgd, SciPy, optax, optimistix. Each gives back x and its work.

Work is counted in products with X or X' for least squares, else in gradients: a value with its
gradient is one, a value alone a half, a Hessian-vector product two, a Jacobian min(m, d).
A solver is asked with smaller and smaller tolerances until the target is met; only the run that
meets it counts, so that nobody pays for a tolerance of another meaning than ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.sparse.linalg

import cfgd
from cfgd.bench.cases import TARGET, Case

MOST = 20_000  # iterations of anything
RATES = (1e-3, 1e-2, 1e-1, 1.0)  # Adam's grid


class Outcome(NamedTuple):
    x: Any
    work: float
    values: Any = None  # by iteration, where known


@functools.lru_cache(maxsize=2)
def _plain(case: Case) -> Any:
    """The objective as a function that hashes by identity; data that it holds are constants."""
    return lambda x: case.fn(x)


Rival = Callable[[Case, float], Outcome]


def auto(case: Case, tolerance: float) -> Outcome:
    return _ours(case, None, tolerance, 2.1)


def paper(case: Case, tolerance: float) -> Outcome:
    return _ours(case, case.paper, tolerance, 13.0)


def _ours(case: Case, method: Any, tolerance: float, cost: float) -> Outcome:
    """With a budget, `cost` is a first guess at the gradients of an iteration."""
    most = MOST if case.budget is None else int(case.budget / cost)
    tolerance = tolerance if case.budget is None else 0.0
    ends = cfgd.minimize(
        case.objective, case.x0, method, tolerance=tolerance, max_iterations=most, every=10
    )
    if case.budget is not None and ends.evaluations > case.budget:
        return _ours(case, method, tolerance, 1.02 * ends.evaluations / ends.iterations)
    work = ends.evaluations * (2 if case.group == "least squares" else 1)
    return Outcome(ends.x, work, ends.history["value"])


class Counted:
    """X as a linear operator whose products are counted, its columns scaled."""

    def __init__(self, X: Any, scale: Any = 1.0) -> None:
        self.X, self.scale, self.products = X, scale, 0
        self.back = X.T.tocsr() if scipy.sparse.issparse(X) else X.T

    def times(self, v: Any) -> Any:
        self.products += 1
        return self.X @ (self.scale * v)

    def times_back(self, r: Any) -> Any:
        self.products += 1
        return self.scale * (self.back @ r)

    @property
    def operator(self) -> Any:
        return scipy.sparse.linalg.LinearOperator(
            self.X.shape, matvec=self.times, rmatvec=self.times_back, dtype=float
        )


def lsqr(case: Case, tolerance: float) -> Outcome:
    X, r = Counted(case.matrix), case.y - case.matrix @ case.x0
    ends = scipy.sparse.linalg.lsqr(X.operator, r, tolerance, tolerance, 0, iter_lim=MOST)
    return Outcome(case.x0 + ends[0], X.products)


def lsmr(case: Case, tolerance: float) -> Outcome:
    X, r = Counted(case.matrix), case.y - case.matrix @ case.x0
    ends = scipy.sparse.linalg.lsmr(
        X.operator, r, atol=tolerance, btol=tolerance, conlim=0, maxiter=MOST
    )
    return Outcome(case.x0 + ends[0], X.products)


def cg(case: Case, tolerance: float) -> Outcome:
    """On the normal equations, scaled by the norms of the columns."""
    squares = np.asarray((case.matrix**2).sum(0)).ravel()
    scale = 1 / np.sqrt(np.where(squares > 0, squares, 1))
    X = Counted(case.matrix, scale)
    d = case.x0.size
    normal = scipy.sparse.linalg.LinearOperator(
        (d, d), matvec=lambda v: X.times_back(X.times(v)), dtype=float
    )
    right = X.times_back(case.y - case.matrix @ case.x0)
    u, _ = scipy.sparse.linalg.cg(normal, right, rtol=tolerance, maxiter=MOST)
    return Outcome(case.x0 + scale * u, X.products)


@functools.lru_cache(maxsize=2)
def _compiled(case: Case) -> tuple[Any, Any]:
    """Value and gradient, Hessian-vector product: kept, so that no one pays for compiling."""
    fn = _plain(case)
    gradient = jax.grad(fn)
    return (
        jax.jit(jax.value_and_grad(fn)),
        jax.jit(lambda x, v: jax.jvp(gradient, (x,), (v,))[1]),
    )


def lbfgsb(case: Case, tolerance: float) -> Outcome:
    both, _ = _compiled(case)
    start = np.linalg.norm(both(case.x0)[1])

    def seen(x: Any) -> tuple[float, Any]:
        value, gradient = both(x)
        return float(value), np.asarray(gradient)

    most = case.budget or MOST
    gtol = 0.0 if case.budget else tolerance * start / np.sqrt(case.x0.size)
    options = {"maxiter": most, "maxfun": most, "gtol": gtol, "ftol": 0.0}
    ends = scipy.optimize.minimize(seen, case.x0, jac=True, method="L-BFGS-B", options=options)
    return Outcome(ends.x, ends.nfev * (2 if case.group == "least squares" else 1))


def trust_ncg(case: Case, tolerance: float) -> Outcome:
    both, product = _compiled(case)
    start = np.linalg.norm(both(case.x0)[1])
    work = 0.0

    def seen(x: Any) -> tuple[float, Any]:
        nonlocal work
        work += 1
        value, gradient = both(x)
        return float(value), np.asarray(gradient)

    def times(x: Any, v: Any) -> Any:
        nonlocal work
        work += 2
        return np.asarray(product(x, v))

    def over(x: Any) -> None:
        if case.budget is not None and work >= case.budget:
            raise StopIteration

    options = {"gtol": tolerance * start, "maxiter": 2000}
    ends = scipy.optimize.minimize(
        seen, case.x0, jac=True, hessp=times, method="trust-ncg", options=options, callback=over
    )
    return Outcome(ends.x, work)


def least_squares(case: Case, tolerance: float) -> Outcome:
    residuals, jacobian = _residuals(case)
    m, d = len(residuals(case.x0)), case.x0.size
    most = MOST // 10 if case.budget is None else max(1, case.budget // (min(m, d) + 1))
    ends = scipy.optimize.least_squares(
        lambda x: np.asarray(residuals(x)),
        case.x0,
        lambda x: np.asarray(jacobian(x)),
        x_scale="jac",
        ftol=None,
        xtol=1e-15,
        gtol=tolerance if case.budget is None else 1e-15,
        max_nfev=most,
    )
    return Outcome(ends.x, 0.5 * ends.nfev + min(m, d) * ends.njev)


@functools.lru_cache(maxsize=2)
def _residuals(case: Case) -> tuple[Any, Any]:
    fn = case.residuals
    return jax.jit(fn), jax.jit(jax.jacfwd(fn))


def adam(case: Case, tolerance: float) -> Outcome:
    """The best of the learning rates: least work to the target, else the least value."""
    runs = [_optax("adam")(_plain(case), case.x0, rate, *_limits(case)) for rate in RATES]
    least = min(runs, key=lambda run: (float(run[1]), float(run[2])))
    if case.budget is not None or least[1] >= MOST:
        least = min(runs, key=lambda run: np.nan_to_num(float(run[2]), nan=np.inf))
    return Outcome(np.asarray(least[0]), float(least[1]))


def optax_lbfgs(case: Case, tolerance: float) -> Outcome:
    x, work, _ = _optax("lbfgs")(_plain(case), case.x0, 0.0, *_limits(case))
    return Outcome(np.asarray(x), float(work))


def _limits(case: Case) -> tuple[float, float]:
    """The relative gradient to reach and the work that may be spent."""
    return (TARGET, MOST) if case.budget is None else (0.0, case.budget)


@functools.cache
def _optax(kind: str) -> Any:
    import optax

    @eqx.filter_jit
    def run(fn: Any, x: Any, rate: Any, target: Any, most: Any) -> Any:
        tool = optax.adam(rate) if kind == "adam" else optax.lbfgs()
        x = jnp.asarray(x)
        floor = target * jnp.linalg.norm(jax.grad(fn)(x))
        fresh = optax.value_and_grad_from_state(fn) if kind == "lbfgs" else None

        def again(at: Any) -> Any:
            _, _, work, norm, value = at
            return (work < most) & (norm > floor) & jnp.isfinite(value)

        def once(at: Any) -> Any:
            x, state, work, _, _ = at
            if fresh is None:
                value, gradient = jax.value_and_grad(fn)(x)
                step, state = tool.update(gradient, state, x)
                work = work + 1.0
            else:
                value, gradient = fresh(x, state=state)
                step, state = tool.update(
                    gradient, state, x, value=value, grad=gradient, value_fn=fn
                )
                work = work + state[-1].info.num_linesearch_steps
            return x + step, state, work, jnp.linalg.norm(gradient), value

        first = (x, tool.init(x), jnp.ones(()), jnp.inf * jnp.ones(()), jnp.ones(()))
        x, _, work, _, _ = jax.lax.while_loop(again, once, first)
        return x, work, fn(x)

    return run


def optimistix_bfgs(case: Case, tolerance: float) -> Outcome:
    most = case.budget or MOST
    ends = _optimistix("bfgs")(_plain(case), case.x0, 0.0 if case.budget else tolerance, most)
    return Outcome(np.asarray(ends[0]), float(ends[1]))


def optimistix_lm(case: Case, tolerance: float) -> Outcome:
    d = case.x0.size
    m = len(_residuals(case)[0](case.x0))
    most = MOST if case.budget is None else max(1, case.budget // (min(m, d) + 1))
    ends = _optimistix("lm")(case.residuals, case.x0, 0.0 if case.budget else tolerance, most)
    return Outcome(np.asarray(ends[0]), float(ends[1]) * (min(m, d) + 0.5))


@functools.cache
def _optimistix(kind: str) -> Any:
    import optimistix

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


def rivals(case: Case) -> dict[str, Rival]:
    """Who competes on a case; cfgd first."""
    if case.group == "least squares":
        linear = {"LSQR": lsqr, "LSMR": lsmr, "CG, Jacobi": cg, "L-BFGS-B": lbfgsb}
        return {"cfgd Auto": auto, **linear, "the paper": paper}
    found: dict[str, Rival] = {"cfgd Auto": auto, "L-BFGS-B": lbfgsb, "trust-ncg": trust_ncg}
    if case.residuals is not None:
        found |= {"least_squares": least_squares, "optimistix LM": optimistix_lm}
    found |= {"optimistix BFGS": optimistix_bfgs, "optax L-BFGS": optax_lbfgs, "optax Adam": adam}
    return found | ({"the paper": paper} if case.paper is not None else {})
