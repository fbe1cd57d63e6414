"""Several processes: how they start, and how the rows that each of them holds become one array.

Everything runs on JAX's own runtime; `docs/guides/processes.md` tells how to use it. A script runs
unchanged on one process and on many:

>>> import cfgd, numpy as np
>>> me = cfgd.distributed.start()
>>> data = cfgd.distributed.rows(np.eye(3), np.array([1.0, 2.0, 4.0]))
>>> f = cfgd.LeastSquares(data.X, data.y, sample_weight=data.sample_weight)
>>> print(me.index, cfgd.minimize(f, np.zeros(3)).x)
0 [1. 2. 4.]
"""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from cfgd._core import checks
from cfgd._core.arrays import as_array, compute_dtype, in_precision
from cfgd._core.files import INTERRUPTED
from cfgd._core.process_group import LostProcessError as LostProcessError, ProcessGroup
from cfgd._core.sharding import WIDE
from cfgd._core.types import Values

# what `cfgd launch` tells the processes that it starts: address, how many there are, which one
COORDINATOR, COUNT, INDEX = "CFGD_COORDINATOR", "CFGD_PROCESSES", "CFGD_PROCESS"
# how SLURM and Open MPI say the same, and what is there only in a process that they started
CLUSTERS = (
    ("SLURM_NTASKS", "SLURM_STEP_NODELIST"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
)
# seconds without a sign of life after which a process counts as dead, and the others end
HEARTBEAT = 30


@dataclasses.dataclass(frozen=True)
class Process:
    """Which one this is, of how many."""

    index: int
    count: int


class Rows(NamedTuple):
    """What an objective takes; `sample_weight` is None where every row counts as one."""

    X: Values
    y: Values
    sample_weight: Values | None


def start() -> Process:
    """Join the other processes, before anything is computed; on one process there is nothing to do.

    Processes that `cfgd launch` started find one another, and so do those of SLURM's srun and of
    Open MPI; others call `jax.distributed.initialize` themselves, before or instead. Where a
    process dies, the others end within a minute; an error that nobody catches ends its process at
    once, without waiting for the others.

    >>> import cfgd
    >>> cfgd.distributed.start()
    Process(index=0, count=1)
    """
    ours = os.environ.get(COORDINATOR)
    theirs = any(
        int(os.environ.get(count, 1)) > 1 and mark in os.environ for count, mark in CLUSTERS
    )
    if not jax.distributed.is_initialized():
        if ours is None and not theirs:
            return Process(0, 1)
        options: dict[str, Any] = {"heartbeat_timeout_seconds": HEARTBEAT}
        if ours is not None:
            options["coordinator_address"] = ours
            options["num_processes"] = int(os.environ[COUNT])
            options["process_id"] = int(os.environ[INDEX])
        try:
            jax.distributed.initialize(**options)
        except RuntimeError as error:
            if "before" not in str(error):
                raise
            raise RuntimeError(
                "`cfgd.distributed.start()` must come first, before JAX has computed anything."
            ) from error
        sys.excepthook = _end_at_once
    return Process(jax.process_index(), jax.process_count())


def _end_at_once(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """At its end JAX waits for the other processes, and they for this one."""
    sys.__excepthook__(kind, error, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED if kind is KeyboardInterrupt else 1)


def rows(X: Any, y: Any, sample_weight: Any = None) -> Rows:
    """Arrays over all processes, of the rows that this one holds: every process makes this call.

    X and y are this process's own, in NumPy or whatever else holds numbers; nothing of them leaves
    the process. Processes may hold different numbers of rows: those that have fewer get rows of
    weight 0, and then there is a `sample_weight` in what is returned, which is to be passed on.
    Columns and precision must be the same everywhere. On one process with one device they stay
    NumPy's.

    >>> import cfgd, numpy as np
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> data = cfgd.distributed.rows(X, [0.0, 1.0, 1.0])
    >>> f = cfgd.LinearModel(*data[:2], l2=0.1, sample_weight=data.sample_weight)
    >>> print(cfgd.minimize(f, [0.0, 0.0]).x.round(3))
    [-0.863  2.325]
    """
    owner, group = "rows", ProcessGroup(jax.devices())
    with group.propagate_errors():
        X = _numbers("X", X)
        y = _numbers("y", y)
        if X.ndim == 0 or y.shape[:1] != X.shape[:1]:
            checks.fail(owner, "y", "have a row for each row of X", f"{y.shape} beside {X.shape}")
        arrays = {"X": X, "y": y}
        if sample_weight is not None:
            arrays["sample_weight"] = _numbers("sample_weight", sample_weight)
            checks.shape(owner, "sample_weight", arrays["sample_weight"], (len(X),))
    group.assert_replicated(owner, {"sample_weight": sample_weight is None})
    group.assert_replicated(
        owner, {name: [*a.shape[1:], str(a.dtype)] for name, a in arrays.items()}
    )
    if jax.device_count() == 1 and len(X):
        return Rows(X, y, arrays.get("sample_weight"))
    here = len(jax.local_devices())
    held = np.array([[len(X), here]]) if group.is_single else group.gather([len(X), here])
    each = int(np.max(-(-held[:, 0] // held[:, 1])))
    if each == 0:
        checks.fail(owner, "X", "have rows on some process", "none at all")
    if np.any(held[:, 0] != each * held[:, 1]) and sample_weight is None:
        arrays["sample_weight"] = np.ones(len(X), compute_dtype(X.dtype))
    place = NamedSharding(Mesh(np.array(jax.devices()), ("rows",)), PartitionSpec("rows"))
    # labels, counts and sizes of every loss may be 1: what has the weight 0 must still be one
    fill = {"X": 0, "y": 1, "sample_weight": 0}
    with in_precision(WIDE):
        whole = {
            name: jax.make_array_from_process_local_data(place, _filled(a, each * here, fill[name]))
            for name, a in arrays.items()
        }
    return Rows(whole["X"], whole["y"], whole.get("sample_weight"))


def _numbers(name: str, given: Any) -> np.ndarray:
    """Finite ones, in a type that is computed with; integers stay what they are."""
    array = checks.real("rows", name, given)
    if array.size:
        checks.finite("rows", name, array)
    return np.asarray(as_array(array))


def _filled(array: np.ndarray, size: int, value: int) -> np.ndarray:
    if len(array) == size:
        return array
    more = np.full((size - len(array), *array.shape[1:]), value, array.dtype)
    return np.concatenate([array, more])
