"""Checkpoints: a run that was stopped in any way resumes as if it had not been stopped.

A file holds the snapshot of the loop and the history. It is compared with the run that is about to
start: its start, value and gradient there, method and options.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.box import Box
from cfgd._core.files import NotWrittenError, printable
from cfgd._core.process_group import ProcessGroup
from cfgd._core.sharding import to_host
from cfgd._core.version import __version__
from cfgd.solve import clock
from cfgd.solve.checkpoint_content import Saved, check_content
from cfgd.solve.checkpoint_file import (
    DamagedError,
    classes_of,
    pack,
    previous_path,
    put,
    read,
    unpack,
    write,
)
from cfgd.solve.history import History
from cfgd.solve.loop import Loop
from cfgd.solve.options import Options
from cfgd.solve.problem import Problem

T = TypeVar("T")
FORMAT = "cfgd checkpoint 2"
# The previous format, whose files are refused: they hold states of solvers that no longer exist.
OLD_FORMAT = "cfgd checkpoint 1"
# A checkpoint is written at most every 100 times as long as writing takes: under one percent.
SHARE = 100
MAX_SHOWN = 200  # characters of a foreign text in a message


class Checkpoint:
    """A file, and when to write it."""

    def __init__(
        self,
        options: Options,
        problem: Problem,
        loop: Loop,
        group: ProcessGroup,
    ) -> None:
        assert options.checkpoint is not None
        self.group = group
        self.path, self.every = options.checkpoint, options.checkpoint_every
        self.owner, self.written = options.owner, clock.now()
        self.cost = 0.0  # seconds that the last one took
        self.identity = _identity(options, problem, loop)

    def read(self, loop: Loop, history: History) -> Saved | None:
        """Return the saved state of this run, or None; refuse the file of another run.

        `loop` and `history` are those at the start. With several processes, the first one reads
        the file and broadcasts it.
        """
        start = Saved(loop.snapshot(), *history.concatenated())
        classes = classes_of(start)  # those of a user's own rules among them
        meta: dict[str, Any] = {}
        arrays: list[np.ndarray] = []
        saved = None
        with self.group.propagate_errors():
            if self.group.is_main:
                saved, meta, arrays = self._read(start, classes)
        if self.group.is_single:
            return saved
        file = io.BytesIO()
        put(file, meta, arrays)
        meta, arrays = read(io.BytesIO(self.group.broadcast_bytes(file.getvalue())))
        return unpack(meta["tree"], arrays, classes) if meta else None

    def _read(
        self, start: Saved, classes: dict[str, type]
    ) -> tuple[Saved | None, dict[str, Any], list[np.ndarray]]:
        def load(path: Path) -> tuple[Saved, dict[str, Any], list[np.ndarray]]:
            meta, arrays = read(path)
            if meta.get("format") == OLD_FORMAT:
                old = "an older version, whose solvers no longer exist: start a new run"
                wanted = "be a file of this version, or a new file"
                checks.fail(self.owner, "checkpoint", wanted, f"{path} of {old}")
            check_identity(self.owner, path, meta, FORMAT, self.identity)
            saved = unpack(meta.get("tree"), arrays, classes)
            check_content(saved, start)
            return saved, meta, arrays

        return load_newest(self.owner, self.path, load) or (None, {}, [])

    def is_due(self) -> bool:
        """Return whether it is time to write; the longer a write takes, the rarer it is."""
        return clock.now() - self.written >= max(self.every, SHARE * self.cost)

    def write(self, loop: Loop, history: History) -> None:
        """Write the file. With several processes the first one writes, and all must call this."""
        began = clock.now()
        arrays: list[np.ndarray] = []
        snapshot = loop.snapshot()
        if not self.group.is_main:
            return
        tree = pack(Saved(snapshot, *history.concatenated()), arrays)
        try:
            write(self.path, {"format": FORMAT, "of": self.identity, "tree": tree}, arrays)
        except NotWrittenError as error:  # the run is worth more than its checkpoint
            checks.warn(f"The checkpoint {error}")
        self.written = clock.now()
        self.cost = self.written - began


def load_newest(owner: str, file: Path, load: Callable[[Path], T]) -> T | None:
    """Load a checkpoint, or the one before if it is damaged; return None if there is none.

    `load` raises a DamagedError for a damaged file.
    """
    damages = []
    for path in [path for path in (file, previous_path(file)) if path.exists()]:
        try:
            loaded = load(path)
        except DamagedError as damage:
            damages.append(f"The checkpoint {path} is damaged: {printable(str(damage))}.")
            continue
        if damages:
            checks.warn(f"{damages[0]} The run resumes from the previous one, {path}.")
        return loaded
    if damages:
        wanted = "be a file that this run wrote, or a new file"
        checks.fail(owner, "checkpoint", wanted, " ".join(damages).rstrip("."))
    return None


def check_identity(
    owner: str, path: Path, meta: dict[str, Any], file_format: str, mine: dict[str, str]
) -> None:
    """Refuse a file of another format, or of a run that differs in one of these entries."""
    if meta.get("format") != file_format:
        raise DamagedError(f"its format is {meta.get('format')!r} and not {file_format!r}")
    identity = meta.get("of")
    if not isinstance(identity, dict):
        raise DamagedError("it does not say of which run it is")
    for name, own in mine.items():
        theirs = identity.get(name)
        if theirs != own:
            got = f"{path} of another one: its {name} is {_short(theirs)}, here {_short(own)}"
            checks.fail(owner, "checkpoint", "be a file of the same run, or a new file", got)


def _point_of_comparison(x0: Any, box: Box | None) -> np.ndarray:
    """Return a point near x0 at which objectives are compared: at 0 penalties would not show."""
    x = to_host(x0)
    near = x + (0.1 + 0.1 * abs(x)) * np.sin(np.arange(1.0, 1 + x.shape[-1])).astype(x.dtype)
    return near if box is None else box.project(near)


def _identity(options: Options, problem: Problem, loop: Loop) -> dict[str, str]:
    """Return what must be the same for a run to resume; a function is identified by its values."""
    values = loop.fingerprint(_point_of_comparison(problem.start, problem.box))
    addresses = re.compile(r" at 0x[0-9a-f]+")
    leaves, structure = jax.tree.flatten(to_host(problem.method))
    words = type(problem.method).__qualname__, addresses.sub("", str(structure))
    goals: list[Any] = [options.tolerance, options.gradient_tolerance, options.every]
    goals.append(sorted(options.record))
    if options.resample is not None:
        goals.append(f"new samples every {options.resample.every}")
    return {
        "version": __version__,
        "call": f"{options.owner} in {problem.how}",
        "precision": problem.dtype.name,
        "shape": str(np.shape(problem.start)),
        "start": digest(to_host(problem.start)),
        "objective": digest(loop.value0, loop.gradient0, *values),
        "bounds": "none" if problem.box is None else digest(*problem.box),
        "method": digest(*leaves, words=str(words)),
        "tolerances and records": str(tuple(goals)),
    }


def digest(*leaves: Any, words: str = "") -> str:
    found = hashlib.sha256(words.encode())
    for leaf in leaves:
        array = np.ascontiguousarray(leaf) if hasattr(leaf, "dtype") else None
        found.update(repr(leaf).encode() if array is None else array.tobytes())
    return found.hexdigest()


def _short(said: Any) -> str:
    text = printable(str(said))
    if re.fullmatch("[0-9a-f]{64}", text):
        return text[:12]
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
