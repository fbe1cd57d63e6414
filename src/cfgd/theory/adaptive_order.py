"""The adaptive order: a bound on its error after each stage (Theorem 5, thm:adapt-order)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cfgd.theory.inputs import (
    Array,
    ArrayInput,
    Numbers,
    integer,
    number,
    real,
    require,
    shaped,
    symmetric,
)
from cfgd.theory.non_adaptive import extremes, non_adaptive_rate, tikhonov_solution

Stages = Sequence[tuple[int, float]]


def adaptive_order_constant(
    A: ArrayInput, b: ArrayInput, terminal: ArrayInput, gammas: ArrayInput
) -> float:
    """Return the constant C of Theorem 5 (thm:adapt-order): |x_g - x_h| <= C |g - h|.

    x_g is the Tikhonov solution for gamma = g. C = B_max^2 |W|^2 |R|^2 |x* - c| with |W|^2 = |A|,
    |R|^2 = max D and B_max the largest |(A + gamma D)^-1| for gamma from 0 to any of `gammas` (the
    paper's range: erratum 7). Since D >= 0, B_max belongs to the smallest gamma: 0 for the paper's
    gamma >= 0. A negative gamma is allowed as long as A + gamma D is positive definite: the proof
    then holds as well.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    b : array
        The linear part of the quadratic, of shape (d,).
    terminal : array
        The terminal c, of shape (d,).
    gammas : array
        The gammas of the stages.

    Returns
    -------
    float
        The constant C.

    Raises
    ------
    ValueError
        If `A` is not square or not symmetric, `b` or `terminal` has another shape than (d,),
        `gammas` is empty, or A + gamma D is not positive definite for gamma = 0 or for the least
        gamma.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 5; corrected
    by errata 5 and 7 of docs/errata.md.

    Examples
    --------
    >>> adaptive_order_constant([[2.0]], [-6.0], [1.0], [0.5, 0.1])
    2.0
    """
    owner = "adaptive_order_constant"
    A, known = symmetric(owner, A), real(owner, "gammas", gammas)
    require(known.size > 0, owner, "gammas", "hold at least one number", "none")
    low, _ = extremes(owner, A, min(0.0, float(known.min())), "gammas")
    _, high = extremes(owner, A, 0.0)
    distance = np.linalg.norm(tikhonov_solution(A, b, terminal, 0.0) - np.asarray(terminal))
    return float(high * np.diag(A).max() * distance / low**2)


def _checked(owner: str, stages: object) -> list[tuple[int, float]]:
    """Return the stages as a list of iterations and gamma."""
    wanted = "be a list of pairs (iterations, gamma)"
    is_list = isinstance(stages, Sequence) and not isinstance(stages, str)
    require(is_list, owner, "stages", wanted, repr(stages))
    require(len(stages) > 0, owner, "stages", "hold at least one stage", "none")  # type: ignore[arg-type]
    for stage in stages:  # type: ignore[attr-defined]
        is_pair = isinstance(stage, Sequence) and len(stage) == 2
        require(is_pair, owner, "stages", wanted, f"the entry {stage!r}")
    return [
        (integer(owner, "stages", iterations, 0), number(owner, "stages", gamma))
        for iterations, gamma in stages  # type: ignore[attr-defined]
    ]


def adaptive_order_bound(
    A: ArrayInput, b: ArrayInput, terminal: ArrayInput, x0: ArrayInput, stages: Stages, eta: Numbers
) -> Array:
    """Return a bound on |x - x*| of the adaptive order after each stage (iterations, gamma).

    The bound after stage s is R_s E_s + C |gamma_s| (Theorem 5, thm:adapt-order), with E_1 = |x0 -
    x_gamma1| and E_{s+1} = R_s E_s + C |gamma_s - gamma_{s+1}|. The theorem's R_s = |1 -
    eta_s/kappa_s|^(k_s/2) inherits erratum 5; here it is `non_adaptive_rate` to the power k_s. The
    step in stage s is eta_s / sigma_max(A + gamma_s D), as R_s assumes, and not eta_s as in the
    theorem's text; `eta` is one number or one for each stage.

    Parameters
    ----------
    A : matrix
        The symmetric matrix of the quadratic, of shape (d, d).
    b : array
        The linear part of the quadratic, of shape (d,).
    terminal : array
        The terminal c, of shape (d,).
    x0 : array
        The start, of shape (d,).
    stages : list of (int, float)
        The number of iterations and the gamma of each stage.
    eta : float or array
        The step in units of 1 / sigma_max(A + gamma_s D): one number, or one for each stage.

    Returns
    -------
    array
        The bounds, one for each stage.

    Raises
    ------
    ValueError
        If `stages` is empty or holds anything but pairs, `eta` is not in (0, 2) or has neither one
        number nor one for each stage, `x0` has another shape than (d,), or as in
        `adaptive_order_constant`.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), theorem 5; corrected
    by errata 5 and 7 of docs/errata.md.

    Examples
    --------
    >>> adaptive_order_bound([[2.0]], [-6.0], [1.0], [0.0], [(2, 1.0), (1, 0.0)], 0.5)
    array([2.5 , 1.25])
    """
    owner = "adaptive_order_bound"
    stages = _checked(owner, stages)
    etas = np.broadcast_to(shaped(owner, "eta", eta, (), (len(stages),)), len(stages))
    constant = adaptive_order_constant(A, b, terminal, [gamma for _, gamma in stages])
    previous = stages[0][1]
    limit = tikhonov_solution(A, b, terminal, previous)
    error = float(np.linalg.norm(shaped(owner, "x0", x0, limit.shape) - limit))
    bounds = []
    for (iterations, gamma), eta_s in zip(stages, etas, strict=True):
        error += constant * abs(gamma - previous)
        error *= non_adaptive_rate(A, gamma, float(eta_s)) ** iterations
        bounds.append(error + constant * abs(gamma))
        previous = gamma
    return np.array(bounds)
