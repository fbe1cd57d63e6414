"""Computations over several processes: join them, and make global arrays of their rows.

Everything runs on JAX's own runtime; the guide is `docs/guides/processes.md`. A script runs
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
from types import TracebackType
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from cfgd._core import checks, process_group
from cfgd._core.arrays import as_array, compute_dtype, in_precision
from cfgd._core.environment import (
    COORDINATOR as COORDINATOR,
    COUNT as COUNT,
    INDEX as INDEX,
    in_cluster,
)
from cfgd._core.files import INTERRUPTED
from cfgd._core.process_group import (
    DEFAULT_PATIENCE,
    FOLLOWED,
    LostProcessError as LostProcessError,
    OtherProcessError,
    ProcessGroup,
)
from cfgd._core.representation import text_of
from cfgd._core.sharding import WIDE
from cfgd._core.types import UserInput, Values

__all__ = ["rows", "start"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


# seconds without a heartbeat after which a process counts as dead, and the others end
HEARTBEAT = 30


@dataclasses.dataclass(frozen=True)
class Process:
    """The index of this process and the number of processes."""

    index: int
    count: int


class DistributedRows(NamedTuple):
    """Arrays over all processes, for an objective; `sample_weight` is None if all weights are 1."""

    X: Values
    y: Values
    sample_weight: Values | None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text_of(each)}" for name, each in self._asdict().items())
        return f"DistributedRows({shown})"


def start(patience: float = DEFAULT_PATIENCE) -> Process:
    """Join the other processes; must be called before JAX computes anything.

    Processes that are started by `cfgd launch`, SLURM's srun or Open MPI find one another. With
    other launchers call `jax.distributed.initialize` before, or instead. In a single process
    nothing happens.

    If a process dies, the others end within a minute. An uncaught exception ends its process at
    once, without waiting for the others.

    Parameters
    ----------
    patience : float, default 60.0
        Seconds for which the other processes wait for the callback of one process. After that they
        end with a message.

    Returns
    -------
    Process
        The index of this process and the number of processes.

    Raises
    ------
    ValueError
        If `patience` is not a positive number.
    RuntimeError
        If JAX has already computed something.

    Examples
    --------
    >>> import cfgd
    >>> cfgd.distributed.start()
    Process(index=0, count=1)
    """
    process_group.patience = checks.one_positive("start", "patience", patience)
    coordinator = os.environ.get(COORDINATOR)
    if not jax.distributed.is_initialized():
        if coordinator is None and not in_cluster():
            return Process(0, 1)
        options: dict[str, Any] = {"heartbeat_timeout_seconds": HEARTBEAT}
        if coordinator is not None:
            options["coordinator_address"] = coordinator
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
        sys.excepthook = _exit_at_once
    return Process(jax.process_index(), jax.process_count())


def _exit_at_once(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Exit without JAX's shutdown, which would wait for processes that wait for this one."""
    sys.__excepthook__(kind, error, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    if issubclass(kind, LostProcessError | OtherProcessError):
        os._exit(FOLLOWED)  # by which `cfgd launch` tells causes from consequences
    os._exit(INTERRUPTED if kind is KeyboardInterrupt else 1)


def rows(X: UserInput, y: UserInput, sample_weight: UserInput = None) -> DistributedRows:
    """Make global arrays of the rows that each process holds; every process must make this call.

    No data leaves a process. Processes may hold different numbers of rows: those with fewer rows
    are padded with rows of weight 0. On one process with one device the arrays stay NumPy arrays.

    Parameters
    ----------
    X : matrix
        The rows of this process, in NumPy or any other array-like. The number of columns and the
        dtype must be the same on every process.
    y : array
        The targets of these rows.
    sample_weight : array, optional
        Their weights, given on all processes or on none.

    Returns
    -------
    DistributedRows
        Global X, y and `sample_weight`. If rows were padded, `sample_weight` is not None even if it
        was not given, and must be passed to the objective.

    Raises
    ------
    ValueError
        If `y` or `sample_weight` does not have an entry for each row of `X`, a number is not
        finite, there are no rows at all, or columns, dtypes or the presence of `sample_weight`
        differ between processes.

    Examples
    --------
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
            checks.fail(
                owner, "y", "have a row for each row of X", f"shapes {y.shape} and {X.shape}"
            )
        arrays = {"X": X, "y": y}
        if sample_weight is not None:
            arrays["sample_weight"] = _numbers("sample_weight", sample_weight)
            checks.shape(owner, "sample_weight", arrays["sample_weight"], (len(X),))
    group.assert_replicated(owner, {"sample_weight": sample_weight is None})
    group.assert_replicated(
        owner, {name: [*a.shape[1:], str(a.dtype)] for name, a in arrays.items()}
    )
    if jax.device_count() == 1 and len(X):
        return DistributedRows(X, y, arrays.get("sample_weight"))
    n_devices = len(jax.local_devices())
    # rows and devices of each process
    sizes = (
        np.array([[len(X), n_devices]]) if group.is_single else group.gather([len(X), n_devices])
    )
    per_device = int(np.max(-(-sizes[:, 0] // sizes[:, 1])))
    if per_device == 0:
        checks.fail(owner, "X", "have rows on some process", "none at all")
    if np.any(sizes[:, 0] != per_device * sizes[:, 1]) and sample_weight is None:
        arrays["sample_weight"] = np.ones(len(X), compute_dtype(X.dtype))
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("rows",)), PartitionSpec("rows"))
    # 1 is a valid target of every loss, and targets of weight 0 are checked, too
    padding = {"X": 0, "y": 1, "sample_weight": 0}
    with in_precision(WIDE):
        global_arrays = {
            name: jax.make_array_from_process_local_data(
                sharding, _padded(a, per_device * n_devices, padding[name])
            )
            for name, a in arrays.items()
        }
    return DistributedRows(
        global_arrays["X"], global_arrays["y"], global_arrays.get("sample_weight")
    )


def _numbers(name: str, value: UserInput) -> np.ndarray:
    """Return an input as a finite NumPy array in its compute dtype; integers keep their dtype."""
    array = checks.real("rows", name, value)
    if array.size:
        checks.finite("rows", name, array)
    return np.asarray(as_array(array))


def _padded(array: np.ndarray, size: int, value: int) -> np.ndarray:
    """Append rows of `value` until the array has `size` rows."""
    if len(array) == size:
        return array
    padding = np.full((size - len(array), *array.shape[1:]), value, array.dtype)
    return np.concatenate([array, padding])
