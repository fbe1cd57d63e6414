"""Compute a regularisation path by gamma

With a fixed terminal c, the paper's method does not converge to the minimiser of f but to that of f
+ gamma/2 |x - c|²_D (Theorem 3): gamma is a regularisation parameter, and each coefficient is
penalised in its own units. Left: the ten coefficients of a linear model of the progress of
diabetes, fitted to every tenth patient of scikit-learn's data; lines are the theorem, dots the ends
of runs. Coefficients that change sign were mostly noise. Right: the prediction error for the other
patients. The best gamma lowers it by 3 %.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import cfgd
from cfgd.theory import tikhonov_solution

BLUE, ORANGE, INK = "#0072b2", "#d55e00", "#1f2328"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

data = load_diabetes()
seen = np.arange(len(data.target)) % 10 == 0
mean, X = data.target[seen].mean(), data.data / data.data.std(0)
y = data.target - mean

zero, gammas, few = np.zeros(10), np.logspace(-4, 2, 121), np.logspace(-4, 2, 13)
A, b = X[seen].T @ X[seen], -X[seen].T @ y[seen]
lines = np.array([tikhonov_solution(A, b, zero, gamma) for gamma in gammas])
ends = cfgd.sweep(cfgd.LeastSquares(X[seen], y[seen]), zero, cfgd.NonAdaptive(zero, gamma=few))
gap = np.abs(ends.x - lines[::10]).max()
print(f"{ends.success.sum()} of {len(few)} runs converged, within {gap:.0e} of the theorem")

error = np.sqrt(((X[~seen] @ lines.T - y[~seen, None]) ** 2).mean(0))
best = error.argmin()
print(f"{seen.sum()} patients fitted, {(~seen).sum()} predicted: root mean square error")
print(f"{error[0]:.1f} at gamma = 1e-4, {error[best]:.1f} at gamma = {gammas[best]:.2f}, the best,")
print(f"{error[-1]:.1f} at gamma = 100, where little but the mean is fitted")

shape = {"figsize": (7.6, 3.9), "width_ratios": [3, 2], "layout": "constrained"}
figure, (left, right) = plt.subplots(1, 2, **shape)
for line, dots in zip(lines.T, ends.x.T, strict=True):
    colour = BLUE if line[0] * line[-1] > 0 else ORANGE
    left.semilogx(gammas, line, color=colour, lw=1.2)
    left.semilogx(few, dots, "o", color=colour, markersize=4)
left.text(0.5, 24, "keep their sign", color=BLUE, weight="bold")
left.text(1e-4, -14, "change their sign", color=ORANGE, weight="bold")
left.set(xlabel="gamma", ylabel="coefficient of a standardised column", ylim=(-16, 33))
left.set_title("Coefficients: theorem (lines), iteration (dots)")
right.semilogx(gammas, error, color=INK)
right.plot(gammas[best], error[best], "o", color=INK)
right.locator_params(axis="y", steps=[1, 2, 5, 10])
right.set(xlabel="gamma", ylabel="root mean square error", title="Prediction of patients not seen")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
