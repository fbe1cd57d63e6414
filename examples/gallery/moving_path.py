"""Animate the paths of three methods on Rosenbrock's function

Rosenbrock's function is a curved valley, a hundred times as steep across as along. Gradient descent
with an Armijo line search reaches the bottom of the valley and then moves slowly along it. The
adaptive terminal with the same line search (gamma = -0.2) is faster, because it has momentum.
`Auto` (L-BFGS) is at the minimum, the star, before iteration 50.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

import cfgd

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#c9ced6"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})


def f(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


methods = {
    "gradient descent": (cfgd.GradientDescent(cfgd.ArmijoStep()), ORANGE),
    "adaptive terminal": (cfgd.AdaptiveTerminal(gamma=-0.2, step=cfgd.ArmijoStep()), BLUE),
    "Auto": (cfgd.Auto(), GREEN),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9))
figure.subplots_adjust(left=0.1, right=0.97, bottom=0.13, wspace=0.25)
x, y = np.meshgrid(np.linspace(-1.6, 1.4, 120), np.linspace(-0.4, 1.6, 120))
left.contour(x, y, f((x, y)), np.logspace(-1.5, 2.7, 12), colors=GREY, linewidths=0.8)
left.plot(1, 1, "k*", markersize=14)
left.set(xlabel="x", ylabel="y")
right.set(xlabel="iteration", ylabel="value", yscale="log", xlim=(0, 150), ylim=(1e-8, 50))
moving = []
for name, (method, colour) in methods.items():
    run = cfgd.minimize(f, [-1.2, 1.0], method, max_iterations=150, record={"x": lambda x: x})
    print(f"{name:18} {run.status.name} after {run.iterations:3} iterations, value {run.value:.1e}")
    (path,) = left.plot([], [], color=colour, lw=1.2)
    (ball,) = left.plot([], [], "o", color=colour, markersize=8, label=name)
    (height,) = right.plot([], [], color=colour)
    moving.append((run.history["x"], run.history["value"], path, ball, height))
left.legend(loc="upper center")


def draw(k):
    left.set_title(f"iteration {k}")
    for points, values, path, ball, height in moving:
        path.set_data(*points[: k + 1].T)
        ball.set_data(*points[: k + 1][-1:].T)
        height.set_data(range(len(values[: k + 1])), values[: k + 1])


frames = [*range(0, 50, 2), *range(50, 151, 5), *[150] * 5]  # and time to look at the end
name = sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".gif")
FuncAnimation(figure, draw, frames).save(name, PillowWriter(fps=6), dpi=110)
