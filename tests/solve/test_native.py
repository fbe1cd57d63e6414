"""Loops as one native function: the same numbers, and what cannot be one is left as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special

import cfgd
from cfgd.solve import native as module
from cfgd.solve.native import LARGEST, NESTED, TRIED, fits, native
from cfgd.solve.program import WAYS, _Program
from problems import few

A = np.random.default_rng(3).normal(size=(5, 5)) / 4
X = np.array([0.31, -0.72, 0.45, -0.13, 0.58])


@pytest.fixture(autouse=True)
def in_double_precision():
    with jax.enable_x64(True):
        yield


def trigonometry(A, x):
    waves = jnp.sin(x) + jnp.cos(x) * jnp.tan(x) - jnp.arcsin(x) + jnp.arccos(x) - jnp.arctan(x)
    return waves + jnp.arctan2(x, A[0]) + lax.tan(x) * jnp.arctanh(x)


def exponentials(A, x):
    positive = jnp.abs(x) + 0.5
    rise = jnp.exp(x) + jnp.expm1(x) + jnp.exp2(x) + jnp.sinh(x) + jnp.cosh(x) + jnp.tanh(x)
    roots = jnp.sqrt(positive) + jnp.cbrt(x) + lax.rsqrt(positive) + positive**0.3 + x**3
    logs = jnp.log(positive) + jnp.log1p(positive) + jnp.arcsinh(x) + jnp.arccosh(1 + positive)
    return rise - roots * logs + jax.nn.sigmoid(x) - lax.square(x)


def special_functions(A, x):
    positive = jnp.abs(x) + 0.5
    return (
        special.gammaln(positive)
        + special.digamma(positive)
        + special.erf(x) * (special.erfc(x) - special.erfinv(x / 2))
    )


def rounding(A, x):
    steps = jnp.floor(3 * x) + jnp.ceil(2 * x) - lax.round(x) + jnp.sign(x) + lax.rem(x, A[1])
    return (
        steps / jnp.clip(jnp.nextafter(x, 9), 0.2, 0.9)
        + lax.clamp(A[0], x, jnp.abs(A[0]))
        - lax.stop_gradient(x)
    )


def reductions(A, x):
    every = jnp.any(x > 0.9) | (jnp.all(x < 2) & ~jnp.any(x != x)) ^ jnp.isfinite(jnp.prod(A))
    running = jnp.cumsum(x) + jnp.cumprod(x) - lax.cummax(x) + lax.cummin(x)
    ends = jnp.argmax(A, 0) - jnp.argmin(x) + jnp.sum(A, 1) + jnp.max(A, 0) * jnp.min(x)
    return jnp.where(every & (x <= 9) & (x >= -9), -running, x) + ends


def shapes(A, x):
    i = jnp.argmax(x)
    cut = lax.dynamic_update_slice_in_dim(x, lax.dynamic_slice_in_dim(x, i, 2) * 2, 1, 0)
    put = cut.at[i].set(0.3).at[jnp.array([0, 0, 2])].add(x[:3])
    put = put + jnp.roll(x, 1)[::-1] + jnp.pad(x[1:4], 1) + jnp.concatenate([x[3:], x[:3]])
    block = jnp.stack([x, put]).T.reshape(2, 5)[::-1, jnp.arange(5)] + jnp.tile(x, (2, 1))
    first, second = jnp.split(block, 2)
    return first[0] + jnp.squeeze(second) + jnp.diagonal(A) + jnp.expand_dims(x, 0)[0].copy()


def sums(A, x):
    """On a matrix of numbers that XLA would hand to a library."""
    rows = jnp.outer(jnp.arange(64, dtype=x.dtype), x)
    return (rows[:, :, None] * A).sum(1).mean(0)


def products(A, x):
    pairs = jnp.einsum("bij,bj->bi", jnp.stack([A, 2 * A]), jnp.stack([x, 3 * x]))
    return A @ x - x @ A + A.T @ (A @ x) + (x @ x) * pairs[1] + jnp.sum(A * A) * x


def loops(A, x):
    x = lax.scan(lambda x, a: (x - 0.1 * a, x[0]), x, A)[0]
    x = lax.while_loop(lambda at: at[1] < 3, lambda at: (0.9 * at[0], at[1] + 1), (x, 0))[0]
    return jax.nn.relu(x) + jax.grad(lambda x: jnp.sum(jnp.tanh(A @ x)))(x)


PROGRAMS = [
    trigonometry, exponentials, special_functions, rounding, reductions, shapes, sums, products,
    loops,
]  # fmt: skip


def looping(fn):
    def loop(A, x, n):
        def body(at):
            k, x = at
            return k + 1, jnp.clip(0.5 * x + 0.1 * jnp.tanh(fn(A, x)), -0.9, 0.9)

        return lax.while_loop(lambda at: at[0] < n, body, (0, x))[1]

    return loop


def names(program):
    found = set()
    for equation in program.eqns:
        found.add(equation.primitive.name)
        for nested in module._nested(equation):
            found |= names(nested)
    return found


@pytest.mark.parametrize("dtype", few([np.float64, np.float32]))
@pytest.mark.parametrize("fn", PROGRAMS)
def test_a_native_loop_gives_the_same_numbers(fn, dtype):
    numbers = A.astype(dtype), X.astype(dtype), 7
    loop = looping(fn)
    assert fits(jax.make_jaxpr(loop)(*numbers).jaxpr)
    lowered = jax.jit(native(loop)).lower(*numbers).as_text()
    assert "xla_cpu_small_call" in lowered
    program = _Program(loop, loops=True)
    ours, plain = program(*numbers), jax.jit(loop)(*numbers)
    assert any(way == WAYS[-1] for way in program.ways)  # it was not needed
    np.testing.assert_allclose(ours, plain, rtol=50 * np.finfo(dtype).eps)


def test_everything_on_the_list_was_tried():
    seen = set().union(*(names(jax.make_jaxpr(looping(fn))(A, X, 7).jaxpr) for fn in PROGRAMS))
    other_versions = {"pjit", "scatter_add", "stack", "tile"}
    inserted = {"closed_call", "custom_vjp_call", "add_any"}  # by transformations
    assert (TRIED | NESTED) - seen - other_versions - inserted == set()


@pytest.mark.parametrize(
    "fn",
    [
        lambda A, x: lax.cond(x[0] > 0, lambda: A @ x, lambda: x),
        lambda A, x: (A @ A) @ x,
        lambda A, x: jnp.sort(x),
        lambda A, x: jnp.linalg.solve(A, x),
        lambda A, x: jax.pure_callback(np.tanh, jax.ShapeDtypeStruct((5,), float), x),
        lambda A, x: x + jnp.ones(LARGEST + 1).sum() * jnp.arange(LARGEST + 1).sum(),
        lambda A, x: jnp.real(x * (1 + 2j)),
    ],
    ids=["condition", "two matrices", "sort", "solve", "callback", "large", "complex"],
)
def test_what_cannot_be_native_is_left_as_it_is(fn):
    loop = looping(fn)
    assert "xla_cpu_small_call" not in jax.jit(native(loop)).lower(A, X, 7).as_text()
    assert np.all(np.isfinite(jax.jit(native(loop))(A, X, 7)))


def test_a_loop_that_xla_refuses_is_compiled_as_usual(monkeypatch):
    """Another version of it may have no place for something on the list."""
    monkeypatch.setattr(module, "TRIED", TRIED | {"sort"})
    solution = cfgd.minimize(
        lambda x: jnp.sum(jnp.sort(x) ** 2 * jnp.arange(1.0, 4)), [3.0, 1.0, 2.0],
        cfgd.GradientDescent(step=cfgd.ArmijoStep()),
    )  # fmt: skip
    assert solution.success
    np.testing.assert_allclose(solution.x, 0, atol=1e-6)


@pytest.mark.parametrize("step", few([cfgd.ArmijoStep(), cfgd.ExactStep(), cfgd.GridStep()]))
def test_a_run_is_native(step):
    f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    seen = []
    original = module.set_xla_metadata

    def note(*args, **kwargs):
        seen.append(kwargs)
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "set_xla_metadata", note)
        method = cfgd.AdaptiveTerminal(gamma=-0.1372, step=step, lag=2)
        solution = cfgd.minimize(f, [0.5, 0.25], method, record={"first": lambda x: x[0]})
        np.testing.assert_allclose(solution.x, [-1.2, 2.6], atol=1e-6)
    assert seen == [module.ATTRIBUTES]
