"""Which engine computes the passes over the rows of `Blocks`."""

from __future__ import annotations

from typing import Any

import jax

from cfgd._core import checks
from cfgd._core.engines.base import Engine
from cfgd._core.engines.local import LocalEngine
from cfgd._core.engines.processes import ProcessesEngine
from cfgd._core.engines.threads import ThreadsEngine
from cfgd._core.process_group import ProcessGroup
from cfgd._core.types import UserInput
from cfgd.objectives.linear.block_source import OWNER, Block, parts_of
from cfgd.objectives.linear.dask_rows import is_dask, parts_of_dask

# Parts for each thread: the last ones to end keep the others waiting for less than a tenth.
PARTS_PER_THREAD = 8


def engine_of(
    source: UserInput,
    given: Block,
    target: str | None,
    memory: float,
    *,
    threads: int,
    client: Any,
    group: ProcessGroup | None,
) -> Engine:
    """Return the engine of the rows of `source`; the parameters are those of `Blocks`."""
    count = PARTS_PER_THREAD * threads if threads > 1 else 1
    client = _client_of(source, client, group)
    if client is not None:
        if threads > 1:
            wanted = "not be given with a client, whose workers have threads"
            checks.fail(OWNER, "threads", wanted, f"{threads}")
        from cfgd._core.engines.dask_cluster import DaskEngine, parts_for

        return DaskEngine(_parts(source, given, target, memory, parts_for(client)), client)
    parts = _parts(source, given, target, memory / threads, count)
    own: Engine = ThreadsEngine(parts, threads) if threads > 1 else LocalEngine(parts)
    return own if group is None else ProcessesEngine(own, group)


def _parts(source: Any, given: Block, target: str | None, memory: float, count: int) -> Any:
    of = parts_of_dask if is_dask(source) else parts_of
    return of(source, given, target, memory, count)


def _client_of(source: UserInput, client: Any, group: ProcessGroup | None) -> Any:
    """Return the Dask client: the given one, or for Dask collections the current one, if any."""
    if client is None:
        if not is_dask(source) or group is not None:
            return None
        from distributed import get_client

        try:
            return get_client()
        except ValueError:
            return None
    if not (hasattr(client, "map") and hasattr(client, "scheduler_info")):
        wanted = "be a client of dask.distributed"
        checks.fail(OWNER, "client", wanted, checks.describe(client))
    if group is not None:
        checks.fail(OWNER, "client", "not be given with `distributed`", "both")
    if callable(source) or (hasattr(source, "shape") and not is_dask(source)):
        wanted = "be Dask arrays, a Dask data frame or files if a client is given"
        checks.fail(OWNER, "source", wanted, checks.describe(source))
    return client


def all_processes() -> ProcessGroup | None:
    """Return the processes of `cfgd.distributed`; None for a single one."""
    group = ProcessGroup(jax.devices())
    return None if group.is_single else group
