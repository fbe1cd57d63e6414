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

import numpy as np

from cfgd.apps.fit.conditioning import MAX_COLUMNS
from cfgd.apps.fit.rows import RowBlock, Rows
from cfgd.apps.fit.split import training_rows
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
        return "robust (HC3)" if loss == "squared" else "robust (HC0, as statsmodels' HC3 is here)"
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
    A = np.diag(penalty)
    for block in rows.blocks(training_rows):
        A += _information(rows, block, w)
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
        B, clusters, dof = np.zeros((size, size)), 0, float(n - k)
        for block in rows.blocks(training_rows):
            scores = _scores(rows, block, w)
            if target.loss == "squared":
                leverage = _leverages(rows, block, inverse)
                if leverage.max() > MAX_LEVERAGE:
                    return RobustCovariance(None, reason="a row determines a coefficient alone")
                scores = scores / (1 - leverage)[:, None]
            B += scores.T @ scores
    C = centred(inverse @ B @ inverse, target.classes)
    return RobustCovariance(C, dof if target.loss == "squared" else np.inf, clusters)


def _information(rows: Rows, block: RowBlock, w: np.ndarray) -> np.ndarray:
    """Return a block's part of the Hessian."""
    target, loss = rows.target, rows.target.loss_function
    X, p, weight = block.design(target.classes), block.predictors(w), rows.fit_weight(block)
    if loss.has_classes:
        from cfgd.objectives.linear.multinomial import fix_gauge, matrix_of_classes  # needs JAX

        matrix = matrix_of_classes(X, loss, p, weight)
        return np.asarray(fix_gauge(matrix, NO_PENALTY, target.classes))
    y = target.for_loss(block.y)
    curvature = np.asarray(loss.derivatives(p, y)[1])
    return np.asarray(X.gram(weight * curvature, NO_PENALTY))


def _scores(rows: Rows, block: RowBlock, w: np.ndarray) -> np.ndarray:
    """Return the weighted gradient of the loss of each row."""
    target, p = rows.target, block.predictors(w)
    slope = np.asarray(target.loss_function.derivatives(p, target.for_loss(block.y))[0])
    slope = slope.reshape(len(p), -1) * rows.fit_weight(block)[:, None]
    X = np.column_stack([block.X, np.ones(len(p))])
    return (X[:, :, None] * slope[:, None, :]).reshape(len(p), -1)


def _leverages(rows: Rows, block: RowBlock, inverse: np.ndarray) -> np.ndarray:
    X = np.column_stack([block.X, np.ones(len(block.y))])
    return rows.fit_weight(block) * np.einsum("ij,jk,ik->i", X, inverse, X, optimize=True)


def _cluster_sums(rows: Rows, w: np.ndarray, memory: float) -> np.ndarray:
    """Return the sum of the scores of each cluster that has training rows, in a row for each."""
    sums, is_seen = np.zeros((0, w.size)), np.zeros(0, bool)
    for block in rows.blocks(training_rows):
        assert block.cluster is not None
        more = int(block.cluster.max()) + 1 - len(sums)
        if more > 0:
            if 8 * w.size * (len(sums) + more) > max(memory, 8 * w.size * MAX_COLUMNS):
                raise ValueError(
                    f"--cluster: the sums of {len(sums) + more:,} clusters do not fit into "
                    f"--memory {memory / 1e6:.0f}: increase it."
                )
            sums = np.concatenate([sums, np.zeros((max(more, len(sums)), w.size))])
            is_seen = np.concatenate([is_seen, np.zeros(len(sums) - len(is_seen), bool)])
        np.add.at(sums, block.cluster, _scores(rows, block, w))
        is_seen[block.cluster] = True
    return sums[is_seen]
