"""The parameters of a fit: start values, bounds, and which are fixed or tied to others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import own
from cfgd._core.public_names import ListsPublicNames
from cfgd._core.representation import text_of

Expression = Callable[[dict[str, Any]], Any]
NO_BOUNDS = (None, None)


@dataclasses.dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter of a model: its start, its bounds, and whether it is fitted.

    Parameters
    ----------
    value : number or array, optional
        The start, or the value of a fixed parameter. It may be missing where an `expression` gives
        it, or where `curve_fit(p0="guess")` looks for a start.
    bounds : pair, default (None, None)
        The least and the largest value, numbers or arrays; None or an infinity where there is none.
    fixed : bool, default False
        Whether the parameter keeps its value.
    expression : callable, optional
        A JAX function of the dict of all parameters that gives this one: the parameter is tied.

    Raises
    ------
    ValueError
        If `value` is no number or array, `bounds` is no pair or has a lower bound above its upper
        one, a fixed parameter has no `value` or has an `expression`, or a tied one has bounds.

    Examples
    --------
    >>> import cfgd
    >>> rate = cfgd.Parameter(1.0, bounds=(0, None))
    >>> half = cfgd.Parameter(expression=lambda p: p["rate"] / 2)
    >>> print(cfgd.Parameters(rate=rate, half=half, rest=cfgd.Parameter(0.0, fixed=True)))
    Parameters(rate=1.0 in [0, inf], half=tied, rest=0.0 fixed)
    """

    value: Any = None
    bounds: Any = NO_BOUNDS
    fixed: bool = False
    expression: Expression | None = None

    def __post_init__(self) -> None:
        owner = "Parameter"
        if self.value is not None:
            value = own(checks.array(owner, "value", self.value, "be a number or an array"))
            object.__setattr__(self, "value", value)
        checks.flag(owner, "fixed", self.fixed)
        if self.expression is not None:
            checks.function(owner, "expression", self.expression, "be a function of the parameters")
            if self.fixed:
                checks.fail(owner, "expression", "be None for a fixed parameter", "a function")
        elif self.value is None and self.fixed:
            checks.fail(owner, "value", "be a number for a fixed parameter", "None")
        if self.bounds is NO_BOUNDS:
            object.__setattr__(self, "bounds", (np.array(-np.inf), np.array(np.inf)))
            return
        lower, upper = _pair(owner, self.bounds)
        if not np.all(np.asarray(lower) <= np.asarray(upper)):
            wanted = "have no lower bound above its upper bound"
            checks.fail(owner, "bounds", wanted, f"({lower}, {upper})")
        if self.expression is not None and np.isfinite([np.min(upper), np.max(lower)]).any():
            checks.fail(owner, "bounds", "be left out for a tied parameter", f"({lower}, {upper})")
        shape = np.shape(self.value)
        for bound in (lower, upper):
            if self.value is not None and np.shape(bound) not in ((), shape):
                wanted = f"be numbers or have the shape {shape} of value"
                checks.fail(owner, "bounds", wanted, f"shape {np.shape(bound)}")
        object.__setattr__(self, "bounds", (lower, upper))

    @property
    def kind(self) -> str:
        """The kind: "free", "fixed" or "tied"."""
        return "tied" if self.expression is not None else "fixed" if self.fixed else "free"

    def __repr__(self) -> str:
        shown = [] if self.value is None else [text_of(self.value)]
        lower, upper = self.bounds
        if np.any(np.isfinite(lower)) or np.any(np.isfinite(upper)):
            shown.append(f"bounds=({_text(lower)}, {_text(upper)})")
        if self.fixed:
            shown.append("fixed=True")
        if self.expression is not None:
            shown.append(f"expression={text_of(self.expression)}")
        return f"Parameter({', '.join(shown)})"

    def _in_words(self) -> str:
        """Return value, bounds and kind for the repr of `Parameters`."""
        if self.kind == "tied":
            return "tied"
        text = "no value" if self.value is None else repr(self.value.tolist())
        lower, upper = self.bounds
        if self.kind == "fixed":
            return f"{text} fixed"
        is_bounded = np.any(np.isfinite(lower)) or np.any(np.isfinite(upper))
        return f"{text} in [{_text(lower)}, {_text(upper)}]" if is_bounded else text


def _text(bound: np.ndarray) -> str:
    return f"{bound:g}" if bound.ndim == 0 else str(bound.tolist())


def _pair(owner: str, bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds as two arrays, infinite where there is none."""
    wanted = "be a pair (lower, upper) of numbers or None"
    if not isinstance(bounds, list | tuple | np.ndarray) or len(bounds) != 2:
        checks.fail(owner, "bounds", wanted, repr(bounds))
    return _bound(owner, bounds[0], -np.inf), _bound(owner, bounds[1], np.inf)


def _bound(owner: str, value: Any, infinite: float) -> np.ndarray:
    """Return one side of bounds as an array, with `infinite` where there is None."""
    if value is None:
        return np.array(infinite)
    wanted = "be numbers, infinities or None"
    if isinstance(value, list | tuple):
        value = [infinite if each is None else each for each in value]
    array = np.array(checks.floating(owner, "bounds", value, wanted))
    if np.isnan(array).any():
        checks.fail(owner, "bounds", wanted, "nan")
    return array


class Parameters(ListsPublicNames, Mapping[str, Parameter]):
    """The parameters of a model by name, in the order in which they are written.

    A number or an array is a `Parameter` with that start. In a fit of several data sets, a dict by
    the names of the data sets gives each of them its own parameter: `size={"a": 1.0, "b": 2.0}`
    makes the parameters `size[a]` and `size[b]`.

    Parameters
    ----------
    **named : Parameter, number, array or dict
        The parameters. A model `model(x, size, rate)` takes them by name.

    Raises
    ------
    ValueError
        If there is none, or one is neither a `Parameter` nor a number.

    Examples
    --------
    >>> import cfgd
    >>> p = cfgd.Parameters(size=cfgd.Parameter(1.0, bounds=(0, None)), rate=2.0, rest=0.0)
    >>> print(p.free, p["size"].bounds[0])
    ['size', 'rate', 'rest'] 0.0
    """

    _internal: ClassVar[tuple[str, ...]] = ("changed",)

    def __init__(self, **named: Any) -> None:
        self._named: dict[str, Parameter] = {}
        for name, given in named.items():
            several = given if isinstance(given, Mapping) else None
            if several is None:
                self._add(name, given)
            else:
                for key, each in several.items():
                    self._add(f"{name}[{key}]", each)
        if not self._named:
            checks.fail("Parameters", "**named", "hold at least one parameter", "none")

    def _add(self, name: str, given: Any) -> None:
        if not isinstance(given, Parameter):
            try:
                given = Parameter(given)
            except ValueError as error:
                checks.fail("Parameters", name, "be a Parameter or a number", repr(given), error)
        self._named[name] = given

    @property
    def free(self) -> list[str]:
        """The names of the parameters that are fitted: neither fixed nor tied."""
        return [name for name, each in self._named.items() if each.kind == "free"]

    def changed(self, **changes: Parameter) -> Parameters:
        """Return the same parameters with some of them replaced or added."""
        return Parameters(**{**self._named, **changes})

    def __getitem__(self, name: str) -> Parameter:
        return self._named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}={each._in_words()}" for name, each in self._named.items())
        return f"Parameters({rows})"
