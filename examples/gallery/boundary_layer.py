"""Solve a boundary layer with a physics-informed network

A network with ten tanh units solves -0.05 u'' + u' = 1 with u(0) = u(1) = 0, whose solution is
steep near the right end. The loss is the residual of the equation at 64 points; a factor t(1 - t)
satisfies the boundary conditions. The problem is a badly scaled nonlinear least-squares problem, so
it is written as `cfgd.Residuals`. A Jacobian costs `Auto` as much as 30 gradients: at first L-BFGS
(30 pairs) is ahead, later it becomes slow. With equal work `Auto` ends with a lower error from two
of three starts.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import cfgd

BLUE, ORANGE = "#0072b2", "#d55e00"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
jax.config.update("jax_enable_x64", True)

t, fine = (1 - np.cos(np.pi * (np.arange(64) + 0.5) / 64)) / 2, np.linspace(0, 1, 1001)
exact = fine - np.expm1(fine / 0.05) / np.expm1(1 / 0.05)


def u(x, t):
    a, b, c = x.reshape(3, 10)
    return t * (1 - t) * (jnp.tanh(a * t + b) @ c)


def residuals(x):
    slope, curvature = jax.grad(u, 1), jax.grad(jax.grad(u, 1), 1)
    return jax.vmap(lambda t: slope(x, t) - 0.05 * curvature(x, t) - 1)(t) / 8


loss = jax.jit(jax.value_and_grad(lambda x: jnp.sum(residuals(x) ** 2) / 2))
network, f = jax.jit(jax.vmap(u, (None, 0))), cfgd.Residuals(residuals)
options = {"maxcor": 30, "maxiter": 6400, "maxfun": 6400, "ftol": 0, "gtol": 0}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
for seed in range(3):
    x0, seen = np.random.default_rng(seed).normal(size=30), []
    end = cfgd.minimize(f, x0, max_iterations=200, tolerance=0)
    rival = minimize(loss, x0, jac=True, method="L-BFGS-B", callback=seen.append, options=options)
    ours, theirs = (np.abs(network(x, fine) - exact).max() for x in (end.x, rival.x))
    print(f"start {seed}: error {ours:.0e} (Auto), {theirs:.0e} (L-BFGS, {rival.nfev} gradients)")
    right.loglog(np.linspace(1, end.evaluations, end.iterations + 1), end.history["value"], BLUE)
    values = [loss(x)[0] for x in seen]
    right.loglog(np.linspace(1, rival.nfev, len(seen)), values, "--", color=ORANGE)
left.plot(fine, exact, color="black", lw=4, alpha=0.25, label="exact solution")
left.plot(fine, network(end.x, fine), color=BLUE, label="network, trained by Auto")
left.set(xlabel="t", ylabel="u", ylim=(0, 1), title="Solution")
left.legend(loc="upper left")
right.set(xlabel="gradients", ylabel="half the mean squared residual", title="From three starts")
right.legend(["Auto", "L-BFGS"])
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
