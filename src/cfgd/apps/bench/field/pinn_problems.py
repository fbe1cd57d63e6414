"""The differential equations of the group `pinn`, their samples, networks and weights.

Samples in the interior are points of Halton's sequence, the same ones for all starts. Initial and
boundary values are terms of the loss; where the solution is periodic, the network sees cos(pi x)
and sin(pi x) in place of x and is periodic, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from cfgd.apps.bench.field import pinn_references as references
from cfgd.apps.bench.field.pinn_network import (
    PinnProblem,
    Sample,
    Term,
    count_weights,
    derivatives,
    tanh_network,
)

VISCOSITY = 0.01 / np.pi
NOISE = 0.01  # deviation of the noise of the data over the deviation of the data
# Starts of the unknown coefficients of Burgers' equation: no convection, and a logarithm of the
# viscosity that is 0.8 of the true one, as in Raissi, Perdikaris and Karniadakis (2019), who take 0
# and -6.
UNKNOWN_STARTS = (0.0, -6.0)


def box_samples(count: int, *intervals: tuple[float, float]) -> Sample:
    """Return points of Halton's sequence in a box, one array for each coordinate."""
    lower, upper = np.array(intervals).T
    unit = qmc.Halton(len(intervals), scramble=True, rng=0).random(count)
    return tuple((lower + (upper - lower) * unit).T)


def square_boundary(count: int) -> Sample:
    """Return equidistant points of the boundary of [-1, 1]^2, `count` on each side."""
    s = np.linspace(-1, 1, count)
    one = np.ones(count)
    return np.concatenate([s, s, one, -one]), np.concatenate([one, -one, s, s])


def mesh(x: np.ndarray, y: np.ndarray) -> Sample:
    X, Y = np.meshgrid(x, y, indexing="ij")
    return X.ravel(), Y.ravel()


# ---------------------------------------------------------------------- closed form


def poisson_1d() -> PinnProblem:
    """u'' = f on [-1, 1] with u = sin(pi x) + sin(5 pi x) / 4, zero at the ends."""
    layers = (1, 24, 24, 1)
    network = tanh_network(layers)

    def exact(x: Any, xp: Any = np) -> Any:
        return xp.sin(np.pi * x) + xp.sin(5 * np.pi * x) / 4

    def u(p: Any, x: Any) -> Any:
        return network(p, jnp.stack([x]))

    def equation(p: Any, x: Any) -> Any:
        f = -(np.pi**2) * (jnp.sin(np.pi * x) + 25 * jnp.sin(5 * np.pi * x) / 4)
        return derivatives(lambda x: u(p, x), x, 2)[2] - f

    x = np.linspace(-1, 1, 501)
    return PinnProblem(
        "Poisson 1-D",
        layers,
        u,
        (
            Term("equation", equation, (np.linspace(-1, 1, 500),)),
            Term("boundary", u, (np.array([-1.0, 1.0]),), 100.0),
        ),
        (x,),
        exact(x),
    )


def poisson_2d() -> PinnProblem:
    """u_xx + u_yy = f on [-1, 1]^2 with u = exp(-x y) sin(pi x) sin(pi y), zero on the boundary."""

    def exact(x: Any, y: Any, xp: Any = np) -> Any:
        return xp.exp(-x * y) * xp.sin(np.pi * x) * xp.sin(np.pi * y)

    return _elliptic("Poisson 2-D", (2, 20, 20, 20, 1), 0.0, exact, 1000, 50)


def helmholtz() -> PinnProblem:
    """u_xx + u_yy + u = f on [-1, 1]^2 with u = sin(pi x) sin(4 pi y), zero on the boundary.

    The example of Wang, Teng and Perdikaris (2021).
    """

    def exact(x: Any, y: Any, xp: Any = np) -> Any:
        return xp.sin(np.pi * x) * xp.sin(4 * np.pi * y)

    return _elliptic("Helmholtz", (2, 30, 30, 30, 1), 1.0, exact, 2000, 100)


def _elliptic(
    name: str,
    layers: tuple[int, ...],
    square: float,
    exact: Callable[..., Any],
    inside: int,
    on_side: int,
) -> PinnProblem:
    """Return Laplace's operator plus `square` times u, with the right side of `exact`."""
    network = tanh_network(layers)

    def u(p: Any, x: Any, y: Any) -> Any:
        return network(p, jnp.stack([x, y]))

    def operator(v: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        value, _, v_xx = derivatives(lambda x: v(x, y), x, 2)
        return v_xx + derivatives(lambda y: v(x, y), y, 2)[2] + square * value

    def equation(p: Any, x: Any, y: Any) -> Any:
        f = operator(lambda x, y: exact(x, y, jnp), x, y)
        return operator(lambda x, y: u(p, x, y), x, y) - f

    points = mesh(np.linspace(-1, 1, 101), np.linspace(-1, 1, 101))
    return PinnProblem(
        name,
        layers,
        u,
        (
            Term("equation", equation, box_samples(inside, (-1, 1), (-1, 1))),
            Term("boundary", u, square_boundary(on_side), 100.0),
        ),
        points,
        exact(*points),
    )


# ---------------------------------------------------------------------- Burgers


BURGERS_LAYERS = (2, 20, 20, 20, 1)


def burgers() -> PinnProblem:
    """u_t + u u_x = 0.01 / pi u_xx on [-1, 1] x [0, 1], u(x, 0) = -sin(pi x), u(-1) = u(1) = 0."""
    network = tanh_network(BURGERS_LAYERS)

    def u(p: Any, x: Any, t: Any) -> Any:
        return network(p, jnp.stack([x, 2 * t - 1]))

    def equation(p: Any, x: Any, t: Any) -> Any:
        return _burgers_residual(lambda x, t: u(p, x, t), x, t, 1.0, VISCOSITY)

    def initial(p: Any, x: Any) -> Any:
        return u(p, x, jnp.zeros_like(x)) + jnp.sin(np.pi * x)

    x, t = _burgers_samples(3000)
    times = np.linspace(0, 1, 100)
    ends = (np.repeat([-1.0, 1.0], 100), np.tile(times, 2))
    return PinnProblem(
        "Burgers",
        BURGERS_LAYERS,
        u,
        (
            Term("equation", equation, (x, t)),
            Term("initial", initial, (np.linspace(-1, 1, 200),), 10.0),
            Term("boundary", u, ends, 10.0),
        ),
        *_burgers_reference(),
    )


def inverse_burgers() -> PinnProblem:
    """u_t + a u u_x = exp(b) u_xx with unknown a and b, and 3,000 values of u with 1 % of noise."""
    network, weights = tanh_network(BURGERS_LAYERS), count_weights(BURGERS_LAYERS)

    def u(p: Any, x: Any, t: Any) -> Any:
        return network(p, jnp.stack([x, 2 * t - 1]))

    def equation(p: Any, x: Any, t: Any) -> Any:
        a, b = p[weights], p[weights + 1]
        return _burgers_residual(lambda x, t: u(p, x, t), x, t, a, jnp.exp(b))

    def data(p: Any, x: Any, t: Any, measured: Any) -> Any:
        return u(p, x, t) - measured

    x, t = box_samples(3000, (-1, 1), (0, 1))
    exact = references.burgers(x, t, VISCOSITY)
    noise = NOISE * np.std(exact) * np.random.default_rng(0).normal(size=len(x))
    return PinnProblem(
        "inverse Burgers",
        BURGERS_LAYERS,
        u,
        (
            Term("equation", equation, _burgers_samples(2000)),
            Term("data", data, (x, t, exact + noise), 10.0),
        ),
        *_burgers_reference(),
        coefficients=UNKNOWN_STARTS,
    )


def _burgers_residual(
    u: Callable[[Any, Any], Any], x: Any, t: Any, convection: Any, viscosity: Any
) -> Any:
    value, u_x, u_xx = derivatives(lambda x: u(x, t), x, 2)
    u_t = derivatives(lambda t: u(x, t), t, 1)[1]
    return u_t + convection * value * u_x - viscosity * u_xx


def _burgers_samples(count: int) -> Sample:
    """Return samples; x is cubed in every second one.

    They are dense near x = 0, where a front of width 0.01 arises: with uniform samples a network
    has a small loss and a large error, because it may jump between them.
    """
    x, t = box_samples(count, (-1, 1), (0, 1))
    return np.where(np.arange(count) % 2 == 0, x, x**3), t


@functools.cache
def _burgers_reference() -> tuple[Sample, np.ndarray]:
    x, t = mesh(np.linspace(-1, 1, 201), np.linspace(0.02, 1, 50))
    return (x, t), references.burgers(x, t, VISCOSITY)


# ---------------------------------------------------------------------- periodic


def allen_cahn() -> PinnProblem:
    """u_t = 1e-4 u_xx + 5 (u - u^3) on [-1, 1] x [0, 1], periodic, u(x, 0) = x^2 cos(pi x)."""

    def equation(u: Callable[[Any, Any], Any], x: Any, t: Any) -> Any:
        value, _, u_xx = derivatives(lambda x: u(x, t), x, 2)
        u_t = derivatives(lambda t: u(x, t), t, 1)[1]
        reaction = references.ALLEN_CAHN_REACTION * (value - value**3)
        return u_t - references.ALLEN_CAHN_DIFFUSION * u_xx - reaction

    return _periodic(
        "Allen-Cahn",
        (3, 30, 30, 30, 1),
        equation,
        lambda x: x**2 * jnp.cos(np.pi * x),
        100.0,
        2500,
        references.allen_cahn(_TIMES, 2048)[:, ::16],
    )


def korteweg_de_vries() -> PinnProblem:
    """u_t + u u_x + 0.0025 u_xxx = 0 on [-1, 1] x [0, 1], periodic, u(x, 0) = cos(pi x)."""

    def equation(u: Callable[[Any, Any], Any], x: Any, t: Any) -> Any:
        value, u_x, _, u_xxx = derivatives(lambda x: u(x, t), x, 3)
        u_t = derivatives(lambda t: u(x, t), t, 1)[1]
        return u_t + value * u_x + references.KDV_DISPERSION * u_xxx

    return _periodic(
        "Korteweg-de Vries",
        (3, 25, 25, 25, 1),
        equation,
        lambda x: jnp.cos(np.pi * x),
        10.0,
        2000,
        references.korteweg_de_vries(_TIMES, 512)[:, ::4],
    )


_TIMES = np.linspace(0, 1, 51)
_PERIODIC_POINTS = 128  # of the reference in x


def _periodic(
    name: str,
    layers: tuple[int, ...],
    residual: Callable[..., Any],
    start: Callable[[Any], Any],
    weight: float,
    inside: int,
    reference: np.ndarray,
) -> PinnProblem:
    """Return an equation with values `start(x)` at t = 0, whose term has the `weight`."""
    network = tanh_network(layers)

    def u(p: Any, x: Any, t: Any) -> Any:
        return network(p, jnp.stack([jnp.cos(np.pi * x), jnp.sin(np.pi * x), 2 * t - 1]))

    def equation(p: Any, x: Any, t: Any) -> Any:
        return residual(lambda x, t: u(p, x, t), x, t)

    def initial(p: Any, x: Any) -> Any:
        return u(p, x, jnp.zeros_like(x)) - start(x)

    t, x = mesh(_TIMES, references.grid(_PERIODIC_POINTS))
    return PinnProblem(
        name,
        layers,
        u,
        (
            Term("equation", equation, box_samples(inside, (-1, 1), (0, 1))),
            Term("initial", initial, (references.grid(256),), weight),
        ),
        (x, t),
        reference.ravel(),
    )


MAKERS: dict[str, Callable[[], PinnProblem]] = {
    "Poisson 1-D": poisson_1d,
    "Poisson 2-D": poisson_2d,
    "Burgers": burgers,
    "Allen-Cahn": allen_cahn,
    "Helmholtz": helmholtz,
    "Korteweg-de Vries": korteweg_de_vries,
    "inverse Burgers": inverse_burgers,
}


@functools.cache
def problem(name: str) -> PinnProblem:
    """Return a problem by name, the same object each time, so that it is compiled once."""
    return MAKERS[name]()
