"""Fit a NIST reference problem with seven parameters

Thurber's data, the mobility of electrons in silicon against the logarithm of their density, is one
of NIST's reference problems of the highest difficulty: a ratio of two cubics with strongly
correlated parameters. From NIST's more distant start `cfgd.curve_fit` finds the certified
parameters and their standard errors. The residuals on the left are a third as large as the others.
The standard errors of NIST and of `curve_fit` assume that all points have the same standard
deviation; `sigma=` would give different ones.
"""

import sys
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import cfgd
from cfgd.apps.data.nist import regressions

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})


def mobility(x, b1, b2, b3, b4, b5, b6, b7):
    return (b1 + b2 * x + b3 * x**2 + b4 * x**3) / (1 + b5 * x + b6 * x**2 + b7 * x**3)


nist = regressions()["Thurber"]
x, y, start = nist.data["x"], nist.y, nist.starts[0]
fit = cfgd.curve_fit(mobility, x, y, start, tolerance=1e-12)
b, error, residual = fit.parameters, fit.standard_errors, y - mobility(x, *fit.parameters)
wrong = np.abs(error / nist.deviations - 1).max()
print(fit)
print(
    f"NIST's digits: {nist.digits(b):.1f} of all parameters, {-np.log10(wrong):.1f} of all errors"
)
print(f"residuals: {residual[x < -2].std():.1f} for x < -2, {residual[x > -2].std():.1f} above")

figure, axes = plt.subplot_mosaic("AAB;AAB;CCB", figsize=(7.6, 4.6), layout="constrained")
top, side, low = (axes[name] for name in "ABC")
t = np.linspace(-3.1, 2.3, 300)
J = np.stack(jax.jacfwd(lambda b: mobility(t, *b))(b), 0)
band = 2 * np.sqrt(np.einsum("ij,jk,ik->i", J, fit.covariance, J) + fit.residual_std**2)
curve, shade = mobility(t, *b), {"color": "#0072b2", "alpha": 0.2, "lw": 0}
top.plot(x, y, "ko", markersize=4, label="data")
top.plot(t, mobility(t, *start), "--", color="gray", label="start")
top.plot(t, curve, color="#0072b2", label="fit")
top.fill_between(t, curve - band, curve + band, **shade, label="95 % band of new data")
top.set(ylabel="electron mobility", xlim=(-3.2, 2.4))
top.legend()
low.axhline(0, color="#0072b2")
low.errorbar(x, residual, 2 * fit.residual_std, fmt="ko", markersize=4, lw=1)
low.set(xlabel="logarithm of density", ylabel="residual", xlim=(-3.2, 2.4))
rows, bars, style = np.arange(7), 2 * error / nist.certified, {"color": "#0072b2", "capsize": 4}
side.errorbar(b / nist.certified, rows, xerr=bars, fmt="o", **style, label="cfgd, ± 2 errors")
side.plot(np.ones(7), rows, "|", color="#d55e00", markersize=22, label="certified", zorder=3)
side.set(yticks=rows, yticklabels=fit.names, xlabel="relative to certified", ylim=(6.5, -1.5))
side.legend(loc="upper center", markerscale=0.6)
figure.savefig(sys.argv[1] if sys.argv[1:] else Path(__file__).with_suffix(".png"), dpi=180)
