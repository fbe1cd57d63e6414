"""The result of `minimize` and `sweep`."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import PyTree

from cfgd._core.arrays import equal_trees
from cfgd._core.files import write
from cfgd._core.public_names import ListsPublicNames
from cfgd._core.pytrees import checked_pytree, map_parameters
from cfgd.objectives.information import Information
from cfgd.solve import notebook, plot, solution_json
from cfgd.solve.covariance import UNKNOWN
from cfgd.status import Status

NUMBERS = ("value", "gradient_norm", "iterations", "evaluations", "resets")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Solution(ListsPublicNames):
    """The best point of a run, its value and gradient norm, and why the run ended.

    `bool(solution)` is True if the run converged. In the solution of a `sweep` every field has a
    leading axis of settings, and `solution[i]` is the solution of setting i. The arrays are copies,
    which may be written into. Two solutions are equal if all fields are, where NaN equals NaN.

    Attributes
    ----------
    x : array or pytree
        The point with the least value; for `NonAdaptive`, which does not minimise f, the last one.
    value, gradient_norm : float
        The value at `x` and the norm of the gradient there.
    iterations : int
        The number of iterations.
    evaluations : float
        The cost of the run in gradients; other evaluations are counted by their relative cost.
    status : Status
        Why the run ended.
    history : dict of str to array
        `iteration`, `value`, `gradient_norm`, the terms of a `ResidualTerms`, and what `record`
        asked for.
    resets : int
        How often an adaptive method set its terminal to x because its own step had no length.
    seconds, compile_seconds : float
        The time of the call, and how much of it JAX spent on compiling.
    how : str
        The method that was used.
    rate : float or None
        The proved factor by which the error falls per iteration asymptotically; None if there is
        none.
    details : str
        The numbers that belong to the status.
    tolerance : float or None
        The `tolerance` of the run: what was given, or the default of its precision. None for a
        solution from a file that was written before this field existed.
    active_mask : array or pytree of int, or None
        With bounds, for each number in `x`: -1 at its lower bound, 1 at its upper one, 0 between.
    terms : dict of str to float, or None
        For `ResidualTerms` the value of each term at `x`, without its weight.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> solution = cfgd.minimize(f, [0.0, 0.0])
    >>> if solution:
    ...     print(solution.x.round(6))
    [-1.2  2.6]
    """

    x: Any
    value: Any
    gradient_norm: Any
    iterations: Any
    evaluations: Any
    status: Any
    history: Mapping[str, Any]
    resets: Any = 0
    seconds: float = 0.0
    how: str = ""
    rate: float | None = None
    compile_seconds: float = 0.0
    details: Any = ""
    tolerance: float | None = None
    active_mask: Any = None
    terms: Mapping[str, Any] | None = None
    information: Information | None = dataclasses.field(default=None, compare=False)

    _internal: ClassVar[tuple[str, ...]] = ("information", "of_first")

    def __post_init__(self) -> None:
        for name in ("x", "active_mask", *NUMBERS):
            given = getattr(self, name)
            if given is not None and not isinstance(given, float | int):
                object.__setattr__(self, name, _copied(given))
        for name in ("history", "terms"):
            given = getattr(self, name)  # `jax.tree.map` would sort the names
            if given:
                copies = {key: _copied(entry) for key, entry in given.items()}
                object.__setattr__(self, name, copies)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solution):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self) if field.compare]
        return equal_trees(
            [getattr(self, name) for name in names], [getattr(other, name) for name in names]
        )

    @property
    def message(self) -> Any:
        """Why the run ended, the remedy, and the numbers behind it; a list for a sweep."""
        if self._is_single:
            return f"{self.status.value} {self.details}".rstrip()
        return [one.message for one in self]

    @property
    def summary(self) -> Any:
        """The method, its cost and the status in one line; a list for a sweep."""
        if not self._is_single:
            return [one.summary for one in self]
        return (
            f"{self.how}: {self.iterations} iterations, {self.resets} resets, "
            f"{self.evaluations:g} gradients in {self.seconds:.3g} s; {self.status.name}"
        )

    @property
    def success(self) -> Any:
        """Whether the run converged; an array for a sweep."""
        if self._is_single:
            return self.status is Status.converged
        return np.array([status is Status.converged for status in self.status], bool)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write all fields to a JSON file, from which `from_json` restores them bit for bit.

        `x` may consist of numbers, arrays, None and dicts, lists and tuples of them. Arrays are
        stored with dtype and shape; numbers that are not finite are stored as the strings "nan",
        "inf" and "-inf". The file is written completely or not at all.

        Parameters
        ----------
        path : path
            The file.

        Examples
        --------
        >>> import cfgd, tempfile, pathlib
        >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
        >>> solution = cfgd.minimize(f, [0.0, 0.0])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "solution.json"
        >>> solution.to_json(path)
        >>> print(*path.read_text().splitlines()[1:3])
        "format": "cfgd solution 1", "status": "converged",
        >>> again = cfgd.Solution.from_json(path)
        >>> print(again.status is solution.status, all(again.x == solution.x))
        True True
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        write(Path(path), solution_json.to_text(fields))

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Solution:
        """Read a file that `to_json` wrote; raise a `ValueError` that names a damaged field.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Solution
            The solution, with equal fields.

        Raises
        ------
        ValueError
            If the file is damaged; the message names the field.
        """
        return cls(**solution_json.read(Path(path)))

    def plot(self, ax: object = None) -> Any:
        """Plot value and gradient norm against the iteration, and return the axes.

        The value has the left axis. The gradient norm, if it is in the history, is dashed and has
        an axis on the right. An axis is logarithmic if its numbers span more than a decade. Values
        that are not all positive are shown as differences from the least one, and the label says
        so. For a sweep there is one line of values for each setting; `solution[i].plot()` plots one
        setting. Without `ax` a new figure is made; several runs may share one axes. Requires
        matplotlib (extra `plot`).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The axes.

        Examples
        --------
        >>> import cfgd
        >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
        >>> ax = cfgd.minimize(f, [0.0, 0.0], cfgd.GradientDescent()).plot()
        >>> print(ax.get_xlabel(), "|", ax.get_ylabel())
        iteration | value − smallest value, -5.8
        """
        return plot.draw(self.history, self.iterations, not self._is_single, ax)

    def covariance(self) -> np.ndarray:
        """Return the covariance of the parameters, in the order of the numbers in `x`.

        For least squares it is s^2 (J'J)^-1, where s^2 is the sum of squared residuals over the
        degrees of freedom; for a negative log-likelihood, as of logistic or Poisson regression, it
        is the inverse of the Hessian; for gamma and Huber losses of a linear model see
        `cfgd.objectives.linear.covariance`. It is infinite for parameters that the data do not
        determine. A fit with a penalty, or of robust `Residuals`, has none: that is a ValueError.

        Returns
        -------
        array
            The covariance matrix.

        Raises
        ------
        ValueError
            If there is none: of a fit with a penalty, of robust `Residuals`, or of an objective
            that is no fit.

        Examples
        --------
        >>> import cfgd, numpy as np
        >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
        >>> f = cfgd.Residuals(lambda p: p[0] + p[1] * t - y)
        >>> print(np.sqrt(np.diag(cfgd.minimize(f, [0.0, 0.0]).covariance())).round(4))
        [0.1205 0.0398]
        """
        if self.information is None:
            raise ValueError(UNKNOWN)
        return self.information.covariance()

    @property
    def _is_single(self) -> bool:
        """Whether this is a solution of `minimize`, or of one setting of a sweep."""
        return isinstance(self.status, Status)

    def __bool__(self) -> bool:
        if self._is_single:
            return bool(self.success)
        raise TypeError(
            "A sweep is neither true nor false: use `.success`, an array, "
            "with `.all()` or `.any()`."
        )

    def __len__(self) -> int:
        if self._is_single:
            raise TypeError("A solution of one setting has no length.")
        return len(self.status)

    def __getitem__(self, i: int) -> Solution:
        """Return the solution of setting i of a sweep."""
        len(self)  # raises a TypeError for a solution of one setting

        def pick(tree: PyTree) -> Any:
            return jax.tree.map(lambda leaf: leaf[i] if np.ndim(leaf) else leaf, tree)

        return dataclasses.replace(
            self,
            x=map_parameters(lambda leaf: _as_array(leaf[i]), self.x),
            active_mask=jax.tree.map(lambda leaf: _as_array(leaf[i]), self.active_mask),
            terms=self.terms and {name: float(each[i]) for name, each in self.terms.items()},
            **{name: _as_number(pick(getattr(self, name))) for name in NUMBERS},
            status=self.status[i],
            history={k: v if k == "iteration" else pick(v) for k, v in self.history.items()},
            details=self.details if isinstance(self.details, str) else self.details[i],
            information=None,
        )

    def of_first(self, count: int) -> Solution:
        """Return the solution of the first `count` settings of a sweep."""
        if count == len(self):
            return self

        def cut(tree: PyTree) -> Any:
            return jax.tree.map(lambda leaf: leaf[:count], tree)

        return dataclasses.replace(
            self,
            x=map_parameters(lambda leaf: leaf[:count], self.x),
            **{name: cut(getattr(self, name)) for name in ("active_mask", *NUMBERS)},
            terms=self.terms and {name: cut(term) for name, term in self.terms.items()},
            status=self.status[:count],
            history={k: v if k == "iteration" else cut(v) for k, v in self.history.items()},
            details=self.details[:count],
        )

    def __iter__(self) -> Iterator[Solution]:
        return (self[i] for i in range(len(self)))

    def _repr_html_(self) -> str:
        """Return a table and a sparkline, for IPython and Jupyter."""
        return notebook.of_one(self) if self._is_single else notebook.of_sweep(self)

    def __repr__(self) -> str:
        if self._is_single:
            head = f"Solution: {self.status.name}"
            value, norm = float(self.value), float(self.gradient_norm)
            point = f"value {value:.10g}, gradient norm {norm:.3g}"
            counts = f"{self.iterations} iterations, {self.evaluations:g} gradients"
        else:
            names = Counter(status.name for status in self.status)
            ends = ", ".join(f"{count} {name}" for name, count in names.items())
            head = (
                f"Solution of a sweep of {len(self)} setting{'' if len(self) == 1 else 's'}: {ends}"
            )
            point = _least_value(self.value, self.gradient_norm)
            most, total = np.max(self.iterations, initial=0), np.sum(self.evaluations)
            counts = f"at most {most} iterations, {total:g} gradients in all"
        by = f" ({self.how})" if self.how else ""
        run = max(self.seconds - self.compile_seconds, 0.0)
        times = f"{run:.3g} s and {self.compile_seconds:.3g} s of compilation"
        return f"{head}{by}\n  {point}\n  {counts}, {times}"


class ConvergenceError(RuntimeError):
    """Raised by `minimize(..., throw=True)`; its `solution` is what would have been returned.

    Attributes
    ----------
    solution : Solution
        What would have been returned.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> try:
    ...     cfgd.minimize(f, [1.0, -10.0], cfgd.GradientDescent(), max_iterations=3, throw=True)
    ... except cfgd.ConvergenceError as error:
    ...     print(error.solution.status.name, error.solution.iterations)
    max_iterations 3
    """

    def __init__(self, solution: Solution) -> None:
        super().__init__(solution.message)
        self.solution = solution

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is restored from its message, which fails here. The error would
        # end the thread of a process pool, and the caller would wait for ever.
        return type(self), (self.solution,), self.__dict__


def _least_value(values: object, norms: object) -> str:
    """Describe the setting with the least value of a sweep."""
    values = np.asarray(values)
    known = np.flatnonzero(~np.isnan(values))
    if len(known) == 0:
        return "no value is a number"
    i = int(known[np.argmin(values[known])])
    return f"least value {values[i]:.10g} in setting {i}, gradient norm {np.asarray(norms)[i]:.3g}"


def _copied(tree: PyTree) -> Any:
    """Return the tree with writable copies of its NumPy arrays."""

    def copy(leaf: object) -> Any:
        return np.array(leaf) if isinstance(leaf, np.ndarray) else leaf

    # the shortcut saves the time of `jax.tree.map`, which is longer than that of the copy
    return np.array(tree) if isinstance(tree, np.ndarray) else jax.tree.map(copy, tree)


def _as_array(leaf: object) -> Any:
    """Return an array, also where indexing a NumPy array gave a scalar."""
    return leaf if isinstance(leaf, jax.Array) else np.array(leaf)


def _as_number(value: Any) -> Any:
    """Return a Python number for a scalar, as `minimize` does."""
    return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value


def attach(error: BaseException, solution: Solution) -> None:
    """Add the best point so far to an error, as its `solution`."""
    error.solution = solution  # type: ignore[attr-defined]
    error.add_note("The best point so far is in the `solution` of this error.")


def unevaluated(x0: Any, seconds: float) -> Solution:
    """Return the solution of a run that Ctrl-C ended in the first evaluation of its objective."""
    none = np.zeros(0)
    return Solution(
        x=map_parameters(np.asarray, checked_pytree("minimize", "x0", x0)),
        value=np.nan,
        gradient_norm=np.nan,
        iterations=0,
        evaluations=0.0,
        status=Status.interrupted,
        history={"iteration": none.astype(int), "value": none, "gradient_norm": none},
        seconds=seconds,
        details="It is the start, at which the objective has not been evaluated: "
        "value and gradient norm are unknown (nan).",
    )
