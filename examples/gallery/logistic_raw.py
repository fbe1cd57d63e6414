"""Logistic regression on unscaled data: Auto and L-BFGS

The columns of scikit-learn's breast cancer data range from 1e-3 to 1e3. L-BFGS (30 pairs) needs
many iterations on them, and fewer on standardised columns (with the penalty transformed). `Auto`
gets the raw columns. Its steps factorise a 30 by 30 matrix, so the right panel compares times.
scikit-learn's newton-cholesky (not drawn) takes as long as `Auto`, 3 ms.
"""

import sys
from pathlib import Path
from time import process_time as clock

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_limits

import cfgd

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
threadpool_limits(1)  # of everyone
X, y = load_breast_cancer(return_X_y=True)
f = cfgd.LinearModel(X, y, loss="logistic", l2=1e-3)


def l_bfgs(scale):
    Z, penalty, rows, began = X / scale, 1e-3 / scale**2, [], clock()

    def value_and_gradient(v):
        u = Z @ v
        value = (np.logaddexp(0, u) - y * u).sum() + penalty @ v**2 / 2
        rows.append((len(rows) + 1, value, clock() - began))
        return value, Z.T @ (expit(u) - y) + penalty * v

    options = {"maxcor": 30, "maxiter": 10_000, "maxfun": 10_000, "ftol": 0, "gtol": 1e-7}
    minimize(value_and_gradient, np.zeros(30), jac=True, method="L-BFGS-B", options=options)
    return rows


seen = {"L-BFGS, raw": l_bfgs(np.ones(30)), "L-BFGS, standardised": l_bfgs(X.std(0))}
cfgd.minimize(f, np.zeros(30), max_iterations=2)  # what is imported late
times = [clock()]
end = cfgd.minimize(f, np.zeros(30), tolerance=1e-12, callback=lambda _: times.append(clock()))
gradients = np.linspace(1, end.evaluations, end.iterations + 1)
seen["Auto, raw"] = np.stack([gradients, end.history["value"], np.array(times) - times[0]], 1)
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.9), sharey=True, layout="constrained")
for (name, rows), colour in zip(seen.items(), ("#d55e00", "#0072b2", "#009e73"), strict=True):
    gradients, values, seconds = np.transpose(rows)
    above = np.maximum(np.minimum.accumulate(values) - end.value, 1e-11)
    i = np.argmax(above < 1e-6)
    print(f"{name:20} {gradients[i]:5.0f} gradients, {seconds[i]:.3f} s to 1e-6")
    axes[0].loglog(gradients, above, color=colour, label=name)
    axes[1].loglog(seconds, above, color=colour)
axes[0].set(xlabel="gradients", ylabel="value − smallest value", ylim=(1e-10, 1e7))
axes[1].set(xlabel="seconds of one core")
axes[0].legend(loc="upper right")
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
