"""Regularise an inverse problem: densities from gravity measurements

64 densities under the ground are estimated from 64 measurements of gravity with 3 % of noise. The
matrix has a condition number of 1e12: the exact solution amplifies the noise to 300,000 times the
true densities. Two remedies are compared: stopping early, because descent methods find the smooth
parts first, and regularisation by gamma with a fixed terminal c = 0. Morozov's rule, which needs
only the size of the noise, chooses the iteration (dots) and gamma (dashed line): the residual is
then as large as the noise. All end near the best possible error, `Auto` after a few iterations. No
method recovers the sharp edges of the block.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cfgd

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#c9ced6"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

n, depth = 64, 0.15
t = (np.arange(n) + 0.5) / n
X = depth / n / (depth**2 + (t[:, None] - t) ** 2) ** 1.5
truth = np.exp(-(((t - 0.3) / 0.1) ** 2)) + 0.6 * ((t > 0.6) & (t < 0.8))
size = 0.03 * (X @ truth).max()
y = X @ truth + size * np.random.default_rng(0).normal(size=n)
f, zero, noise = cfgd.LeastSquares(X, y), np.zeros(n), size * np.sqrt(n)
record = {"error": lambda x: jnp.linalg.norm(x - truth) / jnp.linalg.norm(truth)}
methods = {
    "gradient descent": (cfgd.GradientDescent(), ORANGE),
    "adaptive terminal": (cfgd.AdaptiveTerminal(gamma=-0.25), BLUE),
    "Auto": (cfgd.Auto(), GREEN),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
left.fill_between(t, truth, step="mid", color=GREY, lw=0, label="truth")
for name, (method, colour) in methods.items():
    run = cfgd.minimize(f, zero, method, max_iterations=20_000, tolerance=0, record=record).history
    error, stop = run["error"], int(np.argmax(np.sqrt(2 * run["value"]) <= noise))
    print(f"{name:17} after {stop:2} iterations: error {error[stop]:.2f} (the smallest is", end=" ")
    print(f"{error.min():.2f}); after {len(error) - 1}: {error[-1]:.2g}")
    right.loglog(np.arange(len(error)) + 1, error, color=colour, label=name)
    right.plot(stop + 1, error[stop], "o", color=colour, markersize=8)
early = cfgd.minimize(f, zero, max_iterations=stop).x
left.plot(t, early, color=GREEN, label=f"Auto, {stop} iterations")
gammas = np.logspace(-2, 0, 21)
held = cfgd.sweep(f, zero, cfgd.NonAdaptive(zero, gamma=gammas))
last = np.flatnonzero(np.sqrt(2 * held.value) <= noise)[-1]
error = np.linalg.norm(held.x[last] - truth) / np.linalg.norm(truth)
print(f"regularised by gamma = {gammas[last]:.1f}: error {error:.2f}")
left.plot(t, held.x[last], "k--", label=f"regularised, gamma = {gammas[last]:.1f}")
right.axhline(error, color="black", ls="--", label="regularised by gamma")
left.set(xlabel="position", ylabel="density", ylim=(-0.15, 1.45))
left.legend(loc="upper right")
right.set(xlabel="iteration + 1", ylabel="relative error of the density", ylim=(0.1, 30))
right.legend(loc="upper right")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
