"""Auto on a quadratic by conjugate gradients, and on residuals with and without a Jacobian."""

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, contours, decades, line

T = np.linspace(0, 3, 20)
Y = 1 / (1 + T)
A, B = np.array([[3.0, 1.6], [1.6, 2.0]]), np.array([1.0, -4.0])


def residuals(p):
    return p[0] * jnp.exp(-p[1] * T) + p[2] - Y


def data():
    x0 = np.array([3.0, 0.1, 0.3])
    residual_run = cfgd.minimize(cfgd.Residuals(residuals), x0)
    function_run = cfgd.minimize(lambda p: jnp.sum(residuals(p) ** 2) / 2, x0)
    least = min(residual_run.value, function_run.value)
    record = {"x": lambda x: x[0], "y": lambda x: x[1]}
    path = cfgd.minimize(cfgd.Quadratic(A, B), np.array([1.5, -1.5]), record=record).history
    values = {
        "Levenberg-Marquardt": residual_run.history["value"],
        "L-BFGS": function_run.history["value"],
    }
    above = {name: value - least for name, value in values.items()}
    return {"above": above, "x": path["x"], "y": path["y"]}


def value(x, y):
    return (A[0, 0] * x**2 + 2 * A[0, 1] * x * y + A[1, 1] * y**2) / 2 + B[0] * x + B[1] * y


def plane(axis, run):
    contours(axis, value, (-3.2, 2.6), (-2.0, 5.0))
    x, y = run["x"], run["y"]
    first, last = np.array([x[0], y[0]]), np.array([x[1], y[1]])
    gradient = -(A @ last + B)
    memory = last - first
    for vector, colour, label, size in (
        (memory, "green", "x − c, the last step", 0.7),
        (gradient / np.diag(A), "orange", "negative scaled gradient", 1.0),
    ):
        to = last + size * vector / np.linalg.norm(vector)
        line(axis, [last[0], to[0]], [last[1], to[1]], colour, linewidth=3.0, label=label)
    line(axis, x, y, "blue", marker="o", markersize=4, label="two steps to the minimum")
    axis.set(xlabel="x", ylabel="y")
    axis.legend(loc="lower left")


def fits(axis, run):
    for (name, above), colour in zip(run["above"].items(), ("blue", "green"), strict=True):
        k = np.arange(len(above))
        line(axis, k, np.maximum(above, 1e-17), colour, marker="o", markersize=2.5, label=name)
    decades(axis, "value − smallest value")
    axis.set_facecolor("none")
    axis.tick_params(colors=LIGHT["ink"])


PANELS = [
    [
        Panel("Conjugate gradients on a quadratic", plane),
        Panel("One fit, as Residuals and as a function", fits),
    ]
]
