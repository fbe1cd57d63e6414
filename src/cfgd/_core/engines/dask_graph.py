"""Parts of Dask collections: the tasks that make the chunks of consecutive partitions.

The tasks are sent to the worker once, in the order in which it runs them. In every pass it makes
one chunk after the other, so that one chunk is in memory at a time. Persisted chunks are arguments
of the part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from cfgd._core import checks
from cfgd._core.engines.base import even_slices

# Returns blocks of the chunks of one partition, one chunk of every collection.
Read = Callable[..., Iterable[Any]]


# Sum of the numbers of tasks that the blocks need, relative to the number of tasks in the graph,
# above which there is a warning. Rechunking and overlaps have two to three; with a mean over all
# blocks it is half the number of blocks.
MANY_TIMES = 5


class Step(NamedTuple):
    """A task of a part, and the keys whose values are no longer needed after it."""

    key: Any
    task: Any
    released: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class GraphPart:
    """Some partitions of several collections.

    Attributes
    ----------
    steps : list of lists of Step
        For each partition the tasks that make its chunks, without those of `futures` and of earlier
        partitions.
    keys : list of lists
        For each partition the keys of its chunks; None for a collection not given.
    released : list of tuples
        For each partition the keys that are not needed after it.
    read : function
        Returns blocks of the chunks of a partition.
    futures : dict
        The chunks that workers hold, by their keys.
    """

    steps: list[list[Step]]
    keys: list[list[Any]]
    released: list[tuple[Any, ...]]
    read: Read
    futures: dict[Any, Any]

    def __call__(self, values: Sequence[Any] | None = None) -> Iterator[Any]:
        """Iterate over the blocks; `values` are those of the futures, in their order."""
        if values is None:
            values = [future.result() for future in self.futures.values()]
        made = dict(zip(self.futures, values, strict=True))
        for steps, keys, released in zip(self.steps, self.keys, self.released, strict=True):
            for key, task, unused in steps:
                made[key] = task(made)
                for one in unused:
                    del made[one]
            chunks = [None if key is None else made[key] for key in keys]
            for one in released:
                del made[one]
            yield from self.read(*chunks)

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
    from dask._task_spec import convert_legacy_graph

    graph: dict[Any, Any] = {}
    columns: list[Any] = []
    for collection in collections:
        if collection is None:
            columns.append(None)
            continue
        # tasks that are fused would be made again for each of the collections that need them
        is_frame = hasattr(collection, "optimize")
        found = collection.optimize(fuse=False) if is_frame else collection
        graph |= dict(found.__dask_graph__())
        columns.append(list(_flat(found.__dask_keys__())))
    futures = {key: value for key, value in graph.items() if _is_future(value)}
    tasks = convert_legacy_graph(
        {key: value for key, value in graph.items() if key not in futures}, set(graph)
    )
    n = max(len(keys) for keys in columns if keys is not None)
    rows = [[None if keys is None else keys[i] for keys in columns] for i in range(n)]
    parts = [_part(tasks, futures, rows[chosen], read) for chosen in even_slices(n, count)]
    _warn_of_shared(tasks, rows)
    return parts


def _warn_of_shared(tasks: dict[Any, Any], rows: list[list[Any]]) -> None:
    """Warn if blocks need the data of many others."""
    needed = 0
    for keys in rows:
        needed += len(_needed([key for key in keys if key is not None], tasks, set()))
        if needed > MANY_TIMES * len(tasks):
            checks.warn(
                "The blocks of the Dask collections need the data of many others, which every pass "
                "makes again or keeps in memory. Compute before what they share, such as the mean "
                "in `X - X.mean(0)`, or persist the collections."
            )
            return


def _part(
    tasks: dict[Any, Any], futures: dict[Any, Any], rows: list[list[Any]], read: Read
) -> GraphPart:
    """Return the part of consecutive partitions, of which `rows` has the keys."""
    made: set[Any] = set()
    found: list[list[Any]] = []
    for keys in rows:
        new = _needed([key for key in keys if key is not None], tasks, made)
        found.append(new)
        made.update(new)
    used = {key for new in found for one in new for key in tasks[one].dependencies}
    used |= {key for keys in rows for key in keys if key is not None}
    own = {key: futures[key] for key in futures if key in used}
    steps: list[list[Step]] = []
    released: list[tuple[Any, ...]] = []
    seen = set(own)  # the values of futures, which the worker holds anyway, are not released
    for new, keys in zip(reversed(found), reversed(rows), strict=True):
        released.append(tuple(_unseen((key for key in keys if key is not None), seen)))
        last = [Step(one, tasks[one], tuple(_unseen(tasks[one].dependencies, seen)))
                for one in reversed(new)]  # fmt: skip
        steps.append(last[::-1])
    return GraphPart(steps[::-1], rows, released[::-1], read, own)


def _needed(keys: list[Any], tasks: dict[Any, Any], made: set[Any]) -> list[Any]:
    """Return the tasks that make `keys`, those that others need first, without those in `made`."""
    found: dict[Any, None] = {}
    stack = [(key, False) for key in reversed(keys)]
    while stack:
        key, has_dependencies = stack.pop()
        if key in made or key in found or key not in tasks:
            continue
        if has_dependencies:
            found[key] = None
        else:
            stack.append((key, True))
            stack += [(one, False) for one in sorted(tasks[key].dependencies, key=str)]
    return list(found)


def _unseen(keys: Iterable[Any], seen: set[Any]) -> Iterator[Any]:
    """Iterate over the keys that are not in `seen`, and add them."""
    for key in keys:
        if key not in seen:
            seen.add(key)
            yield key


def _flat(keys: Any) -> Iterator[Any]:
    """Iterate over the keys in nested lists."""
    for key in keys:
        if isinstance(key, list):
            yield from _flat(key)
        else:
            yield key


def _is_future(value: Any) -> bool:
    return type(value).__module__ == "distributed.client" and hasattr(value, "result")
