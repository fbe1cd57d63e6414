"""The information matrix of a fit, and the covariance that is its inverse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core import failing

# Eigenvalues of a matrix of unit diagonal below this many rounding units, relative to the largest
# one, count as zero: those of collinear columns of up to a million rows were 3 units at most.
ROUNDING_UNITS = 50
# A coefficient is part of an undetermined combination if its entry exceeds this: the error of the
# vectors is about the rounding unit divided by the gap between the eigenvalues.
SHARE = 1e-7
# Entries of a combination that are smaller, relative to the largest one, are not named.
SMALL_ENTRY = 1e-6
# Limits for a sentence: names of a combination, names that are shown if there are more,
# combinations.
MOST_NAMES, SHOWN_NAMES, MOST_COMBINATIONS = 8, 3, 3

UNDETERMINED = "The data do not determine the parameters: their covariance is infinite."


# From this number of columns on, a matrix is inverted by its Cholesky factor, in a fifth of the
# time of all eigenvectors. Its least squared pivot, of a unit diagonal, must exceed LEAST_PIVOT:
# the part of a column that is independent of the others is then known to eight digits.
MANY, LEAST_PIVOT = 200, 1e-8


class Inverse(NamedTuple):
    """The inverse of a symmetric matrix on the directions in which it is not singular.

    `null` has the other directions as orthonormal columns, for the matrix scaled to a unit
    diagonal by the roots `scale` of the diagonal.
    """

    matrix: np.ndarray
    null: np.ndarray
    scale: np.ndarray

    @property
    def is_undetermined(self) -> np.ndarray:
        """Which coordinates are part of a direction in which the matrix is singular."""
        return np.any(np.abs(self.null) > SHARE, axis=1)


def inverse_of_many(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a matrix of many columns and unit diagonal that is far from singular.

    Return None for other matrices.
    """
    if len(matrix) < MANY:
        return None
    from scipy.linalg import lapack  # here: few fits have so many columns

    factor, info = lapack.dpotrf(matrix, lower=1)
    if info or np.min(np.diagonal(factor)) ** 2 < LEAST_PIVOT:
        return None
    inverse, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(lower, -1).T)


def inverse_where_definite(matrix: np.ndarray) -> Inverse | None:
    """Return the inverse of a positive semi-definite matrix off its null space; None for others.

    The matrix is scaled to a unit diagonal first, so that the units of its rows and columns have no
    influence. Directions whose eigenvalue is below the rounding errors of the largest one are left
    out, as in the pseudo-inverse: the entries of coordinates that are orthogonal to all of them are
    those of any generalised inverse.
    """
    diagonal = np.diagonal(matrix)
    if not np.all(np.isfinite(matrix)) or not np.all(diagonal >= 0):
        return None
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1))
    scaled = matrix / scale / scale[:, None]
    of_many = inverse_of_many(scaled)
    if of_many is not None:
        return Inverse(of_many / scale / scale[:, None], np.zeros((len(matrix), 0)), scale)
    values, vectors = np.linalg.eigh(scaled)
    rounding = max(len(matrix), ROUNDING_UNITS) * np.finfo(values.dtype).eps
    least = rounding * np.max(values, initial=0.0)
    if np.min(values, initial=0.0) < -least:
        return None
    kept = values > least
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return Inverse(inverse / scale / scale[:, None], vectors[:, ~kept], scale)


class Information(NamedTuple):
    """The information matrix H = diag(root) matrix diag(root), and the factor of its inverse.

    The covariance is `factor` times the inverse of H: `factor` is 1 for a negative log-likelihood
    and the estimated dispersion for least squares and gamma models, with `dof` degrees of freedom
    where no column is collinear. Of `classes` predictors for each column only differences count:
    then the covariance is that of coefficients which sum to zero over the classes.
    """

    matrix: np.ndarray
    root: np.ndarray
    factor: float
    dof: float = np.inf
    classes: int = 1

    @classmethod
    def of(cls, H: np.ndarray, factor: float, dof: float = np.inf, classes: int = 1) -> Information:
        """Return the information of an unscaled matrix."""
        diagonal = np.diagonal(H)
        root = np.sqrt(np.where(diagonal > 0, diagonal, 1))
        return cls(H / root / root[:, None], root, factor, float(dof), classes)

    def stored(self) -> dict[str, Any]:
        """Return the fields of a file: those with a default only where they differ from it."""
        defaults = self._field_defaults
        return {
            name: entry
            for name, entry in self._asdict().items()
            if name not in defaults or entry != defaults[name]
        }

    def inverse(self) -> Inverse | None:
        """Return the inverse of the scaled matrix off the direction common to all classes."""
        matrix = self.matrix
        if self.classes > 1:
            # in the direction that is common to all classes the matrix is zero: make it 1 there
            for start in range(0, len(matrix), self.classes):
                block = slice(start, start + self.classes)
                common = self.root[block] / np.linalg.norm(self.root[block])
                matrix = _with_block(matrix, block, np.outer(common, common))
        return inverse_where_definite(matrix)

    def covariance(self) -> np.ndarray:
        """Return the covariance; warn where it is infinite, as for undetermined coefficients."""
        found = self.inverse() if np.isfinite(self.factor) else None
        if found is None:
            failing.warn(UNDETERMINED)
            return np.full_like(self.matrix, np.inf)
        nullity = found.null.shape[1]
        factor = self.factor
        if nullity and np.isfinite(self.dof):
            factor *= self.dof / (self.dof + nullity)
        covariance = factor * found.matrix / self.root / self.root[:, None]
        covariance = centred(covariance, self.classes)
        if nullity:
            names = [f"x[{i}]" for i in range(len(self.root) // self.classes)]
            moves = in_one_sentence(self.combinations(names))
            failing.warn(
                f"The data do not determine the parameters in {moves}: moving along it changes "
                "nothing, and their variances are infinite."
            )
        return with_infinite(covariance, found.is_undetermined)

    def combinations(self, names: list[str]) -> list[str]:
        """Return the combinations of the coefficients that the data do not determine, in words.

        Of a linear model these are the combinations of columns that are zero in all rows: `names`
        are those of the columns, also where there are several classes.
        """
        found = self.inverse()
        if found is None or not found.null.size:
            return []
        null, root = found.null / found.scale[:, None], self.root
        if self.classes > 1:  # of columns, whatever the classes are
            size = np.sqrt(np.mean(root.reshape(-1, self.classes) ** 2, 1))
            moves = (null / root[:, None]).reshape(len(size), self.classes, -1)
            moves = moves - moves.mean(1, keepdims=True)
            by_column = moves.reshape(len(size), -1) * size[:, None]
            vectors, values, _ = np.linalg.svd(by_column, full_matrices=False)
            null, root = vectors[:, values > SHARE * values[0]], size
        return [in_words(each / root, each, names) for each in sparse_basis(null).T]


def with_infinite(covariance: np.ndarray, is_undetermined: np.ndarray) -> np.ndarray:
    """Return the covariance with infinite entries for the coefficients that are undetermined."""
    covariance[is_undetermined] = np.inf
    covariance[:, is_undetermined] = np.inf
    return covariance


def centred(covariance: np.ndarray, classes: int) -> np.ndarray:
    """Return the covariance of coefficients from which their mean over the classes is taken."""
    if classes == 1:
        return covariance
    P = np.kron(np.eye(len(covariance) // classes), np.eye(classes) - 1 / classes)
    return P @ covariance @ P


def _with_block(matrix: np.ndarray, block: slice, more: np.ndarray) -> np.ndarray:
    matrix = np.array(matrix)
    matrix[block, block] += more
    return matrix


def sparse_basis(directions: np.ndarray) -> np.ndarray:
    """Return a basis of the same space with many zeros: its reduced column echelon form."""
    basis = np.array(directions.T)
    for i in range(len(basis)):
        row, column = divmod(int(np.argmax(np.abs(basis[i:]))), basis.shape[1])
        basis[[i, i + row]] = basis[[i + row, i]]
        basis[i] /= basis[i, column]
        others = np.arange(len(basis)) != i
        basis[others] -= np.outer(basis[others, column], basis[i])
    norms = np.sqrt(np.sum(basis**2, 1, keepdims=True))
    return (basis / np.where(norms > 0, norms, 1)).T


def in_one_sentence(combinations: list[str]) -> str:
    """Return the first combinations, and how many more there are.

    >>> in_one_sentence(["a + b", "c - d"])
    'a + b and c - d'
    """
    more = len(combinations) - MOST_COMBINATIONS
    others = [f"{more} other combinations"] if more > 0 else []
    return " and ".join(combinations[:MOST_COMBINATIONS] + others)


def in_words(move: np.ndarray, direction: np.ndarray, names: list[str]) -> str:
    """Return a combination such as "a + b - 2 c", or that of many names by the first of them.

    Parameters
    ----------
    move
        The factors of the names.
    direction
        The same in units in which small entries are rounding.
    """
    kept = np.flatnonzero(np.abs(direction) > SMALL_ENTRY * np.max(np.abs(direction)))
    if len(kept) > MOST_NAMES:
        shown = ", ".join(names[j] for j in kept[:SHOWN_NAMES])
        return f"a combination of {shown} and {len(kept) - SHOWN_NAMES} more"
    factors = move[kept] / np.min(np.abs(move[kept]))
    factors *= np.sign(factors[0])
    parts: list[str] = []
    for name, factor in zip((names[j] for j in kept), factors, strict=True):
        size = f"{abs(factor):.4g}"
        term = name if size == "1" else f"{size} {name}"
        sign = ("-" if factor < 0 else "") if not parts else (" - " if factor < 0 else " + ")
        parts.append(sign + term)
    return "".join(parts)
