"""A method's numbers meet a problem's shape: checked, laid out as vectors, repeated for a sweep."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd import _check
from cfgd.precision import is_array
from cfgd.structure import Structure

RULES = ("terminal", "order", "step_rule")


def fit(method: Any, structure: Structure, d: int, rows: int | None = None) -> Any:
    """The method for points of d coordinates laid out by `structure`, or a clear error.

    With `rows`, fields that have one axis more than a setting needs hold one entry for each row
    of a sweep; the others are repeated.
    """
    for name, field, rank in _fields(method):
        rule = getattr(method, name)
        value = getattr(rule, field)
        one = partial(_fit_field, _owner(method, name), field, rule, structure, d)
        if rows is None:
            value = one(value)
        else:
            many = _rows(rule, value, rank)
            # an error is worded here, where it is not inside a transformation
            one(jax.tree.map(lambda leaf: leaf[0], many))
            many = jax.vmap(one)(many)
            value = jnp.broadcast_to(many, (rows, *many.shape[1:]))
        method = eqx.tree_at(operator.attrgetter(f"{name}.{field}"), method, value)
    if hasattr(method.order, "given"):  # worth knowing for messages only, and not a new trace
        plain = dataclasses.replace(method.order, given="beta")
        method = eqx.tree_at(lambda m: m.order, method, plain)
    return method


def _owner(method: Any, name: str) -> str:
    """Who was given a rule's numbers."""
    if name == "step_rule":
        return type(method.step_rule).__name__
    return "Stage" if name == "order" and method.order.batch_axis else type(method).__name__


def _name(rule: Any, field: str) -> str:
    """A field as the user knows it: beta is what a gamma becomes."""
    return rule.given if field == "beta" else field


def _fields(method: Any) -> Iterator[tuple[str, str, int]]:
    """The numeric fields of a method: rule, field, rank."""
    for name in RULES:
        rule = getattr(method, name)
        for field, rank in rule.ranks.items():
            if getattr(rule, field) is not None:
                yield name, field, rank


def _rows(rule: Any, value: Any, rank: int) -> Any:
    """`value` with an axis of rows in front."""
    if not is_array(value):  # a pytree: one for all rows
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], value)
    if jnp.ndim(value) <= rank:
        return jnp.asarray(value)[None]
    return jnp.moveaxis(jnp.asarray(value), rule.batch_axis, 0)


def _fit_field(owner: str, field: str, rule: Any, structure: Any, d: int, value: Any) -> Any:
    if field == "point":
        return _point(owner, value, structure, d)
    if field == "past":
        return _past(owner, value, rule.lag, structure, d)
    shape = jnp.shape(value)[rule.ranks[field] :]  # a table of stages has their axis in front
    if not rule.per_coordinate and shape != ():
        _check.fail(owner, field, "be one number", f"shape {shape}")
    if shape not in ((), (d,)):
        wanted = f"be a number or have shape ({d},)"
        _check.fail(owner, _name(rule, field), wanted, f"shape {shape}")
    return value


def _point(owner: str, value: Any, structure: Structure, d: int) -> Any:
    if Structure.of(value) == structure:
        return structure.ravel(value)
    if is_array(value) and value.ndim == 0:
        return jnp.broadcast_to(value, (d,))
    _check.fail(owner, "terminal", f"be a number or {_like(structure, d)}", _shape(value))


def _past(owner: str, value: Any, lag: int, structure: Structure, d: int) -> Any:
    """(x_{-1}, ..., x_{-lag}) as the rows of a matrix; with lag 1 the point itself will do."""
    if lag == 1 and Structure.of(value) == structure:
        return structure.ravel(value)[None]
    several = isinstance(value, list | tuple) or (is_array(value) and value.ndim > 0)
    points = list(value) if several else []
    if len(points) != lag or any(Structure.of(p) != structure for p in points):
        number = "1 point " if lag == 1 else f"{lag} points, each "
        _check.fail(owner, "past", f"be {number}{_like(structure, d)}", _shape(value, lag))
    return jnp.stack([structure.ravel(p) for p in points])


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
    if not hasattr(methods, "terminal"):
        _check.fail("sweep", "methods", "be a method or a list of settings", repr(methods))
    sizes = {}
    for name, field, rank in _fields(methods):
        rule = getattr(methods, name)
        first, *_ = jax.tree.leaves(_rows(rule, getattr(rule, field), rank))
        sizes[_name(rule, field)] = len(first)
    sizes = {name: size for name, size in sizes.items() if size > 1}
    rows = max(sizes.values(), default=1)
    if any(size != rows for size in sizes.values()):
        got = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        _check.fail("sweep", "methods", "have fields with one common leading length", got)
    return rows


def _settings(methods: list[Any]) -> int:
    wanted = "be settings of one and the same method"
    kinds = sorted({type(method).__name__ for method in methods})
    if len(kinds) != 1 or not hasattr(methods[0], "terminal"):
        _check.fail("sweep", "methods", wanted, ", ".join(kinds) or "an empty list")
    if len({jax.tree.structure(method) for method in methods}) > 1:
        got = f"{kinds[0]} with different lag, nodes, past, stages or step"
        _check.fail("sweep", "methods", wanted, got)
    for name, field, _ in _fields(methods[0]):
        rules = [getattr(method, name) for method in methods]
        shapes = sorted({jnp.shape(getattr(rule, field)) for rule in rules if field != "point"})
        if len(shapes) > 1:
            got = " and ".join(str(shape) for shape in shapes)
            _check.fail("sweep", "methods", wanted, f"{_name(rules[0], field)} of shapes {got}")
    return len(methods)
