"""The gas data from OpenML by scikit-learn, which is an extra, with a display of its progress."""

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
SECONDS = 20.0  # without an answer


def download(console: Any) -> Any:
    """The Ethanol rows, 128 features and then the concentration."""
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
        # OpenML does not say how long the file is: the bar pulses beside what has come
        task = progress.add_task("", total=None, size="")
        future = pool.submit(fetch, folder)
        while not future.done():
            size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
            progress.update(task, size=f"{size / 1e6:.1f} MB")
            try:
                future.result(timeout=0.2)
            except TimeoutError:
                if future.done():  # a timeout of the network, not of this look
                    break
        return ethanol(*future.result())


def fetch(folder: str) -> tuple[Any, Any]:
    from sklearn.datasets import fetch_openml

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS)
    try:
        # a retry is announced by a warning, which would land in the middle of the display
        with warnings.catch_warnings(action="ignore"):
            got = fetch_openml(
                data_id=OPENML_ID,
                as_frame=False,
                data_home=folder,
                n_retries=1,
                parser="liac-arff",  # the one that needs no pandas
            )
    finally:
        socket.setdefaulttimeout(before)
    return np.asarray(got.data, dtype=np.float64), np.asarray(got.target, dtype=str)


def ethanol(features: Any, gases: Any) -> Any:
    """The rows of gas 1 with the concentration, which takes few values, moved to the end."""
    rows = features[gases == "1"]
    if rows.shape[1] != COLUMNS:
        raise ValueError(f"it has {rows.shape[1]} columns instead of {COLUMNS}")
    if len(rows) != ROWS:
        raise ValueError(f"it has {len(rows)} rows of Ethanol instead of {ROWS}")
    target = min((0, COLUMNS - 1), key=lambda column: len(np.unique(rows[:, column])))
    return np.column_stack([np.delete(rows, target, axis=1), rows[:, target]])
