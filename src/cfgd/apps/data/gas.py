"""The gas sensor data of section 4.2: from a file, a cached copy, OpenML, or synthetic.

UCI "Gas Sensor Array Drift at Different Concentrations" (data set 270), the rows of Ethanol. Errors
in the data are reported as a `ValueError` of one sentence.
"""

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
# of the real data: the largest eigenvalue of the correlation matrix, and the condition number of
# the standardised features
LARGEST_EIGENVALUE, CONDITION = 73.0, 70_980.0
SURROGATE_SEED = 0


@dataclasses.dataclass(frozen=True)
class Gas:
    """128 features and the concentration of Ethanol, with a description of their source."""

    table: np.ndarray  # (rows, 129), the target last
    source: str
    surrogate: bool = False  # whether the data are synthetic

    @property
    def digest(self) -> str:
        """A hash that identifies the table."""
        return hashlib.sha256(np.ascontiguousarray(self.table).tobytes()).hexdigest()[:16]


def read(path: Path) -> Gas:
    """Read a CSV file, plain or gzipped, or UCI's batch*.dat files in a folder or zip."""
    table = gas_files.read(path)
    check(table, str(path))
    return Gas(table, f"the file {path.name}, {len(table)} rows")


def check(table: np.ndarray, name: str) -> None:
    """Raise a `ValueError` if the table is not fit for a regression; `name` is its source."""
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = np.argwhere(bad)[0] + 1
        value = table[row - 1, column - 1]
        raise ValueError(f"{name}: row {row}, column {column} is {value}, not a finite number.")
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


def standardised(gas: Gas) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y with mean zero and (population) standard deviation one.

    Columns are scaled by powers of two first, without rounding errors, so that the squares of very
    small or large values do not underflow or overflow.
    """
    table = np.ldexp(gas.table, -np.frexp(np.abs(gas.table).max(0))[1])
    table = (table - table.mean(0)) / table.std(0)
    return table[:, :-1], table[:, -1]


def cache() -> Path:
    """Return the path of the cached copy."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cfgd" / "gas.csv.gz"


def cached() -> Gas | None:
    """Return the data from the cached copy of an earlier download, or None if there is none."""
    if not cache().exists():
        return None
    try:
        gas = read(cache())
    except ValueError as error:
        cause = str(error).removesuffix(".")
        raise ValueError(f"{cause}; delete this cached copy to download it again.") from None
    return dataclasses.replace(gas, source=f"the cached copy {cache()}")


class NotDownloadedError(Exception):
    """The data could not be downloaded; the message is the cause in a few words."""


def download(console: Any) -> Gas:
    """Download the data from OpenML and cache it, with progress on a rich console."""
    from cfgd.apps.data import gas_download

    try:
        table = gas_download.download(console)
        check(table, "The download")
    except (OSError, HTTPException, ImportError, ValueError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise NotDownloadedError(lines[0]) from error
    save_to_cache(table)
    return Gas(table, "OpenML 1477, gas-drift-different-concentrations")


def save_to_cache(table: np.ndarray) -> None:
    """Write the cached copy atomically; a failure to write is ignored."""
    buffer = io.StringIO()
    np.savetxt(buffer, table, delimiter=",", fmt="%.17g")
    with contextlib.suppress(NotWrittenError):
        write(cache(), gzip.compress(buffer.getvalue().encode()))


def surrogate(reason: str) -> Gas:
    """Return synthetic data; their source mentions why the real data are not used."""
    source = f"a synthetic stand-in of the same size and conditioning, because {reason}"
    return Gas(_synthetic_table(), source, surrogate=True)


@functools.cache
def _synthetic_table() -> np.ndarray:
    """Return features and a linear target with the size and conditioning of the real data.

    The largest eigenvalue of the correlation matrix and the ratio to the smallest are those of the
    real data. The decay between them is chosen so that the eigenvalues sum to 128, the trace of any
    correlation matrix of 128 features.
    """
    from scipy.optimize import brentq
    from scipy.stats import random_correlation

    positions = np.linspace(0, 1, FEATURES)

    def spectrum(exponent: float) -> np.ndarray:
        return LARGEST_EIGENVALUE * CONDITION ** (-2 * positions**exponent)

    exponent = brentq(lambda exponent: spectrum(exponent).sum() - FEATURES, 0.05, 5.0)
    eigenvalues = spectrum(exponent)
    eigenvalues *= FEATURES / eigenvalues.sum()
    random = np.random.default_rng(SURROGATE_SEED)
    correlation = random_correlation.rvs(eigenvalues, random_state=random, tol=1e-8)
    values, vectors = np.linalg.eigh(correlation)
    noise = random.normal(size=(ROWS, FEATURES))
    Q = np.linalg.qr(noise - noise.mean(0))[0]
    X = np.sqrt(ROWS) * (Q * np.sqrt(np.maximum(values, values[-1] / CONDITION**2))) @ vectors.T
    y = X @ random.normal(size=FEATURES) + random.normal(size=ROWS)
    return np.column_stack([X, y])
