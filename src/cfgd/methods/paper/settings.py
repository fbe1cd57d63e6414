"""Declaration of the numeric fields of methods and rules, and their conversion for a run.

A field of a method, or of a rule in it, declares what it holds for one setting: a `number` (or one
for each coordinate), a `table` of numbers, a `point`, or `points`. With one axis more it holds one
value for each setting of a sweep. Before a run the fields are checked against the dimension, and
pytrees are flattened.

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
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.arrays import as_array, is_array
from cfgd._core.public_names import ListsPublicNames
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd._core.representation import ShowsCall
from cfgd._core.types import Vector, Vectors

__all__ = ["number", "point", "points", "table"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


class Rule(ListsPublicNames, ShowsCall, eqx.Module):
    """Base class of the rules of a method: for the terminal, the order and the step."""

    _internal: ClassVar[tuple[str, ...]] = ("is_open", "name_of", "owner")

    @property
    def is_open(self) -> bool:
        """Whether a number of the rule is "best", so that the method chooses it."""
        return False

    def owner(self, preset: str | None) -> str:
        """Return whose call has the numbers as arguments: the preset's, or the rule's."""
        return preset or type(self).__name__

    def name_of(self, field: str) -> str:
        """Return the name of the argument that sets a field, for messages."""
        return field


class MessageText(str):
    """A text for messages alone: equal to any other, so that it never causes a new trace."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageText)

    def __hash__(self) -> int:
        return 0


@dataclasses.dataclass(frozen=True)
class FieldKind:
    """What a field holds for one setting."""

    name: str  # "number", "point" or "points"
    axes: int  # the number of axes of one setting
    per_coordinate: bool = False  # whether an axis of coordinates may be added
    batch_axis: int = 0  # where a sweep adds its axis
    count: str = ""  # the name of the field that holds the number of points


def number(*, per_coordinate: bool = True) -> Any:
    """Declare a field that holds a number, or one for each coordinate.

    Parameters
    ----------
    per_coordinate : bool, default True
        Whether the field may also hold one number for each coordinate.

    Returns
    -------
    dataclass field
        To be assigned in the body of the class.

    Examples
    --------
    >>> import cfgd
    >>> class Fading(cfgd.order.Order):
    ...     rate: float = cfgd.settings.number()
    ...     def numbers(self, k):
    ...         return 0.5, self.rate / (1 + k)
    >>> print(Fading(0.2).numbers(1))
    (0.5, 0.1)
    """
    return _field(FieldKind("number", 0, per_coordinate))


def table() -> Any:
    """Declare a field that holds several numbers, such as one for each stage.

    Returns
    -------
    dataclass field
        To be assigned in the body of the class.

    Examples
    --------
    >>> import cfgd
    >>> class Cycle(cfgd.order.Order):
    ...     betas: list = cfgd.settings.table()
    ...     def numbers(self, k):
    ...         return 0.5, self.betas[k % len(self.betas)]
    >>> print(Cycle([0.1, 0.2, 0.3]).numbers(4))
    (0.5, 0.2)
    """
    return _field(FieldKind("number", 1, True, batch_axis=1))


def point() -> Any:
    """Declare a field that holds a point: of the structure of x0, or one number for all of it.

    Returns
    -------
    dataclass field
        To be assigned in the body of the class.

    Examples
    --------
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
    return _field(FieldKind("point", 1))


def points(count: str) -> Any:
    """Declare a field that holds several points, as many as the field named `count` says.

    Parameters
    ----------
    count : str
        The name of the field that holds the number of points.

    Returns
    -------
    dataclass field
        To be assigned in the body of the class.

    Examples
    --------
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
    return _field(FieldKind("points", 2, count=count))


def _field(kind: FieldKind) -> Any:
    return eqx.field(metadata={"kind": kind})


def is_open(value: object) -> bool:
    """Return whether a number is "best", so that the method chooses it."""
    return isinstance(value, str) and value == "best"


@dataclasses.dataclass(frozen=True)
class NumericField:
    """A declared field of a method, or of a rule in it."""

    path: tuple[str, ...]  # attribute names from the method to the rule
    field: str
    kind: FieldKind
    rule: Any  # the rule, or the method itself

    @property
    def name(self) -> str:
        """The name of the field in messages."""
        return self.rule.name_of(self.field) if isinstance(self.rule, Rule) else self.field

    @property
    def where(self) -> Callable[[Any], Any]:
        """The function that gets the field of a method, for `equinox.tree_at`."""
        return operator.attrgetter(".".join((*self.path, self.field)))

    @property
    def value(self) -> Any:
        """The value as arrays: each new Python number would cause a new trace."""
        value, owner = getattr(self.rule, self.field), type(self.rule).__name__
        if is_array(value):
            return as_array(value)
        if self.kind.name == "number":
            return checks.array(owner, self.name, value, "be a number")
        return checked_pytree(owner, self.name, value)

    def rows(self) -> Any:
        """Return the value with a leading axis for the settings of a sweep, perhaps of length 1."""
        if not is_array(self.value):  # a pytree, which is the same for all settings
            return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], self.value)
        if jnp.ndim(self.value) <= self.kind.axes:
            return jnp.asarray(self.value)[None]
        return jnp.moveaxis(jnp.asarray(self.value), self.kind.batch_axis, 0)


def numeric_fields(module: eqx.Module, path: tuple[str, ...] = ()) -> Iterator[NumericField]:
    """Iterate over the declared fields of a method and of its rules."""
    for field in dataclasses.fields(module):
        value, kind = getattr(module, field.name), field.metadata.get("kind")
        if kind is not None and value is not None:
            yield NumericField(path, field.name, kind, module)
        elif kind is None and isinstance(value, eqx.Module):
            yield from numeric_fields(value, (*path, field.name))


def lay_out(method: Any, structure: Structure, d: int, rows: int | None = None) -> Any:
    """Return the method with its fields checked and flattened for points of d coordinates.

    Parameters
    ----------
    structure
        The structure of x0, by which points in fields are flattened.
    rows
        The number of settings of a sweep. Every field then gets a leading axis of this length:
        fields with one axis more than a setting needs hold one entry for each setting, the others
        are repeated.

    Raises
    ------
    ValueError
        If a field does not fit to d or to `structure`, or, in a sweep, is not declared.
    """
    for field in list(numeric_fields(method)):
        flatten = partial(_lay_out_field, method.owner_of(field.rule), field, structure, d)
        if rows is None:
            value = flatten(field.value)
        else:
            batch = field.rows()
            # check the first setting outside of `vmap`, where messages show numbers
            flatten(jax.tree.map(lambda leaf: leaf[0], batch))
            batch = jax.vmap(flatten)(batch)
            value = jnp.broadcast_to(batch, (rows, *batch.shape[1:]))
        method = eqx.tree_at(field.where, method, value)
    if rows is not None:
        _check_declared(method)
    return method


def _check_declared(method: Any) -> None:
    """Refuse a number that is not declared: a sweep cannot know whether it varies by setting."""
    declared = {
        "".join(f".{name}" for name in (*field.path, field.field))
        for field in numeric_fields(method)
    }
    for path, leaf in jax.tree_util.tree_leaves_with_path(method):
        name = jax.tree_util.keystr(path)
        if name not in declared and (is_array(leaf) or isinstance(leaf, int | float)):
            wanted = "declare its numbers by cfgd.settings.number(), point() or points()"
            checks.fail("sweep", "methods", wanted, f"{type(method).__name__}{name}")


def _lay_out_field(
    owner: str, field: NumericField, structure: Structure, d: int, value: Any
) -> Any:
    """Return the value of a field for one setting, checked and flattened."""
    if field.kind.name == "point":
        return _point(owner, field.name, value, structure, d)
    if field.kind.name == "points":
        count = getattr(field.rule, field.kind.count)
        return _points(owner, field.name, value, count, structure, d)
    shape = jnp.shape(value)[field.kind.axes :]
    if not field.kind.per_coordinate and shape != ():
        checks.fail(owner, field.name, "be one number", f"shape {shape}")
    if shape not in ((), (d,)):
        checks.fail(owner, field.name, f"be a number or have shape ({d},)", f"shape {shape}")
    return value


def _point(owner: str, name: str, value: Any, structure: Structure, d: int) -> Vector:
    """Return a point as a vector; one number is repeated."""
    if Structure.of(value) == structure:
        return structure.ravel(value)
    if is_array(value) and value.ndim == 0:
        return jnp.broadcast_to(value, (d,))
    checks.fail(owner, name, f"be a number or {_like(structure, d)}", _shape(value))


def _points(owner: str, name: str, value: Any, lag: int, structure: Structure, d: int) -> Vectors:
    """Return (x_{-1}, ..., x_{-lag}) as rows of a matrix; with lag 1 one point is accepted, too."""
    if lag == 1 and Structure.of(value) == structure:
        return structure.ravel(value)[None]
    is_sequence = isinstance(value, list | tuple) or (is_array(value) and value.ndim > 0)
    past = list(value) if is_sequence else []
    if len(past) != lag or any(Structure.of(p) != structure for p in past):
        count = "1 point " if lag == 1 else f"{lag} points, each "
        checks.fail(owner, name, f"be {count}{_like(structure, d)}", _shape(value, lag))
    return jnp.stack([structure.ravel(p) for p in past])


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


def n_settings(methods: Any) -> int:
    """Return the number of settings of a sweep.

    It is the length of a list of methods, or that of the leading axes of one method's fields.
    """
    if isinstance(methods, list | tuple):
        return _n_methods(list(methods))
    sizes = {}
    for field in numeric_fields(methods):
        first, *_ = jax.tree.leaves(field.rows())
        sizes[field.name] = len(first)
    sizes = {name: size for name, size in sizes.items() if size > 1}
    rows = max(sizes.values(), default=1)
    if any(size != rows for size in sizes.values()):
        got = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        checks.fail("sweep", "methods", "have fields with one common leading length", got)
    return rows


def _n_methods(methods: list[Any]) -> int:
    """Return the length of a list of methods that differ in their numbers alone."""
    wanted = "be settings of one and the same method"
    kinds = sorted({type(method).__name__ for method in methods})
    if len(kinds) != 1:
        checks.fail("sweep", "methods", wanted, ", ".join(kinds) or "an empty list")
    if len({jax.tree.structure(method) for method in methods}) > 1:
        got = f"{kinds[0]} with different lag, nodes, past, reading, stages or step"
        checks.fail("sweep", "methods", wanted, got)
    for fields in zip(*(numeric_fields(method) for method in methods), strict=True):
        shapes = sorted({jnp.shape(field.value) for field in fields if field.kind.name != "point"})
        if len(shapes) > 1:
            got = " and ".join(str(shape) for shape in shapes)
            checks.fail("sweep", "methods", wanted, f"{fields[0].name} of shapes {got}")
    return len(methods)
