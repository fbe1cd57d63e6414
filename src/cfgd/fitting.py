"""A method's numbers meet a problem's shape: checked, laid out as vectors, repeated for a sweep."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd import _check
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
        owner = type(rule if name == "step_rule" else method).__name__

        def one(value: Any, owner: str = owner, field: str = field, rule: Any = rule) -> Any:
            return _fit_field(owner, field, rule, value, structure, d)

        if rows is None:
            value = one(value)
        else:
            value = jax.vmap(one)(_rows(rule, value, rank))
            value = jnp.broadcast_to(value, (rows, *value.shape[1:]))
        where = operator.attrgetter(f"{name}.{field}")
        method = eqx.tree_at(where, method, value)
    return method


def _fields(method: Any) -> Iterator[tuple[str, str, int]]:
    """The numeric fields of a method: rule, field, rank."""
    for name in RULES:
        rule = getattr(method, name)
        for field, rank in rule.ranks.items():
            if getattr(rule, field) is not None:
                yield name, field, rank


def _rows(rule: Any, value: Any, rank: int) -> Any:
    """`value` with an axis of rows in front."""
    if jnp.ndim(value) <= rank:
        return jnp.asarray(value)[None]
    return jnp.moveaxis(jnp.asarray(value), rule.batch_axis, 0)


def _fit_field(owner: str, field: str, rule: Any, value: Any, structure: Any, d: int) -> Any:
    if field == "point":
        return _point(owner, value, structure, d)
    if field == "past":
        return _past(owner, value, rule.lag, structure, d)
    # a table of stages has their axis in front
    _number(owner, field, value[0] if rule.ranks[field] else value, d)
    return value


def _number(owner: str, field: str, value: Any, d: int) -> None:
    # beta is what a gamma becomes
    field = "gamma` or `beta" if field == "beta" else field
    if jnp.shape(value) not in ((), (d,)):
        wanted = f"be a number or have shape ({d},)"
        _check.fail(owner, field, wanted, f"shape {jnp.shape(value)}")


def _point(owner: str, value: Any, structure: Structure, d: int) -> Any:
    if Structure.of(value) == structure:
        return structure.ravel(value)
    if jnp.ndim(value) == 0 and not isinstance(value, dict):
        return jnp.broadcast_to(value, (d,))
    _check.fail(owner, "terminal", f"be a number or {_like(structure, d)}", _shape(value))


def _past(owner: str, value: Any, lag: int, structure: Structure, d: int) -> Any:
    """(x_{-1}, ..., x_{-lag}) as the rows of a matrix; with lag 1 the point itself will do."""
    wanted = f"be {lag} point{'s' if lag > 1 else ''}, each {_like(structure, d)}"
    if lag == 1 and Structure.of(value) == structure:
        return structure.ravel(value)[None]
    points = list(value) if isinstance(value, list | tuple) or jnp.ndim(value) > 0 else []
    if len(points) != lag or any(Structure.of(p) != structure for p in points):
        _check.fail(owner, "past", wanted, _shape(value))
    return jnp.stack([structure.ravel(p) for p in points])


def _like(structure: Structure, d: int) -> str:
    return f"of shape ({d},)" if structure.is_vector else "of the structure of x0"


def _shape(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"{len(value)} points"
    return f"shape {jnp.shape(value)}" if hasattr(value, "shape") else f"a {type(value).__name__}"


def rows_of(methods: Any) -> int:
    """How many settings a sweep has: methods in a list, or entries of the leading batch axes."""
    if isinstance(methods, list | tuple):
        kinds = {jax.tree.structure(method) for method in methods}
        if len(kinds) != 1 or not hasattr(methods[0], "terminal"):
            got = ", ".join(sorted({type(m).__name__ for m in methods})) or "an empty list"
            _check.fail("sweep", "methods", "be settings of one and the same method", got)
        return len(methods)
    if not hasattr(methods, "terminal"):
        _check.fail("sweep", "methods", "be a method or a list of settings", repr(methods))
    sizes = {
        field: len(_rows(getattr(methods, name), getattr(getattr(methods, name), field), rank))
        for name, field, rank in _fields(methods)
    }
    rows = max(sizes.values(), default=1)
    if any(size not in (1, rows) for size in sizes.values()):
        _check.fail("sweep", "methods", "have fields with one common leading length", sizes)
    return rows
