"""The interface of an engine, and the sum of the results of parts."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

# Returns the blocks of a part of the data; called once for every pass.
Part: TypeAlias = Callable[[], Iterable[Any]]
# A pass: gets an iterator of the blocks of a part, and further arguments.
Pass: TypeAlias = Callable[..., Any]
Arrays: TypeAlias = tuple[np.ndarray, ...]


class Engine(abc.ABC):
    """Applies a pass to all parts of the data."""

    @abc.abstractmethod
    def map(self, function: Pass, *args: Any) -> Iterator[Any]:
        """Iterate over function(blocks, *args) of all parts, in their order."""

    def sum(self, function: Pass, *args: Any) -> Arrays:
        """Return the sum of the arrays function(blocks, *args) over all parts."""
        return total(self.map(function, *args))


def even_slices(size: int, count: int) -> Iterator[slice]:
    """Divide `size` items into at most `count` slices whose sizes differ by at most one."""
    count = min(size, max(count, 1))
    for k in range(count):
        yield slice(k * size // count, (k + 1) * size // count)


# How many results are added to one sum, and how many sums to one of the next level. On the workers
# of a cluster each addition is a task with as many results in memory.
FAN_IN = 8


def total(results: Iterable[Arrays]) -> Arrays:
    """Add tuples of arrays in a tree, in which each node is the sum of `FAN_IN` children."""
    levels: list[_Sum | None] = []
    for arrays in results:
        _add(levels, 0, arrays)
    level = 0
    while level < len(levels) - 1:  # add the incomplete sums, from the first level on
        incomplete, levels[level] = levels[level], None
        if incomplete is not None:
            _add(levels, level + 1, incomplete.arrays)
        level += 1
    found = levels[-1] if levels else None
    if found is None:
        raise ValueError("There are no results to add.")
    return found.arrays


@dataclasses.dataclass
class _Sum:
    arrays: Arrays
    count: int = 1


def _add(levels: list[_Sum | None], level: int, arrays: Arrays) -> None:
    """Add arrays to the sum of a level; add a complete sum to that of the next level."""
    if level == len(levels):
        levels.append(None)
    found = levels[level]
    if found is None:
        # the others are added to a copy: a result may be in a buffer that is read-only
        found = levels[level] = _Sum(tuple(np.array(array) for array in arrays))
    else:
        for into, array in zip(found.arrays, arrays, strict=True):
            into += array
        found.count += 1
    if found.count == FAN_IN:
        levels[level] = None
        _add(levels, level + 1, found.arrays)
