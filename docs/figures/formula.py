"""One coordinate's slice: the slopes between the terminal and x, and what their mean is."""

import jax
import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, line

C, X, ALPHA, NODES = -0.6, 1.5, 0.4, 6
ALPHAS = (0.1, 0.4, 0.7, 0.9)


def f(t):
    return 0.5 * t**2 + 0.6 * jnp.cos(3 * t)


def data():
    u, weights = cfgd.gauss_jacobi(ALPHA, NODES)
    d = cfgd.fractional_gradient(lambda x: f(x[0]), [X], [C], ALPHA, 0.0)[0]
    return {
        "nodes": C + np.asarray(u) * (X - C),
        "weights": np.asarray(weights),
        "d": float(d),
        "g": float(jax.grad(f)(X)),
    }


def slice_of(axis, run):
    t = np.linspace(-1.3, 2.1, 200)
    line(axis, t, f(t), "ink", label="f along one coordinate")
    top = float(f(X))
    for name, slope, colour in (
        ("gradient", run["g"], "orange"),
        ("mean slope d", run["d"], "blue"),
    ):
        near = np.linspace(X - 0.8, X + 0.45, 2)
        line(axis, near, top + slope * (near - X), colour, label=f"{name}: {slope:.2f}")
    nodes = run["nodes"]
    for node in nodes:
        near = node + np.array([-0.1, 0.1])
        line(axis, near, f(node) + jax.grad(f)(float(node)) * (near - node), "green")
    sizes = 260 * run["weights"]
    axis.scatter(nodes, f(nodes), sizes, color=LIGHT["green"], label="nodes, by weight", zorder=3)
    for name, at in (("c", C), ("x", X)):
        axis.plot(at, f(at), "o", color=LIGHT["ink"], markersize=5)
        axis.annotate(name, (at, float(f(at))), xytext=(-3, 9), textcoords="offset points")
    axis.set(xlabel="coordinate j", ylabel="f", ylim=(-0.75, 3.0))
    axis.legend(loc="upper center")


def densities(axis, run):
    u = np.linspace(0, 0.995, 200)
    colours = ("orange", "green", "blue", "purple")
    for alpha, colour in zip(ALPHAS, colours, strict=True):
        density = (1 - alpha) * (1 - u) ** -alpha
        line(axis, u, density, colour, label=f"alpha = {alpha}")
    axis.set(xlabel="from c (0) to x (1)", ylabel="weight", ylim=(0, 3))
    axis.legend()


PANELS = [
    [
        Panel("Slopes between c and x", slice_of),
        Panel("Weights for several orders", densities),
    ]
]
