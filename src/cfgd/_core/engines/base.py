"""The interface of an engine, and the sum of the results of parts."""

from __future__ import annotations

import abc
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


def total(results: Iterable[Arrays]) -> Arrays:
    """Add tuples of arrays, one after the other."""
    results = iter(results)
    # a copy, into which the others are added: a result may be of a buffer that is read-only
    first = tuple(np.array(array) for array in next(results))
    for arrays in results:
        for into, array in zip(first, arrays, strict=True):
            into += array
    return first
