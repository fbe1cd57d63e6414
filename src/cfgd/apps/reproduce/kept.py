"""What a long experiment has finished, kept until the whole of it is: for --resume.

A run is kept as one file of arrays. The files stand in the folder of the report, where somebody
may have changed them: only arrays are read, and what does not look as it should counts as missing.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core.files import write
from cfgd.apps.json_schema import PARTS

MOST_BYTES = 20_000_000  # a run has less than one million


class Kept:
    """The finished runs of an experiment in one setting, `key`."""

    def __init__(self, folder: Path, experiment: str, key: Mapping[str, Any]) -> None:
        self.folder, self.key = folder / PARTS / f"{experiment}.runs", dict(key)
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            raise ValueError(f"{self.folder} is in the way of a folder: move it away.")

    def or_run(
        self, name: Any, run: Callable[[], dict[str, np.ndarray]]
    ) -> tuple[dict[str, np.ndarray], bool]:
        """The arrays of the run `name`, and whether they were there already."""
        path = self._path(name)
        found = read(path)
        if found is not None:
            return found, True
        arrays = run()
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        write(path, buffer.getvalue())
        return arrays, False

    def clear(self) -> None:
        """Remove what is kept."""
        for path in self.folder.glob("*.npz"):
            path.unlink()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _path(self, name: Any) -> Path:
        said = json.dumps([self.key, name], sort_keys=True)
        return self.folder / f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.npz"


def read(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays in a file; None where there are none, or something else."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
    plain = all(array.dtype == np.float64 for array in arrays.values())
    return arrays if arrays and plain else None
