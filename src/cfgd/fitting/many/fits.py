"""The result of `curve_fit_many`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any, ClassVar

import numpy as np

from cfgd._core.public_names import ListsPublicNames
from cfgd.fitting import notebook
from cfgd.fitting.build import build
from cfgd.fitting.datasets import read_data
from cfgd.fitting.fit import Fit
from cfgd.fitting.many import plot
from cfgd.fitting.many.inputs import Inputs
from cfgd.fitting.many.labelled import Labels
from cfgd.fitting.many.program import SUMMARY, x_of
from cfgd.fitting.many.regions import Region
from cfgd.fitting.read_parameters import read_parameters
from cfgd.solve.solution import Solution
from cfgd.status import STATUSES, Status


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fits(ListsPublicNames):
    """Many fits of one model: all fields have the leading shape of Y.

    They are NumPy arrays; DataArrays with the dimensions and coordinates of Y if that was one, and
    Dask arrays if Y was one. `fits[i]`, or `fits[i, j]`, is the `Fit` of one of them, with its
    covariance, intervals, plots and reports.

    Attributes
    ----------
    table : array
        All numbers, with one row for each fit; the properties are columns of it.
    tolerance : float
        The tolerance of the fits.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp, numpy as np
    >>> t = np.linspace(0, 4, 9)
    >>> Y = 2.0 * np.exp(-np.array([[0.5], [1.5]]) * t) + 0.01 * np.cos(7 * t)
    >>> fits = cfgd.curve_fit_many(lambda t, a, b: a * jnp.exp(-b * t), t, Y, [1.0, 1.0])
    >>> print(fits.failed, fits.errors["b"].round(4))
    {} [0.0028 0.0108]
    >>> print(fits[1].report().splitlines()[3])
      a  2.0079(73)
    """

    table: Any
    inputs: Inputs
    labels: Labels | None
    tolerance: float

    _internal: ClassVar[tuple[str, ...]] = ("inputs", "labels")

    @property
    def names(self) -> list[str]:
        """The names of all parameters."""
        return self.inputs.names

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading shape of Y."""
        return self.inputs.shape

    @property
    def parameters(self) -> Any:
        """The parameters in the form of `p0`: with them as the last axis, or a dict of arrays.

        They are NaN where there is nothing to fit: no data, or a model that is not finite at the
        start.
        """
        positional = self.inputs.given.positional
        if positional is None:
            return self.values
        columns = [self.names.index(name) for name in positional]
        found = self.table[..., columns]
        if self.labels is None:
            return found
        return self.labels.label(found, ("parameter", positional))

    @property
    def values(self) -> dict[str, Any]:
        """All parameters by name, fixed and tied ones included."""
        return {name: self._column(i) for i, name in enumerate(self.names)}

    @property
    def errors(self) -> dict[str, Any]:
        """The standard errors of all parameters by name.

        They are 0 for fixed ones, by the delta method for tied ones, NaN for one at its bound, and
        infinite for one that the data do not determine.
        """
        return {name: self._column(len(self.names) + i) for i, name in enumerate(self.names)}

    @property
    def chi_square(self) -> Any:
        """The sums of squares of the weighted residuals."""
        return self._summary("chi_square")

    @property
    def n_points(self) -> Any:
        """How many points of each fit count: missing ones do not."""
        return self._summary("n_points", int)

    @property
    def iterations(self) -> Any:
        """How many steps each fit has tried."""
        return self._summary("iterations", int)

    @property
    def status(self) -> Any:
        """The name of the `Status` of each fit, such as "converged"."""
        names = np.array([status.name for status in STATUSES])
        codes = self.table[..., self._place("status")]
        if isinstance(codes, np.ndarray):
            return self._labelled(names[codes.astype(int)])
        found = codes.map_blocks(lambda block: names[block.astype(int)], dtype=names.dtype)
        return self._labelled(found)

    @property
    def converged(self) -> Any:
        """Whether each fit has converged."""
        return self._labelled(self.table[..., self._place("status")] == Status.converged.code)

    @property
    def failed(self) -> dict[str, int]:
        """How many fits have not converged, by the name of their status, most frequent first."""
        column = self._place("status")
        codes = np.asarray(self.table[..., column]).ravel().astype(int)
        counted = Counter(STATUSES[code].name for code in codes)
        return {name: n for name, n in counted.most_common() if name != Status.converged.name}

    def plot(self, name: str, ax: Any = None) -> Any:
        """Plot a parameter: a map for two axes of fits, values with standard errors for one.

        Fits that did not converge are left out. The colours of a map span the values from the 1st
        to the 99th percentile.

        Parameters
        ----------
        name : str
            The parameter.
        ax : axes, optional
            Where to draw.

        Returns
        -------
        axes
            Requires matplotlib.
        """
        return plot.draw(self, name, ax)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Fit:
        """Return one fit, by its index in the leading shape of Y."""
        place = index if isinstance(index, tuple) else (index,)
        if len(place) != len(self.shape) or not all(isinstance(i, int | np.integer) for i in place):
            wanted = f"{len(self.shape)} integers, one for each axis of {self.shape}"
            raise IndexError(f"`Fits` takes {wanted}; got {index!r}. Its fields take slices.")
        row = np.asarray(self.table[place])
        at = tuple(int(i) % n for i, n in zip(place, self.shape, strict=True))
        return _fit_of_row(self, at, row)

    def _repr_html_(self) -> str:
        """Return a table of the parameters with their distributions, for IPython and Jupyter."""
        return notebook.of_fits(self)

    def __repr__(self) -> str:
        if not isinstance(self.table, np.ndarray):
            return f"Fits: {self.shape}, not computed yet"
        n, failed = self.inputs.n_fits, self.failed
        lines = [f"Fits: {n - sum(failed.values()):,} of {n:,} converged"]
        for name, count in failed.items():
            lines.append(f"  {count:,} {name}: {Status[name].value}")
        good = np.asarray(self.converged)
        lines.append(f"  {'parameter':<14}{'median':>14}{'median standard error':>25}")
        for name in self.names:
            value, error = (np.asarray(each[name])[good] for each in (self.values, self.errors))
            shown = _median(value), _median(error[~np.isnan(error)])  # NaN is that at a bound
            lines.append(f"  {name:<14}{shown[0]:>14.6g}{shown[1]:>25.3g}")
        return "\n".join(lines)

    def _place(self, name: str) -> int:
        return 2 * len(self.names) + SUMMARY.index(name)

    def _summary(self, name: str, dtype: type | None = None) -> Any:
        return self._column(self._place(name), dtype)

    def _column(self, place: int, dtype: type | None = None) -> Any:
        column = self.table[..., place]
        return self._labelled(column if dtype is None else column.astype(dtype))

    def _labelled(self, column: Any) -> Any:
        return column if self.labels is None else self.labels.label(column)


def _median(numbers: np.ndarray) -> float:
    return float(np.median(numbers)) if numbers.size else np.nan


def _fit_of_row(fits: Fits, at: tuple[int, ...], row: np.ndarray) -> Fit:
    """Return the fit of one row of the table as `curve_fit` would have returned it."""
    owner, inputs = "Fits", fits.inputs
    status = STATUSES[int(row[fits._place("status")])]
    values = dict(zip(fits.names, row, strict=False))
    if np.isnan([values[name] for name in inputs.free]).any():
        raise ValueError(f"The fit at {at} has no result. {status.value}")
    region = Region(0, 1, (*at[:-1], slice(at[-1], at[-1] + 1)))
    rows, _ = inputs.read(region)
    data = {name: each[0] for name, each in rows.items()} | inputs.shared
    x = x_of(inputs.x_treedef, data)
    sets = read_data(
        owner, x, data["y"], sigma=data.get("sigma"), weights=None, sigma_x=None, missing="drop"
    )
    positional = inputs.given.positional
    own = {name: value for name, value in values.items() if _has_start(inputs, name)}
    p0 = own if positional is None else [own.get(name, 1.0) for name in positional]
    given = read_parameters(
        owner, [inputs.model], p0, inputs.bounds, inputs.fixed, inputs.tied, [""]
    )
    problem = build(
        owner,
        [inputs.model],
        sets,
        given,
        absolute_sigma=inputs.absolute_sigma,
        loss="squared",
        scale=1.0,
    )
    z = np.array([values[name] for name in inputs.free], inputs.dtype)
    jacobian, residuals = problem.jacobian(z), problem.residuals(z)
    solution = Solution(
        x=z,
        value=float(residuals @ residuals) / 2,
        gradient_norm=float(np.linalg.norm(residuals @ jacobian)),
        iterations=int(row[fits._place("iterations")]),
        evaluations=float(row[fits._place("iterations")]) + 1,
        status=status,
        history={},
        how="Levenberg-Marquardt (Gauss-Newton matrix, diagonal scaling), in a batch of fits",
        tolerance=fits.tolerance,
    )
    return Fit.of(problem, solution)


def _has_start(inputs: Inputs, name: str) -> bool:
    return inputs.given.parameters[name].kind != "tied"
