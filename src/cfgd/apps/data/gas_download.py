"""Download the gas data from OpenML with scikit-learn, an optional dependency."""

from __future__ import annotations

import socket
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

OPENML_ID = 1477  # gas-drift-different-concentrations
ROWS, COLUMNS = 2565, 129
TIMEOUT = 20.0  # seconds without an answer


def download(console: Any) -> np.ndarray:
    """Return the rows of Ethanol, 128 features and then the concentration.

    `console` is the rich console that shows the progress.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(1) as pool,
        Progress(
            TextColumn("downloading the gas data from OpenML"),
            BarColumn(),
            TextColumn("{task.fields[size]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        ) as progress,
    ):
        # OpenML does not tell the size of the file: the bar pulses next to the size so far
        task = progress.add_task("", total=None, size="")
        future = pool.submit(fetch, folder)
        while not future.done():
            size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
            progress.update(task, size=f"{size / 1e6:.1f} MB")
            try:
                future.result(timeout=0.2)
            except TimeoutError:
                if future.done():  # the download itself timed out, not this wait for it
                    break
        return ethanol(*future.result())


def fetch(folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Download all rows; return their features and the codes of their gases."""
    from sklearn.datasets import fetch_openml

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        # scikit-learn warns of a retry, which would disturb the progress display
        with warnings.catch_warnings(action="ignore"):
            dataset = fetch_openml(
                data_id=OPENML_ID,
                as_frame=False,
                data_home=folder,
                n_retries=1,
                parser="liac-arff",  # does not need pandas
            )
    finally:
        socket.setdefaulttimeout(before)
    return np.asarray(dataset.data, dtype=np.float64), np.asarray(dataset.target, dtype=str)


def ethanol(features: np.ndarray, gases: np.ndarray) -> np.ndarray:
    """Return the rows of gas 1, with the concentration moved to the last column.

    The concentration is the first or the last column: the one with fewer different values.
    """
    rows = features[gases == "1"]
    if rows.shape[1] != COLUMNS:
        raise ValueError(f"the data set has {rows.shape[1]} columns instead of {COLUMNS}")
    if len(rows) != ROWS:
        raise ValueError(f"the data set has {len(rows)} rows of Ethanol instead of {ROWS}")
    target = min((0, COLUMNS - 1), key=lambda column: len(np.unique(rows[:, column])))
    return np.column_stack([np.delete(rows, target, axis=1), rows[:, target]])
