"""Which solver Auto takes for an objective, and which matrices it factorises.

| objective | solver | why |
|---|---|---|
| quadratic: `Quadratic`, `LeastSquares`, `LinearModel` with squared loss | conjugate gradients | a product per step, at most d steps in exact arithmetic |
| the same under bounds | conjugate gradients, then Levenberg-Marquardt on the Hessian | at the first active bound the directions are no longer conjugate |
| linear model, dense, up to 120 columns | Levenberg-Marquardt on the Hessian | its matrix costs a few gradients |
| linear model, more columns or sparse | L-BFGS, then Levenberg-Marquardt | a matrix costs many gradients, and scaled data need few |
| `ShallowNetwork` with one of its own activations, without bounds | variable projection | the best output weights are a linear solve |
| `Residuals`, other networks, a network that is rescaled (gradients above 1e60 or below 1e-60 at the start) | Levenberg-Marquardt on the Gauss-Newton matrix | second-order steps from first derivatives |
| the same with more than 100 unknowns | Levenberg-Marquardt; if it is slow, then L-BFGS and a dense quasi-Newton matrix; only the latter two for residuals by samples | a Jacobian costs many gradients |
| `Blocks` whose Hessian fits in memory, `External` with a Hessian of up to 1,250 columns | Levenberg-Marquardt on the Hessian | the matrix is there already |
| everything else | L-BFGS, in long runs followed by a dense matrix of the Broyden family | only gradients are known |
"""  # noqa: E501 - a table

from __future__ import annotations

import math
from typing import NamedTuple

from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.network.model import ShallowNetwork
from cfgd.objectives.rescaled import without_factor

# Multiplications that forming and factorising a matrix may take: about a tenth of a second on
# one core.
MOST_OPERATIONS = 2e9
# Columns of a data matrix up to which X'WX is formed for any number of rows: a product of matrices
# costs a gradient for every 30 columns, at most 17 gradients here.
FEW_COLUMNS = 512
# Columns beyond which a linear model is first minimised by L-BFGS: a matrix then costs four
# gradients and more, while L-BFGS takes few on well scaled data.
MANY_COLUMNS = 120


class Choice(NamedTuple):
    """A solver by name, and the reason for it."""

    solver: str
    reason: str


def choose(objective: Objective, is_bounded: bool = False) -> Choice:
    """Return the solver for an objective, whose coordinates may have bounds."""
    traits = objective.traits
    if traits.is_quadratic and is_bounded:
        return Choice("cg_then_lm", "the objective is quadratic, with bounds")
    if traits.is_quadratic:
        return Choice("conjugate_gradients", "the objective is quadratic")
    if traits.curvature is None:
        return Choice("quasi_newton", "only its value and gradient are known")
    if traits.structure == "linear model":
        _, columns = traits.size or (0, 0)
        if traits.is_sparse:
            return Choice("lbfgs_then_lm", "X is sparse, and the Hessian costs many gradients")
        if columns > MANY_COLUMNS:
            more = f"X has {columns} columns, more than {MANY_COLUMNS}"
            return Choice("lbfgs_then_lm", f"{more}, and the Hessian costs many gradients")
        return Choice(
            "levenberg_marquardt", f"X has {columns} columns, and the Hessian costs few gradients"
        )
    network, _ = without_factor(objective)
    is_network = isinstance(network, ShallowNetwork) and not is_bounded
    if is_network and network.on_host() is not None:
        return Choice("variable_projection", "the network is linear in its output weights")
    if traits.structure == "residuals":  # which prefer gradients where the unknowns are many
        return Choice("lm_then_quasi_newton", f"its {traits.curvature} matrix is available")
    if traits.prefers_gradients:
        return Choice("quasi_newton", "the Hessian does not fit in memory")
    is_general = traits.structure == "general"
    # with more rows than columns, as in `Blocks`, rows cost nothing here: H comes with the
    # evaluation
    d = 0 if traits.size is None else min(traits.size)
    if is_general and not _is_affordable((d, d)):
        return Choice("quasi_newton", "the Hessian is too large to be factorised")
    return Choice("levenberg_marquardt", f"its {traits.curvature} matrix is available")


def can_factor(curvature: Curvature) -> bool:
    """Return whether the matrix of a curvature is worth forming and factorising."""
    shape = curvature.shape
    if shape is None:
        return False
    if curvature.matrix is not None and curvature.cost == 0:
        return True  # it comes with the evaluation
    return (curvature.rows_are_data and min(shape) <= FEW_COLUMNS) or _is_affordable(shape)


def _is_affordable(shape: tuple[int, ...]) -> bool:
    return float(math.prod(shape)) * min(shape) <= MOST_OPERATIONS
