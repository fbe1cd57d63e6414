"""A method's numbers meet a problem's shape: checked, laid out as vectors, split for a sweep.

Every rule says with `ranks` how many axes its fields have for one setting: a number 0, a point 1,
the points of the past 2.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd import _check
from cfgd.structure import Structure

RULES = ("terminal", "order", "step_rule")


def fit(method: Any, structure: Structure, d: int) -> Any:
    """The method for points of d coordinates laid out by `structure`, or a clear error."""
    owner = type(method).__name__
    for name in RULES:
        rule = getattr(method, name)
        for field, rank in rule.ranks.items():
            value = getattr(rule, field)
            if value is None:
                continue
            if rank == 0:
                _number(owner if name != "step_rule" else type(rule).__name__, field, value, d)
            elif rank == 1:
                value = _point(owner, value, structure, d)
            elif field == "past":
                value = _past(owner, value, rule.lag, structure, d)
            method = eqx.tree_at(
                lambda m, name=name, field=field: getattr(getattr(m, name), field), method, value
            )
    return method


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


def split(methods: Any) -> list[Any]:
    """The settings of a sweep, one method each: a list, or one method with leading batch axes."""
    if isinstance(methods, list | tuple):
        kinds = {jax.tree.structure(method) for method in methods}
        if not methods or len(kinds) != 1 or not hasattr(methods[0], "terminal"):
            _check.fail(
                "sweep", "methods", "be settings of one and the same method", _kinds(methods)
            )
        return list(methods)
    if not hasattr(methods, "terminal"):
        _check.fail("sweep", "methods", "be a method or a list of them", repr(methods))
    batched = []
    for name in RULES:
        rule = getattr(methods, name)
        for field, rank in rule.ranks.items():
            value = getattr(rule, field)
            if value is not None and jnp.ndim(value) > rank:
                axis = getattr(rule, "batch_axis", 0)
                batched.append((name, field, np.moveaxis(np.asarray(value), axis, 0)))
    sizes = {field: len(value) for _, field, value in batched}
    rows = max(sizes.values(), default=1)
    if any(size not in (1, rows) for size in sizes.values()):
        _check.fail("sweep", "methods", "have fields with one common leading length", sizes)
    settings = []
    for i in range(rows):
        setting = methods
        for name, field, value in batched:
            setting = eqx.tree_at(
                lambda m, name=name, field=field: getattr(getattr(m, name), field),
                setting,
                value[i if len(value) > 1 else 0],
            )
        settings.append(setting)
    return settings


def _kinds(methods: Any) -> str:
    return ", ".join(sorted({type(m).__name__ for m in methods})) or "an empty list"
