"""Checkpoints: a run that was stopped, however it was, goes on as if it had not been.

What is kept is the whole carry of the loop, the history and who walks; what it is checked against
is the run that is about to start: its start, the value and gradient there, method and options.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.files import NotWrittenError
from cfgd._core.process_group import ProcessGroup
from cfgd._core.sharding import to_host
from cfgd._core.version import __version__
from cfgd.solve.checkpoint_file import (
    DamagedError,
    before,
    classes_of,
    pack,
    put,
    read,
    unpack,
    write,
)
from cfgd.solve.compiled_loop import Carry, look
from cfgd.solve.history import History
from cfgd.solve.host_loop import Outside
from cfgd.solve.inside import Inside
from cfgd.solve.options import Options
from cfgd.solve.problem import Problem
from cfgd.solve.program import bind

FORMAT = "cfgd checkpoint 1"
# times that a checkpoint takes, for each of which the run goes on for as long: under one percent
SHARE = 100


class Kept(NamedTuple):
    """All that a run needs to go on."""

    carry: Carry | None  # of a compiled loop
    walk: dict[str, Any] | None  # of a run from outside
    labels: np.ndarray
    rows: dict[str, Any]


class Checkpoint:
    """A file, and when to write it."""

    def __init__(
        self,
        options: Options,
        problem: Problem,
        carry: Carry,
        walk: Inside | Outside,
        group: ProcessGroup,
    ) -> None:
        assert options.checkpoint is not None
        self.group = group
        self.path, self.every = options.checkpoint, options.checkpoint_every
        self.owner, self.written = options.owner, time.perf_counter()
        self.cost = 0.0  # seconds that the last one took
        self.of = _identity(options, problem, carry, _seen(walk, problem, _beside(problem.start)))
        self.classes = classes_of(carry)  # those of a user's own rules among them

    def found(self) -> Kept | None:
        """What was kept of this run, if anything was; a clear error of another run's file.

        Of several processes the first one reads, and tells the others.
        """
        meta: dict[str, Any] = {}
        arrays: list[np.ndarray] = []
        kept = None
        with self.group.propagate_errors():
            if self.group.is_main:
                kept, meta, arrays = self._read()
        if self.group.is_single:
            return kept
        file = io.BytesIO()
        put(file, meta, arrays)
        meta, arrays = read(io.BytesIO(self.group.broadcast_bytes(file.getvalue())))
        return unpack(meta["tree"], arrays, self.classes) if meta else None

    def _read(self) -> tuple[Kept | None, dict[str, Any], list[np.ndarray]]:
        there = [path for path in (self.path, before(self.path)) if path.exists()]
        damages = []
        for path in there:
            try:
                meta, arrays = read(path)
                self._check(path, meta)
                kept: Kept = unpack(meta["tree"], arrays, self.classes)
            except (DamagedError, KeyError, TypeError, IndexError) as damage:
                damages.append(f"The checkpoint {path} is damaged: {damage}.")
                continue
            if damages:
                checks.warn(f"{damages[0]} The run goes on from the one before, {path}.")
            return kept, meta, arrays
        if damages:
            wanted = "be a file that this run wrote, or a new one"
            checks.fail(self.owner, "checkpoint", wanted, " ".join(damages).rstrip("."))
        return None, {}, []

    def is_due(self) -> bool:
        """Whether it is time; a file that takes long is written less often."""
        return time.perf_counter() - self.written >= max(self.every, SHARE * self.cost)

    def keep(self, walk: Inside | Outside, carry: Carry, history: History) -> None:
        """Of several processes the first one writes; all of them are called."""
        began = time.perf_counter()
        arrays: list[np.ndarray] = []
        # what a point carries of rows that are spread comes along: a number or a few for each row
        if not self.group.is_single:
            carry = to_host(carry)
        if not self.group.is_main:
            return
        if isinstance(walk, Outside):
            tree = pack(Kept(None, walk.kept(carry), *history.kept()), arrays)
        else:
            tree = pack(Kept(carry, None, *history.kept()), arrays)
        try:
            write(self.path, {"format": FORMAT, "of": self.of, "tree": tree}, arrays)
        except NotWrittenError as error:  # the run is worth more than its checkpoint
            checks.warn(f"The checkpoint {error}")
        self.written = time.perf_counter()
        self.cost = self.written - began

    def _check(self, path: Path, meta: dict[str, Any]) -> None:
        if meta.get("format") != FORMAT:
            raise DamagedError(f"its format is {meta.get('format')!r} and not {FORMAT!r}")
        for name, mine in self.of.items():
            if meta["of"].get(name) != mine:
                theirs = meta["of"].get(name)
                got = f"{path} of another one: its {name} is {_short(theirs)}, here {_short(mine)}"
                checks.fail(
                    self.owner, "checkpoint", "be a file of this very run, or a new one", got
                )


def _seen(walk: Inside | Outside, problem: Problem, x: np.ndarray) -> tuple[Any, ...]:
    """Value and gradient of what is walked on; nothing where they cannot be had."""
    if isinstance(walk, Inside):
        point = bind(look, problem.loop, walk.objective)(x)
        return point.value, point.gradient
    with np.errstate(all="ignore"):
        seen = walk.see(x)
    walk.whole.error()  # no business of the run
    if seen is None:
        return ()
    return seen[0], seen[1]() if callable(seen[1]) else seen[1]


def _beside(x0: Any) -> np.ndarray:
    """A point that is none of the user's: at 0, say, no penalty shows."""
    x = to_host(x0)
    return x + (0.1 + 0.1 * abs(x)) * np.sin(np.arange(1.0, 1 + x.shape[-1])).astype(x.dtype)


def _identity(
    options: Options, problem: Problem, carry: Carry, seen: tuple[Any, ...]
) -> dict[str, str]:
    """What must be the same for a run to go on; a function is known by what it gives."""
    point = to_host((carry.state.point.value, carry.state.point.gradient))
    addresses = re.compile(r" at 0x[0-9a-f]+")
    leaves, structure = jax.tree.flatten(to_host(problem.method))
    words = type(problem.method).__qualname__, addresses.sub("", str(structure))
    goals = options.tolerance, options.gradient_tolerance, options.every, sorted(options.record)
    return {
        "version": __version__,
        "call": f"{options.owner} in {problem.how}",
        "precision": problem.dtype.name,
        "shape": str(np.shape(problem.start)),
        "start": _digest(to_host(problem.start)),
        "objective": _digest(*point, *to_host(seen)),
        "method": _digest(*leaves, words=str(words)),
        "tolerances and records": str(goals),
    }


def _digest(*leaves: Any, words: str = "") -> str:
    found = hashlib.sha256(words.encode())
    for leaf in leaves:
        array = np.ascontiguousarray(leaf) if hasattr(leaf, "dtype") else None
        found.update(repr(leaf).encode() if array is None else array.tobytes())
    return found.hexdigest()


def _short(said: Any) -> str:
    text = str(said)
    return text[:12] if re.fullmatch("[0-9a-f]{64}", text) else text
