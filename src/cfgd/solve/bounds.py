"""Bounds as users write them, as a box of the vector that the solver uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.box import Box
from cfgd._core.pytrees import Structure
from cfgd._core.types import DType

FORMS = (
    "be a list of (lower, upper) pairs, a tuple (lower, upper) of numbers or arrays, a "
    "scipy.optimize.Bounds, or a dict of pairs for a dict of parameters"
)


def as_box(
    owner: str, bounds: Any, structure: Structure, dtype: DType, names: list[str] | None = None
) -> Box:
    """Return the box of bounds for points of a structure, whose numbers may have names.

    None and infinities mean that there is no bound; equal bounds keep a coordinate fixed. Dicts,
    lists and tuples of arrays have bounds of the same structure, where a pair may stand for an
    array.
    """
    lower, upper = _lower_and_upper(owner, bounds, structure)
    if np.isnan(lower).any() or np.isnan(upper).any():
        checks.fail(owner, "bounds", "be numbers or None", "NaN")
    is_empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if is_empty.any():
        j = int(is_empty.argmax())
        name = (coordinate_names(structure) if names is None else names)[j]
        got = f"{lower[j]:g} and {upper[j]:g} for {name}"
        checks.fail(owner, "bounds", "be feasible, with lower <= upper", got)
    return Box(lower.astype(dtype), upper.astype(dtype))


def coordinate_names(structure: Structure) -> list[str]:
    """Return a name for each number of a pytree: x[0], x['rate'], x['w'][2, 1]."""
    indices = iter(range(len(structure.shapes)))
    tree = jax.tree.unflatten(structure.treedef, list(indices))
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        stem, shape = "x" + jax.tree_util.keystr(path), structure.shapes[leaf]
        names += [stem + (f"[{', '.join(map(str, at))}]" if at else "") for at in np.ndindex(shape)]
    return names


def describe_active(box: Box, x: np.ndarray, names: list[str], most: int = 8) -> str:
    """Return a sentence that names the coordinates at their bounds; empty where there are none."""
    if not box.mask(x).any():
        return ""
    is_fixed, mask = box.lower == box.upper, box.mask(x)
    parts = []
    for words, chosen in (
        ("at the lower bound", (mask < 0) & ~is_fixed),
        ("at the upper bound", (mask > 0) & ~is_fixed),
        ("fixed", is_fixed),
    ):
        found = [names[j] for j in np.flatnonzero(chosen)]
        if found:
            more = f" and {len(found) - most} more" if len(found) > most else ""
            parts.append(f"{words}: {', '.join(found[:most])}{more}")
    sentence = "; ".join(parts)
    return f" {sentence[0].upper()}{sentence[1:]}."


def details_in_box(
    details: list[str], box: Box, x: Any, structure: Structure, was_moved: bool
) -> list[str]:
    """Return the details of each run with the coordinates that are at their bounds."""
    moved = " The start was outside of `bounds` and was moved inside." if was_moved else ""
    names, rows = coordinate_names(structure), zip(details, np.atleast_2d(x), strict=True)
    return [text + describe_active(box, row, names) + moved for text, row in rows]


def _lower_and_upper(
    owner: str, bounds: Any, structure: Structure
) -> tuple[np.ndarray, np.ndarray]:
    """Return both bounds as vectors."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        return _leaf(owner, bounds.lb, structure, -np.inf), _leaf(
            owner, bounds.ub, structure, np.inf
        )
    one_leaf = len(structure.shapes) == 1 and structure.treedef == jax.tree.structure(0)
    if isinstance(bounds, Mapping) or not one_leaf:
        return _of_tree(owner, bounds, structure)
    if not isinstance(bounds, Sequence) and not isinstance(bounds, np.ndarray):
        checks.fail(owner, "bounds", FORMS, checks.describe(bounds))
    d = structure.size
    if isinstance(bounds, tuple) and len(bounds) == 2 and not (d == 2 and _are_tuples(bounds)):
        return _leaf(owner, bounds[0], structure, -np.inf), _leaf(
            owner, bounds[1], structure, np.inf
        )
    if isinstance(bounds, tuple) and len(bounds) == 2:
        wanted = (
            "say which is which for two coordinates: a list of two (lower, upper) pairs, or a "
            "tuple of two lists, (lower, upper)"
        )
        checks.fail(owner, "bounds", wanted, repr(bounds))
    return _of_pairs(owner, bounds, d)


def _are_tuples(bounds: tuple[Any, ...]) -> bool:
    return all(isinstance(one, tuple) for one in bounds)


def _of_pairs(owner: str, pairs: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    if len(pairs) != d:
        checks.fail(owner, "bounds", f"hold {d} pairs, one for each coordinate", f"{len(pairs)}")
    lower, upper = np.empty(d), np.empty(d)
    for j, pair in enumerate(pairs):
        lower[j], upper[j] = _pair(owner, f"bounds[{j}]", pair)
    return lower, upper


def _pair(owner: str, field: str, pair: Any) -> tuple[float, float]:
    if pair is None:
        return -np.inf, np.inf
    wanted = "be a pair (lower, upper) of numbers or None"
    try:
        low, high = pair
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        checks.fail(owner, field, wanted, checks.describe(pair))
    return low, high


def _leaf(owner: str, bound: Any, structure: Structure, default: float) -> np.ndarray:
    """Return one side as a vector; a single number is used for all coordinates."""
    shape = structure.shapes[0] if len(structure.shapes) == 1 else (structure.size,)
    try:
        entries = np.array(bound, object)
        entries = np.where(entries == None, default, entries).astype(float)  # noqa: E711
        return np.broadcast_to(entries, shape).reshape(-1).copy()
    except (TypeError, ValueError):
        wanted = f"have numbers or arrays of shape {shape}"
        checks.fail(owner, "bounds", wanted, checks.describe(bound))


def _of_tree(owner: str, bounds: Any, structure: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return both bounds for a pytree, from one of pairs with the same structure.

    An array's pair holds two numbers or two arrays of its shape; None and missing keys of a dict
    mean that there are no bounds.
    """
    example = jax.tree.unflatten(structure.treedef, list(range(len(structure.shapes))))
    lower, upper = [], []
    given = _aligned(owner, "bounds", bounds, example)
    for index, shape in enumerate(structure.shapes):
        field, pair = given[index]
        if pair is None:
            pair = (None, None)
        if not isinstance(pair, Sequence) or len(pair) != 2:
            checks.fail(owner, field, "be a pair (lower, upper)", checks.describe(pair))
        own = Structure(jax.tree.structure(0), (shape,))
        lower.append(_leaf(owner, pair[0], own, -np.inf))
        upper.append(_leaf(owner, pair[1], own, np.inf))
    return np.concatenate(lower), np.concatenate(upper)


def _aligned(owner: str, field: str, bounds: Any, example: Any) -> dict[int, tuple[str, Any]]:
    """Return for each leaf of the example its bounds, with the name of the field."""
    if isinstance(example, int):
        return {example: (field, bounds)}
    if bounds is None:
        return {leaf: (field, None) for leaf in jax.tree.leaves(example)}
    if isinstance(example, Mapping):
        if not isinstance(bounds, Mapping):
            checks.fail(owner, field, FORMS, checks.describe(bounds))
        unknown = sorted(set(bounds) - set(example))
        if unknown:
            wanted = f"have keys among {', '.join(map(repr, example))}"
            checks.fail(owner, field, wanted, repr(unknown[0]))
        parts = [(f"{field}[{k!r}]", bounds.get(k), example[k]) for k in example]
    elif isinstance(example, list | tuple):
        if not isinstance(bounds, list | tuple) or len(bounds) != len(example):
            wanted = f"have {len(example)} entries like x0"
            checks.fail(owner, field, wanted, checks.describe(bounds))
        parts = [(f"{field}[{i}]", bounds[i], one) for i, one in enumerate(example)]
    else:
        wanted = "be given for numbers, arrays, dicts, lists and tuples"
        checks.fail(owner, field, wanted, f"a {type(example).__name__} as x0")
    found: dict[int, tuple[str, Any]] = {}
    for name, part, one in parts:
        found |= _aligned(owner, name, part, one)
    return found
