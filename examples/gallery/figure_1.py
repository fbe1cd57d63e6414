"""Figure 1 of the paper: adaptive terminal and gradient descent

The function 10x² + y² is a valley. Gradient descent with exact line search zigzags and needs 92
iterations. The adaptive terminal, which averages slopes between x and the point before it (gamma =
-1), needs four. The right panel shows what the paper does not say: this needs its two starting
points, for which x₀'Ax₋₁ = 0. With other points before the first it takes 12, 28 and 52 iterations.
`Auto` scales each coordinate by its curvature and needs one. Iterations are counted until the
gradient is 1e-8 of its first value, the default tolerance of `minimize`.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cfgd

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#c9ced6"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
x0 = np.array([1.0, -10.0])
path = {"x": lambda x: x}

methods = {"gradient descent": (cfgd.GradientDescent(), ORANGE, "-o")}
for past, line in {(-1, -1): "-s", (-1, -1.01): "--", (-2, -1): "-.", (0.3, -0.7): ":"}.items():
    method = cfgd.AdaptiveTerminal(gamma=-1.0, past=[past])
    methods[f"adaptive terminal, past {past}"] = method, BLUE, line
methods["Auto"] = cfgd.Auto(), GREEN, "-D"

figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
x, y = np.meshgrid(np.linspace(-8, 8, 200), np.linspace(-11.4, 3, 200))
left.contour(x, y, 10 * x**2 + y**2, [1, 5, 15, 35, 65, 110], colors=GREY, linewidths=1)
for name, (method, colour, line) in methods.items():
    solution = cfgd.minimize(f, x0, method, record=path)
    print(f"{name:36} converged after {solution.iterations} iterations")
    run = solution.history
    if name in ("gradient descent", "adaptive terminal, past (-1, -1)"):
        left.plot(*run["x"].T, line, color=colour, markersize=4.5, label=name)
    heights = np.maximum(run["value"], 1e-20)  # zero has no place on this axis
    right.semilogy(heights, line[:-1] if line[-1] in "osD" else line, color=colour, label=name)
left.plot(0, 0, "k+", markersize=14)
left.annotate("start (1, -10)", x0, (8, -8), textcoords="offset points", ha="right", va="top")
left.set(xlabel="x", ylabel="y", title="10x² + y²: the paper's start", aspect="equal")
left.set_xticks([-5, 0, 5])
left.legend(loc="upper left")
right.set(xlabel="iteration", ylabel="value", xlim=(-2, 90), ylim=(1e-12, 1e9))
right.set_title("Other points before the first")
right.legend(fontsize=9, loc="upper right")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
