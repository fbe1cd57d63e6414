"""`cfgd fit` on long and wide tables beside pandas with scikit-learn and with statsmodels.

All of them read the file and fit the same model to the same rows; `cfgd fit` also holds rows out,
measures them, and computes standard errors, which statsmodels does and scikit-learn does not. The
imports are not part of the time.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cfgd.apps.bench.speed.measure import ReportRow, at_most, time_in_turns

# rows and columns; the wide table has as many columns as the command computes errors for
SIZES = {"long": (5_000_000, 8), "wide": (20_000, 1_999)}
REPEATS = 1  # a run takes up to a minute


def rows() -> Iterator[ReportRow]:
    """Yield the time of `cfgd fit` over that of the fastest of the others."""
    if importlib.util.find_spec("pandas") is None:
        yield ReportRow("tables", "pandas is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, (m, d) in SIZES.items():
            path = Path(folder) / f"{name}.parquet"
            _write(path, m, d)
            for target in ("y", "label"):
                yield from _compared(name, path, target)
            path.unlink()


def _write(path: Path, m: int, d: int) -> None:
    """Write normal columns with a linear target and one of two labels; the seed is 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    w = random.normal(size=d) / np.sqrt(d)
    columns = {f"x{j}": random.normal(size=m) for j in range(d)}
    eta = sum(weight * column for weight, column in zip(w, columns.values(), strict=True))
    y = eta + random.normal(size=m)
    label = (random.random(m) < 1 / (1 + np.exp(-eta))).astype(float)
    pq.write_table(pa.table({**columns, "y": y, "label": label}), path)


def _compared(name: str, path: Path, target: str) -> Iterator[ReportRow]:
    jobs = {"cfgd fit": lambda: _cfgd(path, target)}
    jobs |= {rival: lambda fit=fit: fit(path, target) for rival, fit in _rivals().items()}  # type: ignore[misc]
    seconds = time_in_turns(jobs, REPEATS)
    for job, taken in seconds.items():
        yield ReportRow(f"{name} table, {target}: {job}", f"{taken:.2f} s")
    fastest = min(taken for job, taken in seconds.items() if job != "cfgd fit")
    what = f"{name} table, {target}: cfgd fit over the fastest, reading included"
    yield at_most(what, seconds["cfgd fit"] / fastest, 1.0)


def _cfgd(path: Path, target: str) -> Any:
    from cfgd.apps.fit.options import FitOptions
    from cfgd.apps.fit.progress import ProgressReporter
    from cfgd.apps.fit.run import fit

    other = "label" if target == "y" else "y"
    return fit(FitOptions(path, target, drop=(other,)), ProgressReporter())


def _rivals() -> dict[str, Callable[[Path, str], Any]]:
    known: dict[str, Callable[[Path, str], Any]] = {
        "pandas and scikit-learn": _sklearn,
        "pandas and statsmodels": _statsmodels,
    }
    if importlib.util.find_spec("statsmodels") is None:
        del known["pandas and statsmodels"]
    return known


def _read(path: Path, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Return four fifths of the rows, as many as `cfgd fit` fits to."""
    import pandas as pd

    table = pd.read_parquet(path)
    m = len(table) * 4 // 5
    X = table.drop(columns=["y", "label"]).to_numpy()
    return X[:m], table[target].to_numpy()[:m]


def _sklearn(path: Path, target: str) -> Any:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    X, y = _read(path, target)
    if target == "y":
        return LinearRegression().fit(X, y)
    # its fastest solver for few columns; no penalty
    return LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-6).fit(X, y)


def _statsmodels(path: Path, target: str) -> Any:
    import statsmodels.api as sm

    X, y = _read(path, target)
    X = sm.add_constant(X)
    return sm.OLS(y, X).fit() if target == "y" else sm.Logit(y, X).fit(disp=0)
