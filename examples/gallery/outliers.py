"""Fit data with outliers by a robust loss

A tenth of these points is wrong, as if a detector saturated or a digit was misread. Outliers
dominate the squared loss; Cauchy's loss gives little weight to points far from the curve. The two
fits differ only in the argument `loss` and have the same start. The bands are computed from 40
resampled data sets (bootstrap). The scale beyond which a point counts for less, here 0.1, the
standard deviation of the noise, must be known or guessed.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cfgd

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8b949e"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})


def model(t, size, rate, frequency, rest):
    return size * jnp.exp(-rate * t) * jnp.cos(frequency * t) + rest


truth, start = np.array([2.0, 0.3, 2.5, 1.0]), [1.0, 0.1, 2.2, 0.0]
random = np.random.default_rng(0)
t = np.sort(random.uniform(0, 10, 60))
y = np.asarray(model(t, *truth)) + 0.1 * random.normal(size=60)
wrong = np.arange(60) % 10 == 5
y[wrong] += random.uniform(2, 4, 6)

figure, axis = plt.subplots(figsize=(6.6, 4), layout="constrained")
fine = np.linspace(0, 10, 400)
axis.plot(t[~wrong], y[~wrong], "o", color=GREY, markersize=5, label="data")
axis.plot(t[wrong], y[wrong], "x", color="black", markersize=8, mew=2, label="wrong data")
axis.plot(fine, model(fine, *truth), color=GREY, lw=5, alpha=0.4, label="truth")
print("truth   ", truth)
for loss, colour in {"squared": ORANGE, "cauchy": BLUE}.items():
    fit = cfgd.curve_fit(model, t, y, start, loss=loss, scale=0.1)
    print(f"{loss:8}", fit.parameters.round(3), fit.solution.status.name)
    curves = []
    for _ in range(40):
        i = random.integers(60, size=60)
        p = cfgd.curve_fit(model, t[i], y[i], fit.parameters, loss=loss, scale=0.1).parameters
        curves.append(model(fine, *p))
    axis.fill_between(
        fine, *np.quantile(curves, [0.05, 0.95], axis=0), color=colour, alpha=0.2, lw=0
    )
    axis.plot(fine, model(fine, *fit.parameters), color=colour, label=f"{loss} loss")
axis.set(xlabel="t", ylabel="y")
axis.legend(ncols=2)
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
