"""The gas data: where it comes from, and one sentence for each thing that may be wrong with it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gzip
import hashlib
import io
import os
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core.files import NotWrittenError, write
from cfgd.apps.data import gas_files

ROWS, FEATURES = 2565, 128
LARGEST, CONDITION = 73.0, 70_980.0  # of the correlation matrix, and of the data
SURROGATE_SEED = 0


@dataclasses.dataclass(frozen=True)
class Gas:
    """128 features and the concentration of Ethanol; `source` says in words where from."""

    table: Any  # (rows, 129), the target last
    source: str
    surrogate: bool = False

    @property
    def digest(self) -> str:
        """What tells one table from another."""
        return hashlib.sha256(np.ascontiguousarray(self.table).tobytes()).hexdigest()[:16]


def read(path: Path) -> Gas:
    """The data in a CSV file, plain or gzipped, or in UCI's batch*.dat files, folder or zip."""
    table = gas_files.read(path)
    check(table, str(path))
    return Gas(table, f"the file {path.name}, {len(table)} rows")


def check(table: Any, name: str) -> None:
    """Say in one sentence what would make a run meaningless."""
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = np.argwhere(bad)[0] + 1
        what = table[row - 1, column - 1]
        raise ValueError(f"{name}: row {row}, column {column} is {what}, not a finite number.")
    if len(table) <= FEATURES:
        raise ValueError(
            f"{name}: {len(table)} rows are too few; {FEATURES} features need at least "
            f"{FEATURES + 1}."
        )
    constant = np.flatnonzero((table == table[0]).all(0))
    if constant.size:
        raise ValueError(
            f"{name}: column {constant[0] + 1} has the same value in every row and cannot be "
            "standardised."
        )


def standardised(gas: Gas) -> tuple[Any, Any]:
    """X and y of mean zero and (population) deviation one.

    Scaled to one first, by powers of two and so without rounding: the squares of 1e-200 are zero.
    """
    table = np.ldexp(gas.table, -np.frexp(np.abs(gas.table).max(0))[1])
    table = (table - table.mean(0)) / table.std(0)
    return table[:, :-1], table[:, -1]


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cfgd" / "gas.csv.gz"


def cached() -> Gas | None:
    """The copy that an earlier download left, if there is one."""
    if not cache().exists():
        return None
    try:
        found = read(cache())
    except ValueError as error:
        said = str(error).removesuffix(".")
        raise ValueError(f"{said}; delete this cached copy and it is downloaded anew.") from None
    return dataclasses.replace(found, source=f"the cached copy {cache()}")


class NotDownloadedError(Exception):
    """Says in a few words why the data could not be downloaded."""


def download(console: Any) -> Gas:
    """The data from OpenML, cached for the next time; `console` shows how far it is."""
    from cfgd.apps.data import gas_download

    try:
        table = gas_download.download(console)
        check(table, "The download")
    except (OSError, HTTPException, ImportError, ValueError) as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise NotDownloadedError(words[0]) from error
    keep(table)
    return Gas(table, "OpenML 1477, gas-drift-different-concentrations")


def keep(table: Any) -> None:
    """Cache a download, whole or not at all; a cache that cannot be written stops nothing."""
    buffer = io.StringIO()
    np.savetxt(buffer, table, delimiter=",", fmt="%.17g")
    with contextlib.suppress(NotWrittenError):
        write(cache(), gzip.compress(buffer.getvalue().encode()))


def surrogate(reason: str) -> Gas:
    """The stand-in, labelled as such."""
    said = f"a synthetic stand-in of the same size and conditioning, because {reason}"
    return Gas(synthetic(), said, surrogate=True)


@functools.cache
def synthetic() -> Any:
    """Correlated features and a linear target, of the size and conditioning of the gas data.

    The correlation matrix has eigenvalues that fall from that of the gas data by the square of
    its condition number and sum to 128, as those of any 128 standardised features do.
    """
    from scipy.optimize import brentq
    from scipy.stats import random_correlation

    places = np.linspace(0, 1, FEATURES)

    def spectrum(bend: float) -> Any:
        return LARGEST * CONDITION ** (-2 * places**bend)

    bend = brentq(lambda bend: spectrum(bend).sum() - FEATURES, 0.05, 5.0)
    eigenvalues = spectrum(bend)
    eigenvalues *= FEATURES / eigenvalues.sum()
    random = np.random.default_rng(SURROGATE_SEED)
    correlation = random_correlation.rvs(eigenvalues, random_state=random, tol=1e-8)
    values, vectors = np.linalg.eigh(correlation)
    noise = random.normal(size=(ROWS, FEATURES))
    Q = np.linalg.qr(noise - noise.mean(0))[0]
    X = np.sqrt(ROWS) * (Q * np.sqrt(np.maximum(values, values[-1] / CONDITION**2))) @ vectors.T
    y = X @ random.normal(size=FEATURES) + random.normal(size=ROWS)
    return np.column_stack([X, y])
