"""Train a physics-informed network, from docs/guides/pinn.md: u'' + u + x = 0."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import cfgd


def equation(u, x):
    return jax.grad(jax.grad(u))(x) + u(x) + x


def boundary(u, x):
    return u(x)


n = 30
f = cfgd.ResidualTerms(
    equation=cfgd.Residuals(equation, samples=(np.linspace(0, 1, n),)),
    boundary=cfgd.Residuals(boundary, samples=(np.array([0.0, 1.0]),)),
    weights={"equation": 2 / n, "boundary": 100.0},
)
model = eqx.nn.MLP("scalar", "scalar", 8, 1, activation=jnp.tanh, key=jax.random.key(0))
solution = cfgd.minimize(f, model, max_iterations=200)

grid = np.linspace(0, 1, 101)
exact = np.sin(grid) / np.sin(1) - grid
assert np.abs(jax.vmap(solution.x)(grid) - exact).max() < 1e-4
assert list(solution.terms) == ["equation", "boundary"]
