"""The smoothed function of a fractional gradient

The scaled Caputo derivative of f is the ordinary slope of another function F (Theorem 1 of the
paper): slopes are averaged between the terminal c and the point. This f has six minima (dots), and
a descent method may end in each of them; the smaller the order alpha, the fewer minima F has. The
disadvantage: far from c the minimum of F is not that of f. Therefore the paper lets the terminal
follow x, or lets the order rise during the run.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cfgd

COLOURS = {0.9: "#009e73", 0.6: "#0072b2", 0.4: "#d55e00"}
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})


def f(z):
    return z**2 / 2 + 2 * jnp.cos(3 * z)


def minima(values):
    return np.flatnonzero((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])) + 1


z, terminal = np.linspace(-6, 6, 2001), 4.0
figure, axis = plt.subplots(figsize=(6.6, 4), layout="constrained")
y = np.asarray(f(z))
axis.plot(z, y, color="#8b949e", label="f = z²/2 + 2 cos 3z")
axis.plot(z[minima(y)], y[minima(y)], "o", color="#8b949e")
print(f"f:           {len(minima(y))} minima, the least at {z[y.argmin()]:.2f}")
for alpha, colour in COLOURS.items():
    F = cfgd.smoothing(f, alpha, 0.0, terminal)
    y = F(z)
    axis.plot(z, y, color=colour, label=f"F, alpha = {alpha}")
    axis.plot(z[minima(y)], y[minima(y)], "o", color=colour)
    print(f"alpha = {alpha}: {len(minima(y))} minima, the least at {z[y.argmin()]:.2f}")
axis.axvline(terminal, color="black", lw=1, ls=":")
axis.text(terminal + 0.1, 22, "terminal c", va="top")
axis.set(xlabel="z", ylabel="value", ylim=(-12, 24))
axis.legend(loc="upper center")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
