"""Reference solutions of the differential equations of the group `pinn`.

Burgers' equation by the transformation of Cole and Hopf, whose integrals are computed by the
trapezoidal rule; Allen-Cahn and Korteweg-de Vries by a Fourier series in x and the exponential
Runge-Kutta method of order four in t (Cox and Matthews 2002, Kassam and Trefethen 2005). The other
equations have solutions in closed form, which are in `pinn_problems`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]

QUADRATURE_POINTS = 1001  # doubling the number changes the solution by less than 1e-12
# Points on a circle around each eigenvalue, by which Kassam and Trefethen compute the coefficients.
CONTOUR_POINTS = 32
ALLEN_CAHN_DIFFUSION, ALLEN_CAHN_REACTION = 1e-4, 5.0
KDV_DISPERSION = 0.0025


def burgers(x: np.ndarray, t: np.ndarray, viscosity: float) -> np.ndarray:
    """Return u(x, t) of u_t + u u_x = viscosity u_xx with u(x, 0) = -sin(pi x), for t > 0.

    u = -E[sin(pi y) w(y)] / E[w(y)], with w(y) = exp(-cos(pi y) / (2 pi viscosity)) and y normal
    about x with variance 2 viscosity t. `x` and `t` are broadcast.
    """
    # w varies by a factor exp(1 / (pi viscosity)), and 36 is the logarithm of one over rounding:
    # beyond these deviations the product with the normal weight is below rounding.
    deviations = np.sqrt(2 * (1 / (np.pi * viscosity) + 36))
    z = np.linspace(-deviations, deviations, QUADRATURE_POINTS)
    x, t = np.broadcast_arrays(x, t)
    y = np.pi * (x[..., None] - np.sqrt(2 * viscosity * t)[..., None] * z)
    exponent = -np.cos(y) / (2 * np.pi * viscosity) - z**2 / 2
    weight = np.exp(exponent - exponent.max(axis=-1, keepdims=True))
    return -np.sum(np.sin(y) * weight, axis=-1) / np.sum(weight, axis=-1)


def allen_cahn(times: np.ndarray, points: int = 1024, steps: int = 1000) -> np.ndarray:
    """Return u(t, x) of u_t = 1e-4 u_xx + 5 (u - u^3), periodic, with u(0, x) = x^2 cos(pi x).

    The rows belong to `times`, the columns to `grid(points)`; `steps` are the steps of one unit of
    time.
    """
    x = grid(points)
    linear = -ALLEN_CAHN_DIFFUSION * _wavenumbers(points) ** 2 + ALLEN_CAHN_REACTION
    return _exponential_runge_kutta(
        x**2 * np.cos(np.pi * x), linear, lambda u: -ALLEN_CAHN_REACTION * u**3, 0, times, steps
    )


def korteweg_de_vries(times: np.ndarray, points: int = 512, steps: int = 2000) -> np.ndarray:
    """Return u(t, x) of u_t + u u_x + 0.0025 u_xxx = 0, periodic, with u(0, x) = cos(pi x)."""
    return korteweg_de_vries_from(np.cos(np.pi * grid(points)), times, steps)


def korteweg_de_vries_from(start: np.ndarray, times: np.ndarray, steps: int) -> np.ndarray:
    """Return the solution of the equation of Korteweg and de Vries from given values."""
    linear = 1j * KDV_DISPERSION * _wavenumbers(len(start)) ** 3
    return _exponential_runge_kutta(start, linear, lambda u: -(u**2) / 2, 1, times, steps)


def burgers_by_fourier(
    times: np.ndarray, viscosity: float, points: int = 1024, steps: int = 4000
) -> np.ndarray:
    """Return the solution of `burgers` on `grid(points)` by another method, to test both."""
    linear = -viscosity * _wavenumbers(points) ** 2
    start = -np.sin(np.pi * grid(points))
    return _exponential_runge_kutta(start, linear, lambda u: -(u**2) / 2, 1, times, steps)


def grid(points: int) -> np.ndarray:
    """Return equidistant points of [-1, 1), the period of the Fourier series."""
    return -1 + 2 * np.arange(points) / points


def _wavenumbers(points: int) -> np.ndarray:
    return np.pi * np.arange(points // 2 + 1)


def _exponential_runge_kutta(
    start: np.ndarray,
    linear: np.ndarray,
    nonlinear: Function,
    derivatives: int,
    times: np.ndarray,
    steps: int,
) -> np.ndarray:
    """Integrate v_t = linear v + (d/dx)^derivatives nonlinear(u), with v the coefficients of u.

    `times` are multiples of 1 / `steps`. A third of the coefficients of the nonlinear term is set
    to zero, because its products alias there.
    """
    h, points, k = 1 / steps, len(start), _wavenumbers(len(start))
    factor = (1j * k) ** derivatives * (np.arange(len(k)) <= points / 3)

    def term(v: np.ndarray) -> np.ndarray:
        return factor * np.fft.rfft(nonlinear(np.fft.irfft(v, points)))

    half, whole = np.exp(h * linear / 2), np.exp(h * linear)
    # The coefficients are analytic functions of h * linear that cancel near zero: their means over
    # a circle are exact to rounding.
    circle = np.exp(2j * np.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS)
    z = h * linear[:, None] + circle
    e = np.exp(z)
    q = h * np.mean((np.exp(z / 2) - 1) / z, axis=1)
    f1 = h * np.mean((-4 - z + e * (4 - 3 * z + z**2)) / z**3, axis=1)
    f2 = h * np.mean((2 + z + e * (-2 + z)) / z**3, axis=1)
    f3 = h * np.mean((-4 - 3 * z - z**2 + e * (4 - z)) / z**3, axis=1)

    v, rows, done = np.fft.rfft(start), [], 0
    for target in np.rint(np.asarray(times) * steps).astype(int):
        for _ in range(target - done):
            n0 = term(v)
            a = half * v + q * n0
            na = term(a)
            b = half * v + q * na
            nb = term(b)
            c = half * a + q * (2 * nb - n0)
            v = whole * v + f1 * n0 + 2 * f2 * (na + nb) + f3 * term(c)
        done = target
        rows.append(np.fft.irfft(v, points))
    return np.stack(rows)
