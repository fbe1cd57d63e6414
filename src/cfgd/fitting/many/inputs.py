"""The arguments of `curve_fit_many`, checked, as what all fits share and what each has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import compute_dtype, in_precision, precision_of
from cfgd._core.compiled import bind
from cfgd.fitting.build import calls_of, vectors_of
from cfgd.fitting.many.program import Form, fixed_key, x_key, x_of
from cfgd.fitting.many.regions import Region
from cfgd.fitting.many.starts import guess_rows, named, read_p0
from cfgd.fitting.model import WeightedResiduals
from cfgd.fitting.read_parameters import Given, read_parameters
from cfgd.objectives.parameter_layout import layout_of

# Numbers in the arrays of the fits that take steps at a time: Jacobians of this size are computed
# fastest, in the caches of a core and with little overhead for a call (measured for 3 to 5
# parameters and 50 to 200 points, where 128 to 256 fits are best).
WORKING_SET = 180_000
LEAST_SLOTS, MOST_SLOTS = 8, 256


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """Checked arguments of `curve_fit_many`.

    Attributes
    ----------
    model, bounds, fixed, tied : object
        As the user gave them, for the `Fit` of one row.
    Y : array-like
        The data, with the leading shape and the points as its last axis.
    shape : tuple of int
        The leading shape.
    n_points : int
        How many points a fit has, missing ones included.
    dtype : dtype
        The precision of the fits.
    given : Given
        The parameters; where each fit has its own start, their values mean nothing.
    residuals : WeightedResiduals
        The residuals as a function of the free numbers.
    shared, per_fit : dict of str to array
        What all fits share, and what each has of its own, under the names of `program.advance`.
        Arrays of the latter have the leading shape and one more axis.
    mask : array-like or None
        True for points that are left out, in the shape of Y or of one fit.
    x_treedef : object
        The structure of x.
    start : array
        The start of the free parameters, for those of which all fits have the same one.
    guess : callable or None
        The function that guesses a start.
    p0_per_fit : dict of str to array
        The parameters in `p0` that have a number for each fit.
    absolute_sigma : bool
        Whether `sigma` holds the true standard deviations.
    """

    model: Callable[..., Any]
    bounds: Any
    fixed: Any
    tied: Any
    Y: Any
    shape: tuple[int, ...]
    n_points: int
    dtype: np.dtype[Any]
    given: Given
    residuals: WeightedResiduals
    shared: dict[str, np.ndarray]
    per_fit: dict[str, Any]
    mask: Any
    x_treedef: Any
    start: np.ndarray
    guess: Callable[..., Any] | None
    p0_per_fit: dict[str, np.ndarray]
    absolute_sigma: bool

    @property
    def n_fits(self) -> int:
        return int(np.prod(self.shape))

    @property
    def names(self) -> list[str]:
        """All parameters."""
        return list(self.given.parameters)

    @property
    def free(self) -> list[str]:
        """The free parameters."""
        return self.residuals.layout.free

    @property
    def n_slots(self) -> int:
        """How many fits take steps at a time, if there are as many: a power of two."""
        slots = WORKING_SET // (self.n_points * (len(self.free) + 2))
        return 2 ** int(np.log2(np.clip(slots, LEAST_SLOTS, MOST_SLOTS)))

    @property
    def form(self) -> Form:
        """What the programs are compiled for."""
        return Form(
            names=tuple(self.names),
            size=len(self.free),
            x_treedef=self.x_treedef,
            n_slots=self.n_slots,
            is_bounded="lower" in self.shared,
            absolute_sigma=self.absolute_sigma,
        )

    def read(self, region: Region) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the rows of a region and the starts of its fits."""
        rows = {name: self._numbers(region, each) for name, each in self.per_fit.items()}
        y = self._numbers(region, self.Y)
        missing = np.isnan(y)
        for name in {x_key(i) for i in range(self.x_treedef.num_leaves)} & set(rows):
            is_nan = np.isnan(rows[name])
            missing = missing | is_nan
            rows[name] = _with_valid_points(rows[name], is_nan)
        if self.mask is not None:
            whole = np.ndim(self.mask) == 1
            missing = missing | np.asarray(self.mask if whole else region.read(self.mask), bool)
        if "sigma" in rows:  # a deviation that is none makes its fit fail, unless y is missing
            rows["sigma"] = np.where(rows["sigma"] > 0, rows["sigma"], np.nan)
        rows["y"] = np.where(missing, np.nan, y) if missing.any() else y
        values = self._values(region, rows)
        fixed = {fixed_key(name): v for name, v in values.items() if name not in self.free}
        starts = np.broadcast_to(self.start, (region.size, len(self.free))).copy()
        for i, name in enumerate(self.free):
            if name in values:
                starts[:, i] = values[name]
        return rows | fixed, starts

    def _numbers(self, region: Region, array: Any) -> np.ndarray:
        return np.ascontiguousarray(region.read(array), self.dtype)

    def _values(self, region: Region, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the parameters in `p0` that differ between fits."""
        if self.guess is None:
            return {
                name: self._numbers(region, each[..., None])[:, 0]
                for name, each in self.p0_per_fit.items()
            }
        names = self.given.positional or self.names
        with in_precision(self.dtype):
            program = bind(guess_rows, self.guess, self.x_treedef, tuple(names))
            found = program(self.shared, rows)
        kinds = self.given.parameters
        return {
            name: np.asarray(each)
            for name, each in found.items()
            if kinds[name].kind != "tied" and fixed_key(name) not in self.shared
        }


def _with_valid_points(x: np.ndarray, is_nan: np.ndarray) -> np.ndarray:
    """Return x with the first valid point of each row in place of NaN, where models may fail."""
    first = np.take_along_axis(x, np.argmin(is_nan, 1)[:, None], 1)
    return np.where(is_nan, np.where(np.isnan(first), 0, first), x)


def read_inputs(
    owner: str,
    model: Any,
    x: Any,
    Y: Any,
    p0: Any,
    sigma: Any,
    mask: Any,
    bounds: Any,
    fixed: Any,
    tied: Any,
    absolute_sigma: bool,
) -> Inputs:
    """Check the arguments of `curve_fit_many`; plain arrays in place of those of xarray."""
    checks.function(owner, "model", model, "be a function of x and the parameters")
    Y = _read_Y(owner, Y)
    shape, n_points = tuple(map(int, Y.shape[:-1])), int(Y.shape[-1])
    if x is None:
        checks.fail(owner, "x", "be an array, or a dict or tuple of arrays", "None")
    x_leaves, x_treedef = jax.tree.flatten(x if isinstance(x, dict | tuple) else (x,))
    if not isinstance(x, dict | tuple):
        x_treedef = jax.tree.structure(0)
    shared: dict[str, np.ndarray] = {}
    per_fit: dict[str, Any] = {}
    for i, leaf in enumerate(x_leaves):
        leaf = _sliceable(owner, "x", leaf)
        own = tuple(leaf.shape) in ((*shape, n_points), (*shape, 1)) and leaf.ndim > 1
        if own:
            per_fit[x_key(i)] = leaf
        else:
            shared[x_key(i)] = np.asarray(checks.array(owner, "x", leaf))
    if sigma is not None:
        _read_sigma(owner, sigma, shape, n_points, shared, per_fit)
    dtypes = [np.zeros((), compute_dtype(_floating(Y.dtype)))]
    dtypes += [
        np.zeros((), _floating(each.dtype)) for each in (*shared.values(), *per_fit.values())
    ]
    dtype = precision_of(dtypes)
    shared = {name: np.asarray(each, dtype) for name, each in shared.items()}
    mask = _read_mask(owner, mask, shape, n_points)

    own_x = {name: np.ones(each.shape[-1], dtype) for name, each in per_fit.items()}
    x_of_one = x_of(x_treedef, shared | own_x)
    template, p0_per_fit, guess = read_p0(owner, p0, shape, x_of_one, np.ones(n_points, dtype))
    given = read_parameters(owner, [model], template, bounds, fixed, tied, [""])
    p0_per_fit = named(owner, given, p0_per_fit)
    layout, asked = layout_of(owner, given.parameters)
    expressions = {
        name: each.expression
        for name, each in given.parameters.items()
        if each.expression is not None
    }
    residuals = WeightedResiduals(
        (model,), expressions, calls_of(owner, [model], [""], given, asked), layout
    )
    start, lower, upper = vectors_of(layout, given.parameters)
    if np.isfinite(lower).any() or np.isfinite(upper).any():
        shared |= {"lower": lower.astype(dtype), "upper": upper.astype(dtype)}
    own = set(p0_per_fit if guess is None else given.positional or given.parameters)
    # a parameter that is fixed by name alone keeps the start of each fit
    own &= set() if fixed is None or isinstance(fixed, Mapping) else set(_as_list(fixed))
    for name, each in given.parameters.items():
        if each.kind == "fixed" and name not in own:
            shared[fixed_key(name)] = np.asarray(each.value, dtype)
    p0_per_fit = {name: v for name, v in p0_per_fit.items() if fixed_key(name) not in shared}
    _check_shape(owner, residuals, given, start, x_of_one, n_points)
    return Inputs(
        model=model,
        bounds=bounds,
        fixed=fixed,
        tied=tied,
        Y=Y,
        shape=shape,
        n_points=n_points,
        dtype=dtype,
        given=given,
        residuals=residuals,
        shared=shared,
        per_fit=per_fit,
        mask=mask,
        x_treedef=x_treedef,
        start=start.astype(dtype),
        guess=guess,
        p0_per_fit=p0_per_fit,
        absolute_sigma=absolute_sigma,
    )


def _as_list(fixed: Any) -> list[str]:
    return [fixed] if isinstance(fixed, str) else list(fixed)


def _floating(dtype: Any) -> np.dtype[Any]:
    """Return the dtype in which numbers are computed: float64 for integers."""
    dtype = np.dtype(dtype)
    return compute_dtype(dtype) if np.issubdtype(dtype, np.floating) else np.dtype(float)


def _sliceable(owner: str, field: str, value: Any) -> Any:
    """Return an object with shape, dtype and slices, as arrays in memory and on a disk are."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__getitem__")):
        value = checks.real(owner, field, value)
    if hasattr(value, "to_numpy"):  # a DataFrame or Series
        value = value.to_numpy()
    if not (np.issubdtype(value.dtype, np.number) or np.issubdtype(value.dtype, np.bool_)):
        checks.fail(owner, field, "be an array of numbers", checks.describe(value))
    if np.issubdtype(value.dtype, np.complexfloating):
        wanted = "be real: fit real and imaginary parts side by side, as twice as many points"
        checks.fail(owner, field, wanted, "complex numbers")
    return value


def _read_Y(owner: str, Y: Any) -> Any:
    Y = _sliceable(owner, "Y", Y)
    if len(Y.shape) < 2:
        wanted = "have one row of points for each fit (`curve_fit` fits a single one)"
        checks.fail(owner, "Y", wanted, f"shape {tuple(Y.shape)}")
    if 0 in Y.shape:
        checks.fail(owner, "Y", "have at least one fit and one point", f"shape {tuple(Y.shape)}")
    return Y


def _read_sigma(
    owner: str,
    sigma: Any,
    shape: tuple[int, ...],
    n_points: int,
    shared: dict[str, np.ndarray],
    per_fit: dict[str, Any],
) -> None:
    """Add the standard deviations to what all fits share, or to what each has of its own."""
    sigma = _sliceable(owner, "sigma", sigma)
    given = tuple(sigma.shape)
    if given in ((*shape, n_points), (*shape, 1)):
        per_fit["sigma"] = sigma
    elif given in ((), (n_points,)):
        shared["sigma"] = np.asarray(checks.positive(owner, "sigma", sigma))
    else:
        wanted = f"be one number, have shape ({n_points},), {(*shape, n_points)} or {(*shape, 1)}"
        checks.fail(owner, "sigma", wanted, f"shape {given}")


def _read_mask(owner: str, mask: Any, shape: tuple[int, ...], n_points: int) -> Any:
    if mask is None:
        return None
    if not (hasattr(mask, "shape") and hasattr(mask, "dtype")):
        mask = checks.real(owner, "mask", mask, "be an array of booleans")
    if not np.issubdtype(mask.dtype, np.bool_):
        checks.fail(owner, "mask", "be True for points to leave out", f"dtype {mask.dtype}")
    if tuple(mask.shape) == shape and tuple(mask.shape) != (n_points,):
        return mask[..., None]  # whole fits
    if tuple(mask.shape) not in ((n_points,), (*shape, n_points), (*shape, 1)):
        wanted = f"have shape {(*shape, n_points)}, {shape} or ({n_points},)"
        checks.fail(owner, "mask", wanted, f"shape {tuple(mask.shape)}")
    return mask


def _check_shape(
    owner: str, residuals: WeightedResiduals, given: Given, z: np.ndarray, x: Any, n_points: int
) -> None:
    """Refuse a model that does not return one number for each point."""
    fixed = {name: each.value for name, each in given.parameters.items() if each.kind == "fixed"}

    def predict(z: Any, fixed: Any, x: Any) -> Any:
        return residuals.predict(residuals.complete(z, fixed), x)

    # the arrays are arguments, for the reason given in `fitting/build.py`
    with checks.traceable(owner, "model"), in_precision(z.dtype):
        out = jax.eval_shape(predict, z, fixed, x)
    if tuple(out.shape) != (n_points,):
        wanted = f"return one number for each of the {n_points} points along the last axis of Y"
        checks.fail(owner, "model", wanted, f"shape {tuple(out.shape)}")
