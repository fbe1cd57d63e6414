"""What a run gives back."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cfgd._core.files import write
from cfgd.solve import plot, saved
from cfgd.solve.covariance import UNKNOWN, Information
from cfgd.status import Status

NUMBERS = ("value", "gradient_norm", "iterations", "evaluations", "resets")


@dataclasses.dataclass(frozen=True, repr=False)
class Solution:
    """The best point seen, what is known of it, and how the run ended.

    `x` is the best point by value; for `NonAdaptive`, which does not minimise f, the last one.
    `evaluations` counts gradients and what is worth one. `resets` says how often an adaptive
    method took c = x because its own step would have had no length. `rate`, where it is proved, is
    the factor by which the error falls per iteration in the long run. `seconds` is the time from
    call to return, of which `compile_seconds` went into compiling. `details` are the numbers
    behind the status. From `sweep` every field has a leading axis of settings; `solution[i]` is
    the solution of one of them.

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
    information: Information | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("x", *NUMBERS):
            object.__setattr__(self, name, _writable(getattr(self, name)))
        history = {name: _writable(entry) for name, entry in self.history.items()}
        object.__setattr__(self, "history", history)

    @property
    def message(self) -> Any:
        """The cause of the end and its remedy, and the numbers behind it."""
        if self._is_one:
            return f"{self.status.value} {self.details}".rstrip()
        return [one.message for one in self]

    @property
    def summary(self) -> Any:
        """What was done, in one line."""
        if not self._is_one:
            return [one.summary for one in self]
        return (
            f"{self.how}: {self.iterations} iterations, {self.resets} resets, "
            f"{self.evaluations:g} gradients in {self.seconds:.3g} s; {self.status.name}"
        )

    @property
    def success(self) -> Any:
        """Whether the run converged; of a sweep an array."""
        if self._is_one:
            return self.status is Status.converged
        return np.array([status is Status.converged for status in self.status], bool)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything into a file of JSON, from which `from_json` makes the same again.

        Numbers are written so that they come back bit for bit, with their dtypes and shapes; what
        is not finite is written as the words "nan", "inf" and "-inf". An array is its kind and
        dtype, its shape and its entries row by row, a complex one as real and imaginary parts in
        turn; a dict, list or tuple is a list of its entries under its name. `x` may be made of
        these, numbers and None. The file is written whole or not at all.

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
        write(Path(path), saved.text(fields))

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Solution:
        """What `to_json` wrote; a damaged file is a `ValueError` that names the field."""
        return cls(**saved.read(Path(path)))

    def plot(self, ax: Any = None) -> Any:
        """Draw value and norm of the gradient against iterations, and return the axes.

        The value has the left axis; the norm, where the history has it, is dashed and has a right
        one. An axis is logarithmic if there are decades to show. Values that are not all positive
        are drawn as what is above the least of them, and the axis says so. A sweep is a line of
        values for each setting; `solution[i].plot()` draws one of them. Without `ax` a new figure
        is made; several runs may be drawn on one. Needs matplotlib: `pip install 'cfgd[plot]'`.

        >>> import cfgd
        >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
        >>> ax = cfgd.minimize(f, [0.0, 0.0], cfgd.GradientDescent()).plot()
        >>> print(ax.get_xlabel(), "|", ax.get_ylabel())
        iteration | value above the least, -5.8
        """
        return plot.draw(self.history, self.iterations, not self._is_one, ax)

    def covariance(self) -> np.ndarray:
        """Of the parameters, in the order of the numbers in x: how far the data determine them.

        For least squares s^2 (J'J)^-1 with s^2 the sum of squares over the degrees of freedom; for
        the negative logarithm of a likelihood, as of logistic or Poisson regression, the inverse of
        the Hessian. Known of fits by `Auto`; a penalty or a robust loss has none. Infinite where
        the data do not determine the parameters.

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
    def _is_one(self) -> bool:
        """Not of a sweep."""
        return isinstance(self.status, Status)

    def __bool__(self) -> bool:
        if self._is_one:
            return bool(self.success)
        raise TypeError(
            "A sweep is neither true nor false: use `.success`, an array, "
            "with `.all()` or `.any()`."
        )

    def __len__(self) -> int:
        if self._is_one:
            raise TypeError("A solution of one setting has no length.")
        return len(self.status)

    def __getitem__(self, i: int) -> Solution:
        """The solution of setting i of a sweep."""
        len(self)

        def pick(tree: Any) -> Any:
            return jax.tree.map(lambda leaf: leaf[i] if np.ndim(leaf) else leaf, tree)

        return dataclasses.replace(
            self,
            # whoever writes into the x of one setting means this one
            x=jax.tree.map(lambda leaf: _as_array(leaf[i]), self.x),
            **{name: _as_number(pick(getattr(self, name))) for name in NUMBERS},
            status=self.status[i],
            history={k: v if k == "iteration" else pick(v) for k, v in self.history.items()},
            details=self.details if isinstance(self.details, str) else self.details[i],
            information=None,
        )

    def of_first(self, count: int) -> Solution:
        """Of so many settings of a sweep."""
        if count == len(self):
            return self

        def cut(tree: Any) -> Any:
            return jax.tree.map(lambda leaf: leaf[:count], tree)

        return dataclasses.replace(
            self,
            **{name: cut(getattr(self, name)) for name in ("x", *NUMBERS)},
            status=self.status[:count],
            history={k: v if k == "iteration" else cut(v) for k, v in self.history.items()},
            details=self.details[:count],
        )

    def __iter__(self) -> Iterator[Solution]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self._is_one:
            head = f"Solution: {self.status.name}"
            value, norm = float(self.value), float(self.gradient_norm)
            point = f"value {value:.10g}, gradient norm {norm:.3g}"
            counts = f"{self.iterations} iterations, {self.evaluations:g} gradients"
        else:
            names = Counter(status.name for status in self.status)
            ends = ", ".join(f"{count} {name}" for name, count in names.items())
            head = f"Solution of a sweep of {len(self)} settings: {ends}"
            point = _least(self.value, self.gradient_norm)
            most, total = np.max(self.iterations, initial=0), np.sum(self.evaluations)
            counts = f"at most {most} iterations, {total:g} gradients in all"
        by = f" ({self.how})" if self.how else ""
        run = max(self.seconds - self.compile_seconds, 0.0)
        times = f"{run:.3g} s and {self.compile_seconds:.3g} s of compilation"
        return f"{head}{by}\n  {point}\n  {counts}, {times}"


class ConvergenceError(RuntimeError):
    """Raised by `minimize(..., throw=True)`; its `solution` is what would have been returned.

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
        # else it would be made anew from its message, and a pool of processes waits for ever
        return type(self), (self.solution,), self.__dict__


def _least(values: Any, norms: Any) -> str:
    """The least value of a sweep, and where it is."""
    values = np.asarray(values)
    known = np.flatnonzero(~np.isnan(values))
    if len(known) == 0:
        return "no value is a number"
    i = int(known[np.argmin(values[known])])
    return f"least value {values[i]:.10g} in setting {i}, gradient norm {np.asarray(norms)[i]:.3g}"


def _writable(tree: Any) -> Any:
    """What JAX lends to NumPy is read-only: it is copied."""

    def own(leaf: Any) -> Any:
        lent = isinstance(leaf, np.ndarray) and not leaf.flags.writeable
        return np.array(leaf) if lent else leaf

    # JAX's way through a tree takes longer than the copy
    return own(tree) if isinstance(tree, np.ndarray | float | int) else jax.tree.map(own, tree)


def _as_array(leaf: Any) -> Any:
    """The same kinds as `minimize` gives: arrays of x, and of the rest plain numbers."""
    return leaf if isinstance(leaf, jax.Array) else np.array(leaf)


def _as_number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value
