"""A physics-informed network for a boundary layer: -eps u'' + u' = 1, u(0) = u(1) = 0."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd.apps.bench.training.problem import TrainingProblem, dense, dense_init

EPS = 0.05
POINTS = 64


def exact(x: Any) -> Any:
    """Return x - (e^((x - 1)/eps) - e^(-1/eps)) / (1 - e^(-1/eps)): the layer is at x = 1."""
    small = np.exp(-1 / EPS)
    return x - (jnp.exp((x - 1) / EPS) - small) / (1 - small)


def solution(params: Any, x: Any) -> Any:
    """Return the network times x (1 - x), which satisfies both boundary conditions."""
    return x * (1 - x) * dense(params, x[None])[0]


def residual(u: Any, x: Any) -> Any:
    """Return -eps u'' + u' - 1 at one point."""

    def slope(x: Any) -> Any:
        return jax.jvp(u, (x,), (jnp.ones_like(x),))[1]

    first, second = jax.jvp(slope, (x,), (jnp.ones_like(x),))
    return -EPS * second + first - 1


def boundary_layer(steps: int) -> TrainingProblem:
    """Return the problem: all points in every batch, and the error of u itself."""
    midpoints = (np.arange(POINTS) + 0.5) / POINTS
    grid = np.linspace(0, 1, 501)

    def loss(params: Any, x: Any, y: Any) -> Any:
        residuals = jax.vmap(lambda x: residual(lambda t: solution(params, t), x))(x)
        return jnp.mean((residuals - y) ** 2)

    def error(params: Any) -> Any:
        u = jax.vmap(lambda x: solution(params, x))(grid)
        return jnp.linalg.norm(u - exact(grid)) / jnp.linalg.norm(exact(grid))

    return TrainingProblem(
        "boundary layer",
        "-0.05 u'' + u' = 1 with u(0) = u(1) = 0 at 64 points, network u = x (1 - x) N(x), "
        "N of size 1-16-16-1",
        lambda key: dense_init(key, (1, 16, 16, 1)),
        loss,
        error,
        midpoints,
        np.zeros(POINTS),
        batch=POINTS,
        steps=steps,
        error_is="relative L2 error of u",
        double=True,
    )
