"""Adaptive order: lower the regularisation in stages

The adaptive order has a fixed terminal and lowers gamma in stages. Each stage converges towards its
own Tikhonov solution (dashed), from the end of the previous stage; with gamma = 0 the last stage
converges to the minimiser of f. The data are noisy, so that the true coefficients are not at the
minimiser but near one of the Tikhonov solutions: the end of each stage is a candidate. Gradient
descent (gamma = 0 throughout) comes nearly as close in fewer iterations, but gives no candidates to
choose from. Stages are not faster.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cfgd
from cfgd.theory import tikhonov_solution

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#eef0f3"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

random = np.random.default_rng(0)
U, _ = np.linalg.qr(random.normal(size=(60, 20)))
V, _ = np.linalg.qr(random.normal(size=(20, 20)))
X = U * np.logspace(0, -1.5, 20) @ V.T
truth = random.normal(size=20)
y = X @ truth + 0.05 * random.normal(size=60)
f, zero = cfgd.LeastSquares(X, y), np.zeros(20)

gammas, length = [3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.0], 200
stages = [cfgd.Stage(length, gamma=gamma) for gamma in gammas]
distance = {"distance": lambda x: jnp.linalg.norm(x - truth)}
options = {"max_iterations": length * len(gammas), "tolerance": 0.0, "record": distance}
order = cfgd.minimize(f, zero, cfgd.AdaptiveOrder(stages, zero), **options).history["distance"]
descent = cfgd.minimize(f, zero, cfgd.GradientDescent(), **options).history["distance"]

figure, axis = plt.subplots(figsize=(6.6, 4), layout="constrained")
print("distance to the true coefficients: Tikhonov solution, end of stage, gradient descent")
for s, gamma in enumerate(gammas):
    start, end = s * length, (s + 1) * length
    aim = np.linalg.norm(tikhonov_solution(X.T @ X, -X.T @ y, zero, gamma) - truth)
    print(f"  gamma = {gamma:<5g}  {aim:.2f}  {order[end]:.2f}  {descent[end]:.2f}")
    axis.axvspan(start, end, color=GREY if s % 2 else "white", lw=0, zorder=0)
    axis.plot([start, end], [aim, aim], "k--", label="" if s else "Tikhonov solution of the stage")
    axis.text((start + end) / 2, 6.1, f"γ = {gamma:g}", ha="center")
print(f"nearest: the schedule {order.min():.2f}, gradient descent {descent.min():.2f}", end=" ")
print(f"after {descent.argmin()} iterations")
axis.plot(order, color=BLUE, label="adaptive order")
axis.plot(descent, color=ORANGE, label="gradient descent")
axis.plot(descent.argmin(), descent.min(), "o", color=ORANGE)
axis.plot(order.argmin(), order.min(), "o", color=BLUE)
axis.set(xlabel="iteration", ylabel="distance to the truth", xlim=(0, 1600), ylim=(1, 6))
axis.legend(loc="upper right")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
