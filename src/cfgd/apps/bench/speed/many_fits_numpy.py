"""A batch of fits in plain NumPy, and accurate fits as a reference."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from cfgd.apps.bench.speed.many_fits_cases import Case

# Number of fits in a block: of 250 to 4,000 the fastest for the biexponential curve; for the other
# curves it makes no difference.
BLOCK = 500
# The damping of Marquardt's rule (1963): initially a hundredth, changed by factors of ten.
FIRST_DAMPING, FACTOR = 1e-2, 10.0
# a step with this damping is below rounding: no further decrease is possible
MOST_DAMPING = 1e10


def batch_levenberg_marquardt(
    case: Case, Y: np.ndarray, tolerance: float = 1e-9, max_iterations: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters and standard errors of all rows of Y.

    A fit has ended when an accepted step, measured in the scales of the parameters, is shorter than
    `tolerance` times the parameters, or when no step improves on it. With the default the largest
    relative error is about 1e-8 in the cases of the benchmark.
    """
    blocks = [
        _block(case, Y[i : i + BLOCK], tolerance, max_iterations) for i in range(0, len(Y), BLOCK)
    ]
    z, errors = zip(*blocks, strict=True)
    return np.concatenate(z), np.concatenate(errors)


def _block(
    case: Case, Y: np.ndarray, tolerance: float, max_iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    n, size = len(Y), len(case.start)
    z = np.tile(np.asarray(case.start), (n, 1))
    damping = np.full(n, FIRST_DAMPING)
    value, gradient, matrix = _least_squares(case, z, Y)
    running = np.arange(n)
    for _ in range(max_iterations):
        if not running.size:
            break
        at, H = z[running], matrix[running]
        diagonal = np.einsum("nii->ni", H)
        damped = H + (damping[running, None] * diagonal)[:, None] * np.eye(size)
        step = -np.linalg.solve(_regular(damped), gradient[running, :, None])[..., 0]
        with np.errstate(over="ignore", invalid="ignore"):
            new_value, new_gradient, new_matrix = _least_squares(case, at + step, Y[running])
            improves = (new_value < value[running]) & np.isfinite(new_matrix).all((1, 2))
        which = running[improves]
        z[which] += step[improves]
        value[which] = new_value[improves]
        gradient[which], matrix[which] = new_gradient[improves], new_matrix[improves]
        damping[running] *= np.where(improves, 1 / FACTOR, FACTOR)
        length, scale = (np.sum(diagonal * v**2, -1) for v in (step, at))
        is_short = length <= tolerance**2 * scale
        has_ended = (improves & is_short) | (damping[running] > MOST_DAMPING)
        running = running[~has_ended]
    variance = 2 * value / (case.n_points - size)
    errors = np.sqrt(variance[:, None] * np.einsum("nii->ni", np.linalg.inv(_regular(matrix))))
    return z, errors


def _regular(matrices: np.ndarray) -> np.ndarray:
    """Return matrices that can be factored, changed by rounding errors of their size.

    Those of fits that the data do not determine are singular, and one of them would stop all.
    """
    size = matrices.shape[-1]
    rounding = np.finfo(float).eps * np.trace(matrices, axis1=1, axis2=2) + np.finfo(float).tiny
    return matrices + rounding[:, None, None] * np.eye(size)


def _least_squares(
    case: Case, z: np.ndarray, Y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return half the sums of squares, their gradients and Gauss-Newton matrices."""
    columns = [column[:, None] for column in z.T]
    residuals = case.numpy_model(case.t, *columns) - Y
    J = case.jacobian(case.t, *columns)
    transposed = J.transpose(0, 2, 1)
    gradient = (transposed @ residuals[..., None])[..., 0]
    return 0.5 * np.sum(residuals**2, -1), gradient, transposed @ J


# Gauss-Newton steps after SciPy's fit, which ends where the sum of squares no longer changes: half
# of the digits may be missing there. Each step reduces an error to a few percent in these cases.
POLISHING_STEPS = 10


def accurate_fit(case: Case, y: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the parameters of one fit to rounding: SciPy's with tight tolerances, polished."""

    def residuals(z: np.ndarray) -> np.ndarray:
        return case.numpy_model(case.t, *z) - y

    def jacobian(z: np.ndarray) -> np.ndarray:
        return case.jacobian(case.t, *z)

    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    z = scipy.optimize.least_squares(residuals, start, jacobian, **tight).x
    for _ in range(POLISHING_STEPS):
        z = z - np.linalg.lstsq(jacobian(z), residuals(z), rcond=None)[0]
    return z


def relative_differences(case: Case, Y: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return for each fit the largest relative difference of its parameters from accurate ones."""
    accurate = np.array([accurate_fit(case, y, z) for y, z in zip(Y, found, strict=True)])
    return np.max(np.abs(found - accurate) / np.abs(accurate), 1)
