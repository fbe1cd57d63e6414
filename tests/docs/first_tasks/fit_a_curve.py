"""Fit a curve with bounds, from docs/start.md: Misra1a of NIST, with its certified values."""

import jax.numpy as jnp
import numpy as np

import cfgd

volume = np.array([10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01])
volume = np.append(volume, [66.40, 75.47, 81.78])
pressure = np.array([77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8])
pressure = np.append(pressure, [593.1, 689.1, 760.0])


def adsorption(pressure, capacity, rate):
    return capacity * (1 - jnp.exp(-rate * pressure))


bounds = {"capacity": (0, None), "rate": (0, 0.01)}
fit = cfgd.curve_fit(adsorption, pressure, volume, [500.0, 0.0001], bounds=bounds)

certified = {
    "capacity": (2.3894212918e02, 2.7070075241e00),
    "rate": (5.5015643181e-04, 7.2668688436e-06),
}
for name, (value, error) in certified.items():
    assert abs(fit.values[name] / value - 1) < 1e-7
    assert abs(fit.errors[name] / error - 1) < 1e-6
for name, (lower, upper) in fit.intervals().items():
    half = 2.1788 * fit.errors[name]  # Student's t with 12 degrees of freedom, for 95 %
    assert abs((upper - lower) / (2 * half) - 1) < 0.01  # nearly linear: nearly the normal interval

held = cfgd.curve_fit(adsorption, pressure, volume, [200.0, 0.001], bounds={"capacity": (0, 200)})
assert held.at_bound == ["capacity"]
assert held.values["capacity"] == 200
