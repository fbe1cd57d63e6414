"""Numbers meet shapes: check fields against d, flatten pytrees, add the axis of a sweep.

A field of a method, or of a rule in it, declares what it holds in one setting: a `number` (or one
for each coordinate), a `point`, or `points`. With one axis more it holds one for each setting.

>>> import cfgd
>>> class Cautious(cfgd.StepRule):
...     part: float = cfgd.settings.number(per_coordinate=False)
...     def choose(self, line, memory):
...         return cfgd.Chosen(self.part * line.slope / line.curvature())
>>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
>>> ends = cfgd.sweep(f, [0.0, 0.0], cfgd.GradientDescent(Cautious([0.5, 0.9])))
>>> print(ends.success)
[ True  True]
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.arrays import as_array, is_array
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd._core.types import Vector, Vectors


class Rule(eqx.Module):
    """A rule of a method: for the terminal, the order or the step."""

    @property
    def is_open(self) -> bool:
        """Whether the rule's numbers are left to the method to choose."""
        return False

    def owner(self, preset: str | None) -> str:
        """In whose call the user gave the rule its numbers: a preset's, or its own."""
        return preset or type(self).__name__

    def name_of(self, field: str) -> str:
        """A field as the user knows it."""
        return field


class Word(str):
    """A word that only messages use: equal to any other, so that it makes no new trace."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word)

    def __hash__(self) -> int:
        return 0


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a field holds in one setting: `axes` of its own, and if coordinates may add one."""

    name: str
    axes: int
    per_coordinate: bool = False
    batch_axis: int = 0  # where a sweep adds its axis
    count: str = ""  # the field with the number of points


def number(*, per_coordinate: bool = True) -> Any:
    """A field that holds a number, or one for each coordinate.

    >>> import cfgd
    >>> class Fading(cfgd.order.Order):
    ...     rate: float = cfgd.settings.number()
    ...     def numbers(self, k):
    ...         return 0.5, self.rate / (1 + k)
    >>> print(Fading(0.2).numbers(1))
    (0.5, 0.1)
    """
    return _field(Kind("number", 0, per_coordinate))


def table() -> Any:
    """A field that holds numbers along an axis of its own, such as one for each stage.

    >>> import cfgd
    >>> class Cycle(cfgd.order.Order):
    ...     betas: list = cfgd.settings.table()
    ...     def numbers(self, k):
    ...         return 0.5, self.betas[k % len(self.betas)]
    >>> print(Cycle([0.1, 0.2, 0.3]).numbers(4))
    (0.5, 0.2)
    """
    return _field(Kind("number", 1, True, batch_axis=1))


def point() -> Any:
    """A field that holds a point: the structure of x0, or one number for all coordinates.

    >>> import cfgd
    >>> class Towards(cfgd.terminal.Terminal):
    ...     goal: list = cfgd.settings.point()
    ...     def init(self, x0):
    ...         return None
    ...     def next(self, memory, x, k):
    ...         return (x + self.goal) / 2, memory
    >>> print(Towards(1.0).next(None, 3.0, 0)[0])
    2.0
    """
    return _field(Kind("point", 1))


def points(count: str) -> Any:
    """A field that holds several points, as many as the field `count` says.

    >>> import cfgd
    >>> import equinox as eqx
    >>> class Known(cfgd.terminal.Terminal):
    ...     number: int = eqx.field(static=True)
    ...     given: list = cfgd.settings.points(count="number")
    ...     def init(self, x0):
    ...         return self.given
    ...     def next(self, memory, x, k):
    ...         return memory[k % self.number], memory
    >>> print(Known(2, [[1.0], [2.0]]).next([[1.0], [2.0]], [0.0], 3)[0])
    [2.0]
    """
    return _field(Kind("points", 2, count=count))


def _field(kind: Kind) -> Any:
    return eqx.field(metadata={"kind": kind})


def is_open(value: object) -> bool:
    """Whether a number is left to the method to choose."""
    return isinstance(value, str) and value == "best"


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a number of a method stands."""

    path: tuple[str, ...]  # to the rule
    field: str
    kind: Kind
    rule: Any

    @property
    def name(self) -> str:
        return self.rule.name_of(self.field) if isinstance(self.rule, Rule) else self.field

    @property
    def where(self) -> Callable[[Any], Any]:
        return operator.attrgetter(".".join((*self.path, self.field)))

    @property
    def value(self) -> Any:
        """What stands there, as arrays: a number of Python's would be a new trace each time."""
        value, owner = getattr(self.rule, self.field), type(self.rule).__name__
        if is_array(value):
            return as_array(value)
        if self.kind.name == "number":
            return checks.array(owner, self.name, value, "be a number")
        return checked_pytree(owner, self.name, value)

    def rows(self) -> Any:
        """Its value with an axis of rows in front."""
        if not is_array(self.value):  # a pytree: one for all rows
            return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], self.value)
        if jnp.ndim(self.value) <= self.kind.axes:
            return jnp.asarray(self.value)[None]
        return jnp.moveaxis(jnp.asarray(self.value), self.kind.batch_axis, 0)


def places(module: eqx.Module, path: tuple[str, ...] = ()) -> Iterator[Place]:
    """The numbers of a method and of its rules."""
    for field in dataclasses.fields(module):
        value, kind = getattr(module, field.name), field.metadata.get("kind")
        if kind is not None and value is not None:
            yield Place(path, field.name, kind, module)
        elif kind is None and isinstance(value, eqx.Module):
            yield from places(value, (*path, field.name))


def lay_out(method: Any, structure: Structure, d: int, rows: int | None = None) -> Any:
    """The method for points of d coordinates laid out by `structure`, or a clear error.

    With `rows`, fields that have one axis more than a setting needs hold one entry for each row
    of a sweep; the others are repeated.
    """
    for place in list(places(method)):
        one = partial(_lay_out_one, method.owner_of(place.rule), place, structure, d)
        if rows is None:
            value = one(place.value)
        else:
            many = place.rows()
            # an error is worded here, where it is not inside a transformation
            one(jax.tree.map(lambda leaf: leaf[0], many))
            many = jax.vmap(one)(many)
            value = jnp.broadcast_to(many, (rows, *many.shape[1:]))
        method = eqx.tree_at(place.where, method, value)
    if rows is not None:
        _check_declared(method)
    return method


def _check_declared(method: Any) -> None:
    """A sweep must know of every number whether it has one for each setting."""
    declared = {"".join(f".{name}" for name in (*one.path, one.field)) for one in places(method)}
    for path, leaf in jax.tree_util.tree_leaves_with_path(method):
        name = jax.tree_util.keystr(path)
        if name not in declared and (is_array(leaf) or isinstance(leaf, int | float)):
            wanted = "declare its numbers by cfgd.settings.number(), point() or points()"
            checks.fail("sweep", "methods", wanted, f"{type(method).__name__}{name}")


def _lay_out_one(owner: str, place: Place, structure: Structure, d: int, value: Any) -> Any:
    if place.kind.name == "point":
        return _point(owner, place.name, value, structure, d)
    if place.kind.name == "points":
        count = getattr(place.rule, place.kind.count)
        return _points(owner, place.name, value, count, structure, d)
    shape = jnp.shape(value)[place.kind.axes :]
    if not place.kind.per_coordinate and shape != ():
        checks.fail(owner, place.name, "be one number", f"shape {shape}")
    if shape not in ((), (d,)):
        checks.fail(owner, place.name, f"be a number or have shape ({d},)", f"shape {shape}")
    return value


def _point(owner: str, name: str, value: Any, structure: Structure, d: int) -> Vector:
    if Structure.of(value) == structure:
        return structure.ravel(value)
    if is_array(value) and value.ndim == 0:
        return jnp.broadcast_to(value, (d,))
    checks.fail(owner, name, f"be a number or {_like(structure, d)}", _shape(value))


def _points(owner: str, name: str, value: Any, lag: int, structure: Structure, d: int) -> Vectors:
    """(x_{-1}, ..., x_{-lag}) as the rows of a matrix; with lag 1 the point itself will do."""
    if lag == 1 and Structure.of(value) == structure:
        return structure.ravel(value)[None]
    several = isinstance(value, list | tuple) or (is_array(value) and value.ndim > 0)
    given = list(value) if several else []
    if len(given) != lag or any(Structure.of(p) != structure for p in given):
        count = "1 point " if lag == 1 else f"{lag} points, each "
        checks.fail(owner, name, f"be {count}{_like(structure, d)}", _shape(value, lag))
    return jnp.stack([structure.ravel(p) for p in given])


def _like(structure: Structure, d: int) -> str:
    return f"of shape ({d},)" if structure.is_vector else "of the structure of x0"


def _shape(value: Any, lag: int | None = None) -> str:
    if is_array(value):
        return f"shape {tuple(value.shape)}"
    if not isinstance(value, list | tuple):
        return f"a {type(value).__name__}"
    if len(value) != lag or not all(is_array(point) for point in value):
        return f"{len(value)} point{'' if len(value) == 1 else 's'}"
    return "points of shapes " + " and ".join(str(tuple(point.shape)) for point in value)


def rows_of(methods: Any) -> int:
    """How many settings a sweep has: methods in a list, or entries of the leading batch axes."""
    if isinstance(methods, list | tuple):
        return _settings(list(methods))
    sizes = {}
    for place in places(methods):
        first, *_ = jax.tree.leaves(place.rows())
        sizes[place.name] = len(first)
    sizes = {name: size for name, size in sizes.items() if size > 1}
    rows = max(sizes.values(), default=1)
    if any(size != rows for size in sizes.values()):
        got = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        checks.fail("sweep", "methods", "have fields with one common leading length", got)
    return rows


def _settings(methods: list[Any]) -> int:
    wanted = "be settings of one and the same method"
    kinds = sorted({type(method).__name__ for method in methods})
    if len(kinds) != 1:
        checks.fail("sweep", "methods", wanted, ", ".join(kinds) or "an empty list")
    if len({jax.tree.structure(method) for method in methods}) > 1:
        got = f"{kinds[0]} with different lag, nodes, past, reading, stages or step"
        checks.fail("sweep", "methods", wanted, got)
    for same in zip(*(places(method) for method in methods), strict=True):
        shapes = sorted({jnp.shape(one.value) for one in same if one.kind.name != "point"})
        if len(shapes) > 1:
            got = " and ".join(str(shape) for shape in shapes)
            checks.fail("sweep", "methods", wanted, f"{same[0].name} of shapes {got}")
    return len(methods)
