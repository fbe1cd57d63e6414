"""Train a network on a step function: three methods

The third function of the paper's section 4.3 is a step with a ripple: 100 points, fitted by 50 tanh
units. The paper trains with the adaptive terminal, gamma = -150, its formula as printed, and a
search over 32 step sizes; gradient descent has the same search. After 2,000 iterations neither fits
the step well; the paper's method has half the error. (With `reading="exact"`, the formula without
the misprint, it is no better than gradient descent.) `Auto` has a smaller error than both before
its tenth step; between the points next to the step its network oscillates. The axis counts
gradients; a search counts as seventeen. The linear systems of `Auto`, of up to 150 equations, are
not counted, but are part of the printed seconds.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cfgd

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8b949e"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

z = np.linspace(-1, 1, 100)
y = (z > 0) + 0.2 * np.sin(2 * np.pi * z)
network = cfgd.ShallowNetwork(z, y, width=50)
x0 = network.init(0)

step = cfgd.NetworkStep()
paper = cfgd.AdaptiveTerminal(0.4, gamma=-150.0, nodes=1, step=step, reading="printed")
methods = {
    "gradient descent": (cfgd.GradientDescent(step), ORANGE, 2000),
    "adaptive terminal": (paper, BLUE, 2000),
    "Auto": (cfgd.Auto(), GREEN, 300),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
left.plot(z, y, "o", color=GREY, markersize=4, label="data")
fine = np.linspace(-1, 1, 1001)
for name, (method, colour, most) in methods.items():
    end = cfgd.minimize(network, x0, method, max_iterations=most)
    loss = 2 * end.history["value"] / len(z)
    work = end.history["iteration"] * end.evaluations / end.iterations
    print(f"{name:18} {end.iterations:5} iterations, {end.evaluations:6g} gradients:", end=" ")
    print(f"error {loss[-1]:.0e} in {end.seconds - end.compile_seconds:.1f} s")
    left.plot(fine, network.predict(end.x, fine), color=colour, label=name)
    right.loglog(work + 1, loss, color=colour, label=name)
left.set(xlabel="z", ylabel="network", title="Fitted networks", ylim=(-0.5, 2.8))
left.set_xticks([-1, -0.5, 0, 0.5, 1])
left.legend(loc="upper left")
right.set(xlabel="cost in gradients", ylabel="mean squared error", title="Training")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
