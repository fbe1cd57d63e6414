"""The uncertainty of fitted parameters, from the Jacobian of the residuals at the minimum."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core.arrays import cast_on_host, in_precision, precision_of, to_numpy
from cfgd._core.compiled import bind
from cfgd.objectives.host import host_objective
from cfgd.objectives.information import sparse_basis
from cfgd.objectives.programs import outline_of
from cfgd.objectives.residuals import Residuals
from cfgd.objectives.robust import huber_correction

# A direction counts as part of an undetermined one if its share of it exceeds this: singular
# vectors are known to about the rounding errors over the gap between the singular values.
SHARE = 1e-7
EPS = float(np.finfo(float).eps)
# Singular value of the Jacobian with unit columns, relative to the largest one, below which a
# combination of parameters is reported as hardly determined: for two parameters it means that their
# correlation differs from 1 or -1 by 1e-6 at most.
NEARLY_SINGULAR = 1e-3
# Entries of a unit vector that are smaller are not named when it is described in words.
SMALL_ENTRY = 0.05


class Linearisation(NamedTuple):
    """Residuals r and their Jacobian J at a point, and what a robust loss makes of them.

    `psi` is the derivative of the loss of each residual, r itself for squares, and `psi_slope` the
    derivative of that, 1 for squares.
    """

    jacobian: np.ndarray
    residuals: np.ndarray
    psi: np.ndarray
    psi_slope: np.ndarray


def linearise(objective: Residuals, z: Any) -> Linearisation:
    """Return residuals and Jacobian at z, by the programs that the solver has compiled."""
    dtype = precision_of(objective, z)
    with in_precision(dtype):
        # `minimize` checks a copy of the objective by tracing it unless an equal one that still
        # exists has passed: this one exists as long as the fit, and profiles need no more traces
        objective.check("linearise", np.asarray(z, dtype))
        outline_of(objective, np.asarray(z, dtype))
        objective, z = cast_on_host((objective, np.asarray(z)), dtype)
        if objective.is_squared:
            host = host_objective(objective)
            curvature = host.curvature(host.evaluate(z))
            assert curvature is not None
            assert curvature.rows is not None
            J, r = (np.asarray(part, float) for part in curvature.rows())
            return Linearisation(J, r, r, np.ones_like(r))
        r, J, weight = (
            np.asarray(part, float)
            for part in to_numpy(bind(_residuals_and_jacobian, objective)(z))
        )
    counts = (weight > 0) & ((r != 0) | np.any(J != 0, 1))  # a missing y gives a row of zeros
    r, J, root = r[counts], J[counts], np.sqrt(weight[counts])
    rho = objective.rho((r / float(objective.scale)) ** 2)
    slope = rho.slope + 2 * rho.curvature * (r / float(objective.scale)) ** 2
    return Linearisation(root[:, None] * J, root * r, root * rho.slope * r, slope)


def value_at(objective: Residuals, z: np.ndarray) -> float:
    """Return the value of the objective at z, by the program that the solver has compiled."""
    dtype = precision_of(objective, z)
    with in_precision(dtype):
        objective, z = cast_on_host((objective, z), dtype)
        return float(host_objective(objective).evaluate(z).value)


def _residuals_and_jacobian(objective: Residuals, z: Any) -> tuple[Any, Any, Any]:
    r = objective.vector(z)
    return r, objective.jacobian(z), objective.weight(r.size) + 0 * r


class Dispersion(NamedTuple):
    """The factors that turn (J'J)^-1 into a covariance, and a rise of f into a chi-square.

    For least squares both are the variance of the weighted residuals: 1 where sigma is absolute,
    else s^2. For a robust loss of the residual with the derivative psi, m residuals and p
    parameters

        covariance = k^2 (sum psi^2 / (m - p)) / mean(psi')^2
        rise       = k   (sum psi^2 / (m - p)) / mean(psi')

    with Huber's correction k = 1 + p var(psi') / (m mean(psi')^2) (Huber, Robust Statistics,
    section 7.6; the sandwich that statsmodels' RLM calls H1, and the drop-in-dispersion test of
    Schrader and Hettmansperger, Biometrika 67, 1980).
    """

    covariance: float
    rise: float


def dispersion(at: Linearisation, freedom: int, *, robust: bool, absolute: bool) -> Dispersion:
    """Return the factors of a fit with `freedom` degrees of freedom."""
    if absolute and not robust:
        return Dispersion(1.0, 1.0)
    if freedom <= 0:
        return Dispersion(np.inf, np.inf)
    square = float(at.psi @ at.psi) / freedom
    if not robust:
        return Dispersion(square, square)
    counted = len(at.psi)
    mean = float(np.mean(at.psi_slope))
    if mean <= 0:  # most residuals are where the loss is not convex
        return Dispersion(np.inf, np.inf)
    k = huber_correction(mean, float(np.var(at.psi_slope)), counted - freedom, counted)
    return Dispersion(k**2 * square / mean**2, k * square / mean)


class Uncertainty(NamedTuple):
    """The covariance of the free coordinates as a factor, and the directions without one.

    Parameters
    ----------
    factor
        A matrix L with L L' the covariance on the directions that the data determine. Its rows are
        0 for coordinates at a bound.
    undetermined
        Orthonormal columns: directions of the scaled coordinates `scale * z` that do not change the
        residuals.
    scale
        The norm of each column of the Jacobian.
    held
        Which coordinates are at a bound: they are treated as constants.
    weakest
        The least singular value of the Jacobian with unit columns, over the largest one, and its
        direction in scaled coordinates, among the directions that are determined.
    """

    factor: np.ndarray
    undetermined: np.ndarray
    scale: np.ndarray
    held: np.ndarray
    weakest: tuple[float, np.ndarray]

    @classmethod
    def of(
        cls, J: np.ndarray, variance: float, held: np.ndarray, rounding: float = EPS
    ) -> Uncertainty:
        """Return the uncertainty for a Jacobian and the variance of the residuals.

        Columns are scaled to unit norm first, so that the units of the parameters have no
        influence. A singular value below the rounding errors of the largest one counts as 0:
        max(m, p) times `rounding` times it, the criterion of `numpy.linalg.matrix_rank`.
        Derivatives by differences have a larger `rounding`.
        """
        m, p = J.shape
        norms = np.sqrt(np.sum(J**2, 0))
        scale = np.where(norms > 0, norms, 1.0)
        if not np.all(np.isfinite(J)) or not np.isfinite(variance):
            free = np.eye(p)[:, ~held]
            return cls(np.zeros((p, 0)), free, scale, held, (0.0, np.zeros(p)))
        unit = (J / scale)[:, ~held]
        R = np.linalg.qr(unit, mode="r") if m > unit.shape[1] else unit
        _, s, Vt = np.linalg.svd(R, full_matrices=True)
        s = np.append(s, np.zeros(len(Vt) - len(s)))
        rank = int(np.sum(s > max(m, p) * rounding * np.max(s, initial=0.0)))
        V = np.zeros((p, len(Vt)))
        V[~held] = Vt.T
        factor = np.sqrt(variance) * (V[:, :rank] / s[:rank]) / scale[:, None]
        weakest = (s[rank - 1] / s[0], V[:, rank - 1]) if rank else (0.0, np.zeros(p))
        return cls(factor, V[:, rank:], scale, held, weakest)

    def covariance(self) -> np.ndarray:
        """Return the covariance: NaN for coordinates at a bound, infinite where undetermined."""
        found = self.factor @ self.factor.T
        unknown = self.is_undetermined(np.eye(len(self.scale)))
        found[unknown] = np.inf
        found[:, unknown] = np.inf
        found[self.held] = np.nan
        found[:, self.held] = np.nan
        return found

    def is_undetermined(self, gradients: np.ndarray) -> np.ndarray:
        """Return for each row of `gradients` whether the data leave that quantity undetermined."""
        rows = np.where(self.held, 0.0, gradients / self.scale)
        size = np.sqrt(np.sum(rows**2, 1))
        return np.sqrt(np.sum((rows @ self.undetermined) ** 2, 1)) > SHARE * size

    def standard_errors(self, gradients: np.ndarray) -> np.ndarray:
        """Return the standard errors of quantities with these gradients, by the delta method."""
        errors = np.sqrt(np.sum((gradients @ self.factor) ** 2, 1))
        return np.where(self.is_undetermined(gradients), np.inf, errors)

    def warnings(self, names: list[str]) -> list[str]:
        """Describe the combinations of parameters that the data determine hardly or not at all."""
        found = []
        for direction in sparse_basis(self.undetermined).T:
            move = _in_words(direction / self.scale, direction, names)
            found.append(f"The data do not determine {move} leaves the fit as it is.")
        ratio, direction = self.weakest
        if 0 < ratio < NEARLY_SINGULAR:
            move = _in_words(direction / self.scale, direction, names)
            found.append(
                f"The data hardly determine {move} changes the curve {ratio:.1g} times as much as "
                "changing one of them alone."
            )
        return found


def _in_words(move: np.ndarray, direction: np.ndarray, names: list[str]) -> str:
    """Return the parameters of a direction and how much each of them changes along it."""
    chosen = np.flatnonzero(np.abs(direction) > SMALL_ENTRY * np.max(np.abs(direction)))
    move = move / move[chosen[0]]
    if len(chosen) == 1:
        return f"{names[chosen[0]]}: changing it"
    listed = ", ".join(names[j] for j in chosen[:-1]) + f" and {names[chosen[-1]]}"
    changes = ", ".join(f"{names[j]} by {move[j]:.3g}" for j in chosen)
    return f"{listed} separately: changing {changes} together"
