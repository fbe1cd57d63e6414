"""Parts of Dask collections: the tasks that make the chunks of consecutive partitions.

The graph of the tasks goes to the worker once; in every pass the worker makes one chunk after the
other, so that it has one in memory. Chunks that are persisted are its arguments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

# Returns blocks of the chunks of one partition, one chunk of every collection.
Read = Callable[..., Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class GraphPart:
    """Some partitions of several collections.

    Attributes
    ----------
    graph : dict
        What makes the chunks, without those of `futures`.
    keys : list of lists
        For each partition the keys of its chunks in the graph; None for a collection not given.
    read : function
        Returns blocks of the chunks of a partition.
    futures : dict
        The chunks that workers hold, by their keys.
    """

    graph: dict[Any, Any]
    keys: list[list[Any]]
    read: Read
    futures: dict[Any, Any]

    def __call__(self, values: Sequence[Any] | None = None) -> Iterator[Any]:
        """Iterate over the blocks; `values` are those of the futures, in their order."""
        from dask.local import get_sync

        if values is None:
            values = [future.result() for future in self.futures.values()]
        graph = self.graph | dict(zip(self.futures, values, strict=True))
        for keys in self.keys:
            found = iter(get_sync(graph, [key for key in keys if key is not None]))
            yield from self.read(*(None if key is None else next(found) for key in keys))

    def without_futures(self) -> GraphPart:
        """Return the part with the keys of its futures alone, which a worker can hold."""
        return dataclasses.replace(self, futures=dict.fromkeys(self.futures))


def parts_of_collections(collections: Sequence[Any], read: Read, count: int) -> list[GraphPart]:
    """Return about `count` parts of collections that have the same partitions.

    Parameters
    ----------
    collections
        Arrays in one chunk of columns, series and data frames of Dask; None where one is not given.
    """
    from dask.optimization import cull

    graph: dict[Any, Any] = {}
    columns: list[Any] = []
    for collection in collections:
        if collection is None:
            columns.append(None)
            continue
        found = collection.optimize() if hasattr(collection, "optimize") else collection
        graph |= dict(found.__dask_graph__())
        columns.append(list(_flat(found.__dask_keys__())))
    n = max(len(keys) for keys in columns if keys is not None)
    rows = [[None if keys is None else keys[i] for keys in columns] for i in range(n)]
    parts, size = [], -(-n // min(n, max(count, 1)))
    for start in range(0, n, size):
        chosen = rows[start : start + size]
        own, _ = cull(graph, [key for keys in chosen for key in keys if key is not None])
        futures = {key: value for key, value in own.items() if _is_future(value)}
        tasks = {key: value for key, value in own.items() if key not in futures}
        parts.append(GraphPart(tasks, chosen, read, futures))
    return parts


def _flat(keys: Any) -> Iterator[Any]:
    """Iterate over the keys in nested lists."""
    for key in keys:
        if isinstance(key, list):
            yield from _flat(key)
        else:
            yield key


def _is_future(value: Any) -> bool:
    return type(value).__module__ == "distributed.client" and hasattr(value, "result")
