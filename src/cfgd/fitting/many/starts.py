"""The starts of many fits: one for all, one for each, or a function that guesses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd.fitting.many.program import x_of
from cfgd.fitting.read_parameters import Given


def read_p0(
    owner: str, p0: Any, shape: tuple[int, ...], x: Any, y: np.ndarray
) -> tuple[Any, dict[str, np.ndarray], Callable[..., Any] | None]:
    """Return a `p0` of one fit, the numbers of all fits by name, and a function that guesses.

    Those of a `p0` without names have their numbers as names; see `named`.
    """
    if isinstance(p0, str):
        checks.fail(owner, "p0", "be numbers, a dict, Parameters or a function", repr(p0))
    if callable(p0):
        with checks.traceable(owner, "p0"):
            out = jax.eval_shape(p0, x, y)
        leaves = jax.tree.leaves(out)
        if isinstance(out, Mapping):
            return {name: 1.0 for name in out}, {}, p0
        if len(leaves) == 1 and len(leaves[0].shape) == 1:
            return [1.0] * leaves[0].shape[0], {}, p0
        if not leaves or any(leaf.shape != () for leaf in leaves):
            checks.fail(owner, "p0", "return a list or dict of numbers", checks.describe(out))
        return [1.0] * len(leaves), {}, p0
    if isinstance(p0, Mapping) and not hasattr(p0, "free"):
        own = {name: np.asarray(each) for name, each in p0.items() if np.shape(each) == shape}
        return {name: 1.0 if name in own else each for name, each in p0.items()}, own, None
    if p0 is not None and not isinstance(p0, Mapping):
        checks.real(owner, "p0", p0, "be numbers, a dict, Parameters or a function")
    if p0 is not None and not isinstance(p0, Mapping) and np.ndim(p0) > 1:
        numbers = np.asarray(p0)
        if numbers.shape[:-1] != shape:
            wanted = f"have one row of numbers, or the leading shape {shape} of Y"
            checks.fail(owner, "p0", wanted, f"shape {numbers.shape}")
        own = {str(i): numbers[..., i] for i in range(numbers.shape[-1])}
        return [1.0] * numbers.shape[-1], own, None
    return p0, {}, None


def named(owner: str, given: Given, own: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the starts of all fits by name; refuse parameters that are arrays."""
    for name, each in given.parameters.items():
        if each.kind != "tied" and np.ndim(each.value) > 0:
            wanted = f"have one number for {name!r}, or one for each fit"
            checks.fail(owner, "p0", wanted, f"shape {np.shape(each.value)}")
    if not own or given.positional is None:
        return own
    return dict(zip(given.positional, own.values(), strict=True))


def guess_rows(
    guess: Callable[..., Any],
    x_treedef: Any,
    names: tuple[str, ...],
    shared: dict[str, Any],
    rows: dict[str, Any],
) -> dict[str, Any]:
    """Return the starts of all fits that `guess` finds, by name."""

    def one(row: dict[str, Any]) -> dict[str, Any]:
        data = shared | row
        found = guess(x_of(x_treedef, data), data["y"])
        if isinstance(found, Mapping):
            return {name: found[name] for name in names if name in found}
        return dict(zip(names, found, strict=True))

    return jax.vmap(one)(rows)
