"""A cache for the finished runs of a long experiment, deleted when the experiment is finished.

With --resume, an interrupted experiment reads them instead of running again. A run is a file of
arrays in the folder of the report, where other programs may have changed it: only arrays are read,
and a file that is not as expected counts as missing.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cfgd._core.files import write
from cfgd._core.npy import UnreadableError, load_stored
from cfgd.apps.json_schema import PARTS

MAX_BYTES = 20_000_000  # a run has less than one million
Arrays: TypeAlias = dict[str, np.ndarray]


class RunCache:
    """The finished runs of an experiment with the settings `key`."""

    def __init__(self, folder: Path, experiment: str, key: Mapping[str, Any]) -> None:
        self.folder, self.key = folder / PARTS / f"{experiment}.runs", dict(key)
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            raise ValueError(f"{self.folder} is a file where a folder is needed: move it away.")

    def get_or_run(
        self,
        name: Any,
        run: Callable[[], Arrays],
        fits: Callable[[Arrays], bool] = lambda arrays: True,
    ) -> tuple[Arrays, bool]:
        """Return the arrays of the run `name` and whether they were cached; run it if not.

        Cached arrays for which `fits` is false, by their names or shapes, count as missing.
        """
        path = self._path(name)
        cached = read_arrays(path)
        if cached is not None and fits(cached):
            return cached, True
        arrays = run()
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        write(path, buffer.getvalue())
        return arrays, False

    def clear(self) -> None:
        """Delete the cached runs."""
        for path in self.folder.glob("*.npz"):
            path.unlink()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _path(self, name: Any) -> Path:
        identity = json.dumps([self.key, name], sort_keys=True)
        return self.folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.npz"


def read_arrays(path: Path) -> Arrays | None:
    """Return the float64 arrays in a file, or None if it is missing or holds anything else."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return None
    try:
        with path.open("rb") as file:
            arrays = {name: array.copy() for name, array in load_stored(file).items()}
    except (OSError, UnreadableError):
        return None
    all_float = all(array.dtype == np.float64 for array in arrays.values())
    return arrays if arrays and all_float else None
