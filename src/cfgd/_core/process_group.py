"""What several processes agree on: who fails, fails for all, and what is decided, is decided once.

A process that waits for a sum which another one does not take part in waits for ever. So whatever
a process finds out alone, a clock, Ctrl-C, an error, it tells the others before anybody acts on it.
"""

from __future__ import annotations

import contextlib
import functools
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from cfgd._core import checks
from cfgd._core.arrays import in_precision, is_array
from cfgd._core.sharding import WIDE, devices_across_processes

Program: TypeAlias = Callable[[Any], Any]

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# what JAX says where another process cannot be reached any more
LOST = ("Gloo", "UNAVAILABLE", "DEADLINE_EXCEEDED", "Connection closed", "heartbeat")


class LostProcessError(RuntimeError):
    """Another process has ended, and with it the computation that it was part of."""


class OtherProcessError(RuntimeError):
    """What another process raised, and so this one does, too."""


class ProcessGroup:
    """The processes whose devices the arrays of a computation are on.

    Alone, which is where all devices are of this process, nothing is said and nothing costs.
    """

    def __init__(self, devices: list[jax.Device]) -> None:
        firsts: dict[int, jax.Device] = {}
        for device in devices:
            firsts.setdefault(device.process_index, device)
        self.indices = sorted(firsts)
        self.devices = tuple(firsts[i] for i in self.indices)

    @classmethod
    def of(cls, *trees: Any) -> ProcessGroup:
        """Those that the arrays in the trees are spread over."""
        return cls(devices_across_processes(trees))

    @property
    def is_single(self) -> bool:
        return len(self.devices) < 2

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and draws progress."""
        return self.is_single or jax.process_index() == self.indices[0]

    # -------------------------------------------------------------- what is said

    def gather(self, numbers: Any) -> np.ndarray:
        """The numbers of all processes, a row for each: as many of them everywhere."""
        with in_precision(WIDE):
            return np.asarray(_programs(self.devices)[1](self._row(np.asarray(numbers, WIDE))))

    def all_reduce_sum(self, part: np.ndarray) -> np.ndarray:
        """The sum over the processes, each of which has a part of it: one all-reduce."""
        return np.asarray(_programs(self.devices)[2](self._row(part)))

    def broadcast_bytes(self, text: bytes) -> bytes:
        """What the first process has to say; the others give anything."""
        said = np.frombuffer(text if self.is_main else b"", np.uint8)
        size = int(self.gather([said.size])[0, 0])
        row = np.zeros(size, np.uint8)
        row[: said.size] = said
        return np.asarray(_programs(self.devices)[2](self._row(row))).tobytes()

    def _row(self, row: np.ndarray) -> Any:
        place = _programs(self.devices)[0]
        shape = (len(self.devices), *row.shape)
        return jax.make_array_from_callback(shape, place, lambda _: row[None])

    # -------------------------------------------------------------- one fate

    @contextlib.contextmanager
    def propagate_errors(self) -> Iterator[None]:
        """What fails in here on one process fails on all of them, with its message."""
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
        """Of an error, or that there is none: then the first one of others' is raised."""
        text = "" if error is None else f"{type(error).__name__}: {error}"
        said = text.encode()[:10_000]
        sizes = self.gather([len(said)])[:, 0].astype(int)
        if not sizes.any():
            return
        row = np.zeros(sizes.max())
        row[: len(said)] = np.frombuffer(said, np.uint8)
        texts = self.gather(row)
        if error is None:
            i = int(np.flatnonzero(sizes)[0])
            words = texts[i, : sizes[i]].astype(np.uint8).tobytes().decode(errors="replace")
            raise OtherProcessError(f"Process {self.indices[i]} failed, and so do all. {words}")

    def assert_replicated(self, owner: str, fields: Mapping[str, Any]) -> None:
        """Refuse what is not given alike on every process: else they would go different ways."""
        if self.is_single:
            return
        marks = self.gather([zlib.crc32(_bytes(value)) for value in fields.values()])
        for name, column in zip(fields, marks.T, strict=True):
            other = np.flatnonzero(column != column[0])
            if len(other):
                got = f"another one on process {self.indices[int(other[0])]}"
                checks.fail(owner, name, "be the same on every process", got)

    @contextlib.contextmanager
    def report_lost_process(self, advice: str = "") -> Iterator[None]:
        """Where another process is gone, that is what is said."""
        try:
            yield
        except (ValueError, RuntimeError) as error:
            if self.is_single or not any(word in str(error) for word in LOST):
                raise
            self._lost(error, advice)

    def _lost(self, error: Exception, advice: str) -> NoReturn:
        cause = str(error).partition("\n")[0]
        raise LostProcessError(
            "Another process has ended, or cannot be reached, and what it had a part in cannot go "
            f"on: so this process ends, too.{advice} ({cause})"
        ) from error


@functools.cache
def _programs(
    devices: tuple[jax.Device, ...],
) -> tuple[Any, Callable[..., Any], Callable[..., Any]]:
    """A row on each of the devices; and all rows, or their sum, on every one."""
    mesh = Mesh(np.array(devices), ("processes",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    one = NamedSharding(mesh, PartitionSpec("processes"))
    all_rows = jax.jit(lambda rows: rows, out_shardings=everywhere)
    added = jax.jit(lambda rows: jnp.sum(rows, 0, dtype=rows.dtype), out_shardings=everywhere)
    return one, all_rows, added


def _bytes(value: Any) -> bytes:
    """By which values are compared: arrays by their numbers, all else by what it looks like."""
    leaves, treedef = jax.tree.flatten(value)
    words = [str(treedef), *(repr(leaf) for leaf in leaves if not is_array(leaf))]
    parts = [np.ascontiguousarray(leaf).tobytes() for leaf in leaves if is_array(leaf)]
    return b"|".join([ADDRESS.sub("", " ".join(words)).encode(), *parts])
