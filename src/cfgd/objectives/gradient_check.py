"""Compare a gradient with differences of values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import DOUBLE, cast_on_host, in_precision
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd._core.types import Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.external import External
from cfgd.objectives.finite_differences import Slope, slopes_along
from cfgd.objectives.function import as_objective
from cfgd.objectives.host import host_objective

# Estimated errors of a difference within which it agrees with a gradient. The estimate is the
# spread of three numbers, the last of which is the most accurate: usually it is too large.
ERRORS = 4.0
# Differences are refined until their error is this part of the tolerance.
ACCURACY = 1e-2
# Error of a difference, relative to the derivative, above which a coordinate cannot be compared.
MOST_ERROR = 1e-2
# Coordinates that are compared at most: with about ten evaluations each, this takes seconds.
MOST_COORDINATES = 1000
# Rows of the printed table.
MOST_ROWS = 5


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class GradientCheck:
    """A gradient and differences of values: true if they agree, and printed as a table.

    It is also false if the differences were too inaccurate in all coordinates.

    Attributes
    ----------
    gradient : array or pytree
        The gradient that was tested, in the form of x.
    differences : array or pytree
        The same by differences of values; NaN where a coordinate was not compared, or where no
        values around x are finite.
    errors : array or pytree
        The estimated errors of the differences.
    relative_error : float
        The largest |gradient - difference| relative to the larger of both, over all coordinates
        in which they differ by more than the error of the difference.
    worst : str
        The coordinate with that error, such as "x[2]".
    ratio : float or None
        The constant c if the gradient is c times the derivative, such as -1 for a wrong sign; else
        None.
    tolerance : float
        The relative error up to which a gradient counts as right.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> f = cfgd.External(lambda x: np.sum(x**4), lambda x: -4 * x**3)
    >>> check = cfgd.check_gradient(f, [1.0, 2.0])
    >>> print(bool(check), round(check.ratio, 6))
    False -1.0
    """

    gradient: Any
    differences: Any
    errors: Any
    relative_error: float
    worst: str
    ratio: float | None
    tolerance: float

    def __bool__(self) -> bool:
        return self.relative_error <= self.tolerance and bool(self._is_compared().any())

    def _is_compared(self) -> np.ndarray:
        """Return in which coordinates the differences are accurate enough to tell."""
        g, d, errors = map(_vector, (self.gradient, self.differences, self.errors))
        is_small = errors <= self.tolerance * abs(g).max()
        is_accurate = errors <= MOST_ERROR * np.maximum(abs(g), abs(d))
        return ~np.isnan(d) & (is_small | is_accurate | (g == d))

    @property
    def has_wrong_sign(self) -> bool:
        """Whether the gradient is -1 times the derivative."""
        return self.ratio is not None and abs(self.ratio + 1) <= 10 * self.tolerance

    def __repr__(self) -> str:
        names = _names(Structure.of(self.gradient))
        g, d, errors = map(_vector, (self.gradient, self.differences, self.errors))
        relative = relative_errors(g, d, errors)
        is_compared, is_wrong = self._is_compared(), relative > self.tolerance
        if is_wrong.any():
            head = f"wrong in {is_wrong.sum()} of {g.size} coordinates"
        else:
            head = f"right in {is_compared.sum()} of {g.size} coordinates"
        lines = [f"GradientCheck: {head}, largest relative error {self.relative_error:.2g}"]
        if self.has_wrong_sign:
            lines.append("  The sign is wrong: the gradient is -1 times the derivative.")
        elif self.ratio is not None:
            lines.append(f"  The gradient is {self.ratio:.6g} times the derivative everywhere.")
        is_unsure = ~is_compared & ~is_wrong
        if is_unsure.any():
            first = names[int(np.argmax(is_unsure))]
            why = "noise, a kink, or left out" if g.size > MOST_COORDINATES else "noise, or a kink"
            count = f"{is_unsure.sum()} could not be compared"
            lines.append(f"  {count} ({why}), the first is {first}.")
        width = max(10, *map(len, names))
        lines.append(
            f"  {'coordinate':<{width}}  {'gradient':>14}  {'differences':>14}  {'relative':>9}"
        )
        for i in np.argsort(-np.where(np.isnan(d), -1, relative), kind="stable")[:MOST_ROWS]:
            number = f"{g[i]:>14.8g}  {d[i]:>14.8g}  {relative[i]:>9.2g}"
            lines.append(f"  {names[i]:<{width}}  {number}")
        return "\n".join(lines)


def check_gradient(
    objective: Objective | Callable[..., Any],
    x: Any,
    gradient: Callable[..., Any] | None = None,
    *,
    args: tuple[Any, ...] = (),
    tolerance: float = 1e-6,
) -> GradientCheck:
    """Compare the gradient of an objective at x with differences of its values.

    Every coordinate is compared, in more than 1,000 dimensions 1,000 of them, drawn at random. The
    differences are central and extrapolated, with about ten evaluations for each coordinate; they
    are computed in float64 and have ten digits where f has sixteen. Choose an x at which no
    derivative is zero by chance: not the minimum, and not zero.

    Parameters
    ----------
    objective : Objective or callable
        An objective (`External` and your own among them), a function f(x, *args) written in JAX,
        whose gradient is JAX's, or with `gradient` any function of NumPy arrays.
    x : number, array or pytree
        Where to compare.
    gradient : callable, optional
        A function gradient(x, *args) of NumPy arrays, the gradient of the function `objective`.
    args : tuple, default ()
        Data that is passed to the functions.
    tolerance : float, default 1e-06
        The relative error up to which a coordinate counts as right.

    Returns
    -------
    GradientCheck
        True if the gradient is right; printed, it shows the worst coordinates, and whether the sign
        or a factor is wrong.

    Raises
    ------
    ValueError
        If value or gradient at x are not finite, x does not have the shape of the objective,
        `gradient` is given for an objective, or `tolerance` is not a positive number.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> from scipy.optimize import rosen, rosen_der
    >>> print(bool(cfgd.check_gradient(rosen, [-1.2, 1.0], rosen_der)))
    True
    >>> print(cfgd.check_gradient(rosen, [-1.2, 1.0], lambda x: rosen_der(x) * [1, 2]))
    GradientCheck: wrong in 1 of 2 coordinates, largest relative error 0.5
      coordinate        gradient     differences   relative
      x[1]                  -176             -88        0.5
      x[0]                -215.6          -215.6          0
    """
    owner = "check_gradient"
    tolerance = checks.one_positive(owner, "tolerance", tolerance)
    if gradient is not None:
        if isinstance(objective, Objective):
            wanted = "be a function of x where `gradient` is given"
            checks.fail(owner, "objective", wanted, objective.traits.label)
        checks.function(owner, "objective", objective, "be an objective or a function")
        checks.function(owner, "gradient", gradient, "be a function of x")
        value_fn, gradient_fn = objective, gradient
        f: Objective = External(lambda x: value_fn(x, *args), lambda x: gradient_fn(x, *args))
    else:
        f = as_objective(owner, objective, args)
    tree = checked_pytree(owner, "x", x)
    structure = Structure.of(tree)
    if f.shape is not None and structure.shapes != (f.shape,):
        got = getattr(tree, "shape", "a pytree")
        checks.fail(owner, "x", f"have shape {f.shape}", got)
    point = np.array(structure.ravel(tree), float)
    with in_precision(DOUBLE):
        f = f.raveled(structure)
        f.check(owner, point)
        g, d, errors = _compare(owner, host_objective(cast_on_host(f, DOUBLE)), point, tolerance)
    relative = relative_errors(g, d, errors)
    worst = int(np.argmax(np.where(np.isnan(d), -1, relative)))
    return GradientCheck(
        gradient=structure.unravel_parameters(g),
        differences=structure.unravel_parameters(d),
        errors=structure.unravel_parameters(errors),
        relative_error=float(relative[worst]),
        worst=_names(structure)[worst],
        ratio=None if relative[worst] <= tolerance else _ratio(g, d, errors, tolerance),
        tolerance=tolerance,
    )


def _compare(
    owner: str, f: Objective, x: Vector, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gradient, differences and their errors; NaN for coordinates that are left out."""
    with np.errstate(all="ignore"):
        at = f.evaluate(x)
    if not (np.isfinite(at.value) and np.isfinite(at.gradient).all()):
        checks.fail(owner, "x", "give a finite value and gradient", f"the value {at.value}")
    d, errors = np.full(x.size, np.nan), np.full(x.size, np.nan)
    drawn = np.arange(x.size)
    if x.size > MOST_COORDINATES:
        drawn = np.random.default_rng(0).choice(x.size, MOST_COORDINATES, replace=False)

    def value(x: Vector) -> Any:
        with np.errstate(all="ignore"):
            return f.evaluate(x).value

    for j in drawn:
        unit = np.zeros(x.size)
        unit[j] = 1.0
        best: Slope | None = None
        for slope in slopes_along(value, x, unit):
            best = slope if best is None or slope.error < best.error else best
            if best.error <= ACCURACY * tolerance * abs(best.value):
                break
        if best is not None:
            d[j], errors[j] = best
    return np.array(at.gradient, float), d, errors


def relative_errors(g: np.ndarray, d: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return |g - d| relative to the larger of both, 0 where the error of d explains it."""
    size = np.maximum(abs(g), abs(d))
    explained = ~(abs(g - d) > ERRORS * errors)  # true for NaN, which was not compared
    return np.where(explained | (size == 0), 0.0, abs(g - d) / np.where(size > 0, size, 1))


def _ratio(g: np.ndarray, d: np.ndarray, errors: np.ndarray, tolerance: float) -> float | None:
    """Return c where g = c d in all coordinates, or None."""
    known = ~np.isnan(d)
    g, d, errors = g[known], d[known], errors[known]
    if not d.any():
        return None
    largest = int(np.argmax(abs(d)))
    c = g[largest] / d[largest]
    agrees = abs(g - c * d) <= tolerance * abs(g) + ERRORS * (1 + abs(c)) * errors
    return float(c) if c != 0 and agrees.all() else None


def _vector(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _names(structure: Structure) -> list[str]:
    """Return the names of all coordinates: x[0], or x['a'][1] of a pytree."""
    tree = structure.unravel_parameters(np.zeros(structure.size))
    return [
        f"x{jax.tree_util.keystr(path)}" + "".join(f"[{i}]" for i in index)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        for index in np.ndindex(np.shape(leaf))
    ]
