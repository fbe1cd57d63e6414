"""Passes in this thread, with or without one that reads ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cfgd._core.engines.base import Engine, Part, Pass
from cfgd._core.engines.prefetch import prefetch

END_OF_PART = object()


class SerialEngine(Engine):
    """Computes one part after the other: for blocks that are in memory."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    def map(self, function: Pass, *args: Any) -> Iterator[Any]:
        return (function(iter(part()), *args) for part in self.parts)


class LocalEngine(Engine):
    """Computes one part after the other; the first block of the next one is read meanwhile."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    def map(self, function: Pass, *args: Any) -> Iterator[Any]:
        reading = prefetch(self._blocks())
        for _ in self.parts:
            blocks = _to_end(reading)
            yield function(blocks, *args)
            for _ in blocks:  # a function may return before the end
                pass

    def _blocks(self) -> Iterator[Any]:
        for part in self.parts:
            yield from part()
            yield END_OF_PART


def _to_end(reading: Iterator[Any]) -> Iterator[Any]:
    """Iterate over the blocks of one part."""
    for block in reading:
        if block is END_OF_PART:
            return
        yield block
        del block
