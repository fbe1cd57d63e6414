"""The compiled programs of an objective, for calls from the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.compiled import bind
from cfgd._core.interruptible import interruptible_trace
from cfgd._core.types import Vector
from cfgd._core.weak_table import WeakTable
from cfgd.objectives.base import Objective
from cfgd.objectives.residuals import Residuals

# Numbers in an objective up to which their copies on the device are kept for the next run: 8 MiB of
# float64.
MOST_KEPT = 2**20
# Numbers in an array up to which it is passed with every call on a CPU. This takes about 2
# microseconds; a transfer takes 20, and more than a millisecond on a busy machine, because another
# thread makes it. On other devices every call would need a transfer.
MOST_PASSED = 2**14


class Programs:
    """The compiled functions of one objective, whose large arrays are on the device already."""

    def __init__(self) -> None:
        self.bound: dict[Any, Callable[..., Any]] = {}
        self.outlines: dict[int, Outline] = {}  # by the size of x

    @classmethod
    def kept(cls, objective: Objective) -> Programs:
        """Return the programs of the last run with this objective, unless its arrays are large."""
        found = objective._kept.get(cls)
        if found is None:
            found = cls()
            if sum(np.size(leaf) for leaf in jax.tree.leaves(objective)) <= MOST_KEPT:
                objective._kept[cls] = found
        return found

    def of(
        self, fn: Callable[..., Any], objective: Objective, is_quick: bool = False
    ) -> Callable[..., Any]:
        if fn in self.bound:
            return self.bound[fn]
        on_device = jax.tree.map(_on_device, objective)
        usual = "full" if objective.traits.prefers_gradients else "usual"
        program = bind(fn, on_device, effort="quick" if is_quick else usual)
        if not any(map(checks.is_traced, jax.tree.leaves(on_device))):  # a tracer must not be kept
            self.bound[fn] = program
        return program


def _on_device(leaf: object) -> object:
    # a single number is passed on every device
    if not isinstance(leaf, np.ndarray) or leaf.ndim == 0:
        return leaf
    is_passed = leaf.size <= MOST_PASSED and jax.default_backend() == "cpu"
    return leaf if is_passed else jax.device_put(leaf)


class Outline(NamedTuple):
    """Properties of residuals that are found by tracing."""

    size: int
    has_loops: bool


# Outlines by the function and the shapes of its arguments.
_outlines: WeakTable[dict[Any, Outline]] = WeakTable()


def outline_of(objective: Residuals, x: Vector) -> Outline:
    """Trace the residuals, once for a function and the shapes of its arguments."""
    known = _outlines.of(objective.fn, dict)
    key = checks.signature_of((x, objective.args, objective.samples))
    if key not in known:
        traced = jax.make_jaxpr(partial(interruptible_trace, objective.vector))(x)
        text = str(traced)
        known[key] = Outline(traced.out_avals[0].size, "scan[" in text or "while[" in text)
    return known[key]
