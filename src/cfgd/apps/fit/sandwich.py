"""Robust and clustered standard errors: the sandwich A^-1 B A^-1, from sums over the rows.

A is the Hessian of the loss (with the penalty, if there is one), of a gamma model the observed and
not the expected one, and B the sum of the squared scores g_i = s_i l'(p_i, y_i) x_i, where s_i is
the weight of a row:

- hc3, squared loss: B = sum g_i g_i' / (1 - h_i)^2, where h_i = s_i x_i' A^-1 x_i is the leverage
  of the row (MacKinnon and White, 1985);
- hc3, other losses: B = sum g_i g_i' (Huber and White, HC0). The leverages belong to the linear
  model; statsmodels does the same for `cov_type="HC3"` of its logistic and Poisson models;
- cluster: the scores of a cluster are added before they are squared, and B is multiplied by
  G / (G - 1) (n - 1) / (n - k) for G clusters, n rows and k coefficients (Cameron and Miller,
  2015).

Each sum is one pass over the rows: one for A, and another one for B.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.conditioning import MAX_COLUMNS
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import training_rows
from cfgd.apps.fit.target import Target
from cfgd.objectives.information import centred, inverse_where_definite

CLASSICAL, HC3, CLUSTER = "classical", "hc3", "cluster"
KINDS = (CLASSICAL, HC3, CLUSTER)
NO_PENALTY = np.zeros(())
# A leverage is known to about 1e-13: a row with more than this determines a coefficient alone.
MAX_LEVERAGE = 1 - 1e-10


@dataclasses.dataclass(frozen=True)
class RobustCovariance:
    """The covariance of the coefficients, flattened by rows; None where it does not exist.

    `dof` are the degrees of freedom of t, infinite for a normal distribution, and `reason` says
    why there is no covariance.
    """

    matrix: np.ndarray | None
    dof: float = np.inf
    clusters: int = 0
    reason: str = ""


def describe_errors(kind: str, loss: str, cluster: str | None, clusters: int) -> str:
    """Return the kind of the standard errors in words."""
    if kind == CLUSTER:
        return f"clustered by {cluster!r}, {clusters:,} clusters"
    if kind == HC3:
        return "robust (HC3)" if loss == "squared" else "robust (HC0; HC3 is for the squared loss)"
    return "classical"


def robust_covariance(
    rows: Rows, w: np.ndarray, l2: float, kind: str, memory: float
) -> RobustCovariance:
    """Return the covariance of the coefficients of standardised columns, by two passes.

    Parameters
    ----------
    w
        The coefficients.
    kind
        "hc3" or "cluster".
    memory
        The bytes that the scores of all clusters may take.
    """
    size, target = w.size, rows.target
    if size > MAX_COLUMNS:
        return RobustCovariance(None, reason=f"there are more than {MAX_COLUMNS:,} coefficients")
    penalty = np.repeat(np.append(np.full(rows.width, l2), 0.0), target.classes)
    A = np.diag(penalty) + rows.sum(training_rows, _information, target, w)[0]
    found = inverse_where_definite(A)
    if found is None or found.null.size:
        return RobustCovariance(None, reason="the rows do not determine the coefficients")
    inverse = found.matrix
    n, k = rows.count, size - (rows.width + 1 if target.classes > 1 else 0)
    if kind == CLUSTER:
        sums = _cluster_sums(rows, w, memory)
        clusters = len(sums)
        if clusters < 2:
            return RobustCovariance(None, reason="all training rows are in one cluster")
        if n <= k:
            return RobustCovariance(None, reason="there are no degrees of freedom left")
        B = clusters / (clusters - 1) * (n - 1) / (n - k) * sums.T @ sums
        dof = clusters - 1.0
    else:
        clusters, dof = 0, float(n - k)
        B, alone = rows.sum(training_rows, _squared_scores, target, w, inverse)
        if alone:
            return RobustCovariance(
                None, reason="a row alone determines a coefficient (its leverage is 1)"
            )
    C = centred(inverse @ B @ inverse, target.classes)
    return RobustCovariance(C, dof if target.loss == "squared" else np.inf, clusters)


def _information(blocks: Iterator[RowBlock], target: Target, w: np.ndarray) -> Arrays:
    """Return the Hessian without the penalty."""
    total = np.zeros((w.size, w.size))
    for block in blocks:
        total += _information_of_block(block, target, w)
    return (total,)


def _information_of_block(block: RowBlock, target: Target, w: np.ndarray) -> np.ndarray:
    loss = target.loss_function
    X, p, weight = block.design(target.classes), block.predictors(w), block.fit_weight(target)
    if loss.has_classes:
        from cfgd.objectives.linear.multinomial import fix_gauge, matrix_of_classes  # needs JAX

        matrix = matrix_of_classes(X, loss, p, weight)
        return np.asarray(fix_gauge(matrix, NO_PENALTY, target.classes))
    y = target.for_loss(block.y)
    curvature = np.asarray(loss.derivatives(p, y)[1])
    return np.asarray(X.gram(weight * curvature, NO_PENALTY))


def _squared_scores(
    blocks: Iterator[RowBlock], target: Target, w: np.ndarray, inverse: np.ndarray
) -> Arrays:
    """Return B of hc3, and how many rows determine a coefficient alone."""
    B, alone = np.zeros((w.size, w.size)), np.zeros((), int)
    for block in blocks:
        scores = _scores(block, target, w)
        if target.loss == "squared":
            leverage = _leverages(block, target, inverse)
            is_alone = leverage > MAX_LEVERAGE
            alone += int(np.sum(is_alone))
            scores = scores / (1 - np.where(is_alone, 0.0, leverage))[:, None]
        B += scores.T @ scores
    return B, alone


def _scores(block: RowBlock, target: Target, w: np.ndarray) -> np.ndarray:
    """Return the weighted gradient of the loss of each row."""
    p = block.predictors(w)
    slope = np.asarray(target.loss_function.derivatives(p, target.for_loss(block.y))[0])
    slope = slope.reshape(len(p), -1) * block.fit_weight(target)[:, None]
    X = np.column_stack([block.X, np.ones(len(p))])
    return (X[:, :, None] * slope[:, None, :]).reshape(len(p), -1)


def _leverages(block: RowBlock, target: Target, inverse: np.ndarray) -> np.ndarray:
    X = np.column_stack([block.X, np.ones(len(block.y))])
    return block.fit_weight(target) * np.einsum("ij,jk,ik->i", X, inverse, X, optimize=True)


def _cluster_sums(rows: Rows, w: np.ndarray, memory: float) -> np.ndarray:
    """Return the sum of the scores of each cluster that has training rows, in a row for each."""
    count = rows.cluster_count
    if 8 * w.size * count > max(memory, 8 * w.size * MAX_COLUMNS):
        raise ValueError(
            f"--cluster: the sums of {count:,} clusters do not fit into --memory "
            f"{memory / 1e6:.0f}: increase it."
        )
    sums, is_seen = np.zeros((count, w.size)), np.zeros(count, bool)
    for found, of_part in rows.map(training_rows, _sums_of_clusters, rows.target, w, count):
        sums[found] += of_part
        is_seen[found] = True
    return sums[is_seen]


def _sums_of_clusters(
    blocks: Iterator[RowBlock], target: Target, w: np.ndarray, count: int
) -> Arrays:
    """Return the clusters that rows belong to, and the sum of the scores of each."""
    sums, is_seen = np.zeros((count, w.size)), np.zeros(count, bool)
    for block in blocks:
        assert block.cluster is not None
        np.add.at(sums, block.cluster, _scores(block, target, w))
        is_seen[block.cluster] = True
    found = np.flatnonzero(is_seen)
    return found, sums[found]
