"""A table with skewed columns, targets for every loss, and writers for every format."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv, feather


def skewed_columns(rows=240, seed=0):
    """Return a generator, skewed columns of very different scales, and the linear predictor."""
    random = np.random.default_rng(seed)
    small, large = random.exponential(1e-3, rows), random.normal(500, 80, rows)
    # the most frequent text is neither the first by alphabet nor the first in the file
    kind = random.choice(["b", "a", "c & d"], rows, p=[0.6, 0.25, 0.15])
    eta = -2.2 + 300 * small + 4e-3 * large + 0.9 * (kind == "a") - 0.5 * (kind == "c & d")
    return random, {"small": small, "kind": kind, "large": large}, eta


def design(columns):
    """Return the design matrix of the table above: texts relative to b, the most frequent."""
    kind = columns["kind"]
    parts = [columns["small"], kind == "a", kind == "c & d", columns["large"]]
    return np.column_stack([*parts, np.ones(len(kind))]).astype(float)


def targets(loss, random, eta):
    """Return random targets for a loss and a linear predictor."""
    n = len(eta)
    if loss == "squared":
        return 40 + 7 * (eta + random.gumbel(size=n))
    if loss == "huber":
        return 40 + 7 * (eta + random.standard_t(1.5, size=n))
    if loss == "poisson":
        return random.poisson(np.exp(eta)).astype(float)
    if loss == "gamma":
        return random.gamma(1.5, np.exp(eta) / 1.5)
    probability = 1 / (1 + np.exp(-2 * eta))
    if loss == "logistic":
        return np.where(random.random(n) < probability, "yes", "no")
    third = np.where(random.random(n) < 0.3, "red", "green")
    return np.where(random.random(n) < probability, "blue", third)


def write(path, columns):
    """Write the columns in the format that the ending of the name says."""
    if path.name.endswith(".npz"):
        np.savez_compressed(path, **columns)
        return path
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if path.name.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=100)
    elif path.name.endswith(".feather"):
        feather.write_feather(table, path, chunksize=70)
    elif path.name.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            csv.write_csv(table, file)
    else:
        csv.write_csv(table, path)
    return path


def split_numbers(seed, rows):
    """Return the numbers that a split with this seed draws for the rows."""
    return np.random.default_rng([int.from_bytes(b"split"), seed]).random(rows)
