"""Sweep gamma and the step size of the adaptive terminal

On a quadratic with unit diagonal the adaptive terminal of lag 1 is Polyak's heavy ball method with
the momentum -eta gamma. `cfgd.sweep` runs 81 values of gamma times 80 step sizes eta as one batched
computation and counts iterations. The black line, where the spectral radius is one, and the star,
the best constants for a known spectrum, are computed from theory. The best constants need a sixth
of the iterations of gradient descent with its best step (the white line, gamma = 0). A smaller step
with more momentum still converges; a larger one diverges.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cfgd
from cfgd.theory import best_constants, spectral_radius

random = np.random.default_rng(0)
turn, _ = np.linalg.qr(random.normal(size=(10, 10)))
A = turn * np.logspace(-2, 0, 10) @ turn.T
A /= np.sqrt(np.outer(np.diag(A), np.diag(A)))  # unit diagonal
f, x0 = cfgd.Quadratic(A, np.ones(10)), np.zeros(10)

gammas, etas = np.linspace(-1.5, 0.5, 81), np.linspace(0.02, 1.32, 80)
gamma, eta = (each.ravel() for each in np.meshgrid(gammas, etas))
method = cfgd.AdaptiveTerminal(gamma=gamma, step=cfgd.FixedStep(eta))
runs = cfgd.sweep(f, x0, method, max_iterations=1000, every=1000)
count = np.where(runs.success, runs.iterations, np.nan)
radius = np.array([spectral_radius(A, g, e, lag=1) for g, e in zip(gamma, eta, strict=True)])
best, fastest, descent = best_constants(np.linalg.eigvalsh(A)), np.nanargmin(count), gamma == 0
names, counts = np.unique([status.name for status in runs.status], return_counts=True)
print(", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True)))
print(f"converged where theory says it diverges: {np.sum(runs.success & (radius >= 1))} runs")
print(f"fastest: {count[fastest]:g} at gamma = {gamma[fastest]:.2f}, eta = {eta[fastest]:.2f}")
print(f"by theory: gamma = {best.gamma:.2f}, eta = {best.eta:.2f}, rate = {best.rate:.2f}")
print(f"gradient descent, gamma = 0: {np.nanmin(count[descent]):g} at its best")

figure, axis = plt.subplots(figsize=(6.6, 4), layout="constrained")
shape = len(etas), len(gammas)
mesh = axis.pcolormesh(gammas, etas, count.reshape(shape), norm="log", cmap="viridis_r")
axis.contour(gammas, etas, radius.reshape(shape), [1.0], colors="black")
axis.plot([0, 0], [etas[0], 0.6], color="white")
axis.plot(best.gamma, best.eta, "*", markersize=18, color="white", markeredgecolor="black")
for text, at in {"diverges": (0.0, 1.0), "more than 1000 iterations": (-0.7, 0.1)}.items():
    axis.text(*at, text, ha="center", fontsize=11)
axis.text(0.0, 0.66, "gradient descent")
line = {"arrowstyle": "-"}
axis.annotate("best constants of theory", (best.gamma, best.eta), (-0.45, 1.2), arrowprops=line)
bar = figure.colorbar(mesh, label="iterations until the gradient has fallen to 1e-8", format="%d")
bar.set_ticks([70, 100, 200, 400, 1000], minor=False)
bar.minorticks_off()
axis.set(xlabel="gamma", ylabel="step size eta")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
