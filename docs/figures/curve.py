"""The curve of the page, with the uncertainty of its parameters."""

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.page.drawing import LIGHT, Panel, line

T = np.linspace(0, 4, 9)
Y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])
FINE = np.linspace(-0.2, 5, 120)


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


def data():
    fit = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0])
    draws = np.random.default_rng(0).multivariate_normal(fit.parameters, fit.covariance, 300)
    curves = np.array([np.asarray(decay(FINE, *p)) for p in draws])
    return {"fit": fit.parameters, "curves": curves, "residuals": Y - decay(T, *fit.parameters)}


def curve(axis, run):
    low, high = np.quantile(run["curves"], [0.025, 0.975], axis=0)
    axis.fill_between(FINE, low, high, color=LIGHT["blue"], alpha=0.25, label="95 %")
    line(axis, FINE, decay(FINE, *run["fit"]), "blue", label="fit")
    axis.plot(T, Y, "o", color=LIGHT["ink"], markersize=4, label="data")
    axis.set(xlabel="t", ylabel="y")
    axis.legend()


def residuals(axis, run):
    axis.axhline(0.0, color=LIGHT["faint"])
    axis.plot(T, run["residuals"], "o", color=LIGHT["blue"], markersize=4)
    axis.set(xlabel="t", ylabel="data − fit")


PANELS = [[Panel("Fit with its 95 % band", curve), Panel("Residuals", residuals)]]
