"""Collective operations of several processes: error propagation, broadcasts and agreement.

A process that enters a collective operation which another process skips waits forever. Information
that only one process has (elapsed time, Ctrl-C, an error) must therefore be exchanged before any
process acts on it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import in_precision, is_array
from cfgd._core.sharding import WIDE, devices_across_processes
from cfgd._core.types import ArrayInput

# the address in a default repr, which differs between processes
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# parts of the messages of JAX's runtime for a process that cannot be reached any more
LOST_PROCESS_MARKERS = (
    "Gloo",
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "Connection closed",
    "heartbeat",
)


# Seconds for which the callback of one process may keep the others waiting;
# `cfgd.distributed.start` sets it.
DEFAULT_PATIENCE = 60.0
patience = DEFAULT_PATIENCE
# The exit code of a process that ends because of another one. (75 is EX_TEMPFAIL of sysexits.h: to
# try again may help.)
FOLLOWED = 75


class LostProcessError(RuntimeError):
    """Raised where another process has ended and the common computation cannot continue."""


class OtherProcessError(RuntimeError):
    """Raised on every other process when one process fails; holds the message of that process."""


class ProcessGroup:
    """The processes that own the devices of a computation, and their collective operations.

    Every method except the properties is collective: all processes of the group must call it, in
    the same order. In a group of a single process nothing is communicated.

    Parameters
    ----------
    devices
        The devices of the computation. The first one of each process is used for communication.
    """

    def __init__(self, devices: list[jax.Device]) -> None:
        first_devices: dict[int, jax.Device] = {}
        for device in devices:
            first_devices.setdefault(device.process_index, device)
        self.indices = sorted(first_devices)
        self.devices = tuple(first_devices[i] for i in self.indices)

    @classmethod
    def of(cls, *trees: PyTree) -> ProcessGroup:
        """Return the group of the processes over which the arrays in `trees` are sharded.

        An objective whose passes are sums over processes says so by its `process_group`.
        """
        for tree in trees:
            group = getattr(tree, "process_group", None)
            if group is not None:
                return group
        return cls(devices_across_processes(trees))

    @property
    def is_single(self) -> bool:
        """Whether there is no other process to communicate with."""
        return len(self.devices) < 2

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and shows progress."""
        return self.is_single or jax.process_index() == self.indices[0]

    # -------------------------------------------------------------- exchange of data

    def gather(self, numbers: ArrayInput) -> np.ndarray:
        """Return the numbers of all processes, as float64 and with one row for each process.

        `numbers` must have the same length on every process.
        """
        with in_precision(WIDE):
            row = self._own_row(np.asarray(numbers, WIDE))
            return np.asarray(_collectives(self.devices).gather(row))

    def all_reduce_sum(self, part: np.ndarray) -> np.ndarray:
        """Return the sum of the `part` of every process, by one all-reduce."""
        return np.asarray(_collectives(self.devices).sum(self._own_row(part)))

    def gather_objects(self, value: Any) -> list[Any]:
        """Return the small values, of any type that can be pickled, of all processes."""
        own = np.frombuffer(pickle.dumps(value), np.uint8)
        sizes = self.gather([own.size])[:, 0].astype(int)
        row = np.zeros(sizes.max(), np.uint8)
        row[: own.size] = own
        rows = np.asarray(_collectives(self.devices).gather(self._own_row(row)))
        return [pickle.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]

    def broadcast_bytes(self, text: bytes) -> bytes:
        """Return the `text` of the main process; that of the other processes is ignored."""
        own = np.frombuffer(text if self.is_main else b"", np.uint8)
        size = int(self.gather([own.size])[0, 0])
        row = np.zeros(size, np.uint8)  # zeros on all processes but one: the sum is a broadcast
        row[: own.size] = own
        return self.all_reduce_sum(row).tobytes()

    def _own_row(self, row: np.ndarray) -> jax.Array:
        """Make the global array of one row for each process, of which this process holds `row`."""
        shape = (len(self.devices), *row.shape)
        sharding = _collectives(self.devices).row_sharding
        return jax.make_array_from_callback(shape, sharding, lambda _: row[None])

    def barrier(self) -> None:
        """Wait until all processes are here, however long that takes."""
        self.gather([0])

    @contextlib.contextmanager
    def limit_wait(self, advice: str = "") -> Iterator[None]:
        """End this process if it waits here for longer than `patience` seconds for the others.

        A thread ends it, because a collective operation cannot be interrupted.
        """
        if self.is_single:
            yield
            return

        def give_up() -> None:
            sys.stderr.write(
                f"Process {jax.process_index()} has waited {patience:g} seconds for the callback "
                f"of another process, which has not returned, and ends.{advice} If callbacks take "
                "longer, give `cfgd.distributed.start` a larger `patience`.\n"
            )
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(FOLLOWED)

        timer = threading.Timer(patience, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    # -------------------------------------------------------------- errors and agreement

    @contextlib.contextmanager
    def propagate_errors(self) -> Iterator[None]:
        """Let an exception in this context on one process raise on all, with its message."""
        if self.is_single:
            yield
            return
        try:
            yield
        except Exception as error:
            self.raise_collectively(error)
            raise
        self.raise_collectively(None)

    def raise_collectively(self, error: BaseException | None) -> None:
        """Report this process's error, or None, and raise if another process reports one.

        A process that has an error itself returns, so that the caller can raise that error.

        Raises
        ------
        OtherProcessError
            On a process without an error: the error of the first process that has one.
        """
        text = "" if error is None else f"{type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            text = f"It called sys.exit({error.code!r})."
        own = text.encode()[:10_000]
        sizes = self.gather([len(own)])[:, 0].astype(int)
        if not sizes.any():
            return
        row = np.zeros(sizes.max())
        row[: len(own)] = np.frombuffer(own, np.uint8)
        texts = self.gather(row)
        if error is None:
            i = int(np.flatnonzero(sizes)[0])
            message = texts[i, : sizes[i]].astype(np.uint8).tobytes().decode(errors="replace")
            raise OtherProcessError(
                f"Process {self.indices[i]} failed, so all processes fail. {message}"
            )

    def assert_replicated(self, owner: str, fields: Mapping[str, Any]) -> None:
        """Raise a `ValueError` on every process if a field differs between processes.

        Processes with different arguments would run different collective operations and hang.
        """
        if self.is_single:
            return
        checksums = self.gather([zlib.crc32(_bytes(value)) for value in fields.values()])
        for name, column in zip(fields, checksums.T, strict=True):
            different = np.flatnonzero(column != column[0])
            if len(different):
                got = f"another one on process {self.indices[int(different[0])]}"
                checks.fail(owner, name, "be the same on every process", got)

    @contextlib.contextmanager
    def report_lost_process(self, advice: str = "") -> Iterator[None]:
        """Turn an error of JAX about an unreachable process into a `LostProcessError`."""
        try:
            yield
        except (ValueError, RuntimeError) as error:
            if self.is_single or not any(word in str(error) for word in LOST_PROCESS_MARKERS):
                raise
            cause = str(error).partition("\n")[0]
            raise LostProcessError(
                "Another process has ended or cannot be reached, so the common computation cannot "
                f"continue, and this process ends, too.{advice} ({cause})"
            ) from error


class _Collectives(NamedTuple):
    """The sharding of one row on each device, and compiled operations on such an array."""

    row_sharding: NamedSharding
    gather: Callable[[jax.Array], jax.Array]
    sum: Callable[[jax.Array], jax.Array]


@functools.cache
def _collectives(devices: tuple[jax.Device, ...]) -> _Collectives:
    mesh = Mesh(np.array(devices), ("processes",))
    replicated = NamedSharding(mesh, PartitionSpec())
    return _Collectives(
        row_sharding=NamedSharding(mesh, PartitionSpec("processes")),
        gather=jax.jit(lambda rows: rows, out_shardings=replicated),
        sum=jax.jit(lambda rows: jnp.sum(rows, 0, dtype=rows.dtype), out_shardings=replicated),
    )


def _bytes(value: PyTree) -> bytes:
    """Return bytes by which values are compared: entries of arrays, the repr of other leaves."""
    leaves, treedef = jax.tree.flatten(value)
    texts = [str(treedef), *(repr(leaf) for leaf in leaves if not is_array(leaf))]
    arrays = [np.ascontiguousarray(leaf).tobytes() for leaf in leaves if is_array(leaf)]
    return b"|".join([ADDRESS.sub("", " ".join(texts)).encode(), *arrays])
