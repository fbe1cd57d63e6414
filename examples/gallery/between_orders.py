"""Caputo derivatives of orders from 0 to 2

This example computes Caputo derivatives of a hill, exp(-(x - 3)²), of the orders 0, 0.1, ..., 2.
The terminal, where the integral of the derivative begins, is 0. At whole orders the derivatives are
the hill, its slope and its curvature; the other orders interpolate between them. A derivative of
whole order depends on f near one point, a derivative of fractional order on all values since the
terminal. To the right of the hill, where f is zero to seven digits, the fractional derivatives are
therefore not zero, and lower orders decay more slowly. This dependence on earlier values is the
memory of the fractional gradient.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cfgd

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})


def f(x):
    return jnp.exp(-((x - 3) ** 2))


x = np.linspace(0, 8, 401)[1:]
curves = {0.0: np.exp(-((x - 3) ** 2))}
for order in np.linspace(0, 2, 21)[1:].round(1):
    curves[order] = cfgd.caputo(f, order, terminal=0.0)(x)

classical = {1.0: -2 * (x - 3) * curves[0.0], 2.0: (4 * (x - 3) ** 2 - 2) * curves[0.0]}
for order, y in classical.items():
    gap = np.abs(curves[order] - y).max()
    print(f"order {order:g}: within {gap:.0e} of the classical derivative")
for order in (0.5, 1.5):
    print(f"order {order}: {curves[order][-1]:+.4f} at x = 8, where f is {curves[0.0][-1]:.0e}")

figure, axis = plt.subplots(figsize=(6.6, 4), layout="constrained")
colours = plt.get_cmap("viridis")
for order, y in curves.items():
    name = {0.0: "0: f", 0.5: "0.5", 1.0: "1: slope", 1.5: "1.5", 2.0: "2: curvature"}.get(order)
    axis.plot(x, y, color=colours(order / 2.2), lw=2.8 if name else 0.8, label=name)
axis.axhline(0, color="black", lw=0.6)
axis.legend(title="order")
axis.set(xlabel="x", ylabel="derivative of exp(-(x - 3)²)", xlim=(0, 8))
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
