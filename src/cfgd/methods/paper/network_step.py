"""The paper's step rule for shallow networks: one step size for each layer."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.linalg import inner
from cfgd._core.types import Flag, Scalar, Vector
from cfgd.methods.paper.step import (
    Chosen,
    StepRule,
    best_candidate,
    grid_candidates,
    is_no_descent,
)
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation, Line
from cfgd.objectives.network.line import NetworkLine


class NetworkStep(StepRule):
    """For `ShallowNetwork`: an exact step for the output layer, 32 candidates for the hidden layer.

    f is quadratic in the output weights, so that an exact step along their part of d is known. It
    is combined with each candidate for the hidden layer, and the pair with the smallest value is
    taken (section 4.3 of the paper and erratum 8).

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), section 4.3.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> z = np.linspace(-1, 1, 20)
    >>> network = cfgd.ShallowNetwork(z, np.sin(3 * z), width=4)
    >>> descent = cfgd.GradientDescent(cfgd.NetworkStep())
    >>> end = cfgd.minimize(network, network.init(0), descent, max_iterations=50)
    >>> print(end.value < network.value(network.init(0)) / 5)
    True
    """

    def check(self, objective: Objective) -> None:
        if objective.traits.n_nonlinear is None:
            wanted = "be a ShallowNetwork or its local model without probes"
            checks.fail("NetworkStep", "objective", wanted, objective.traits.label)

    def stalls(
        self, objective: Objective, point: Evaluation, d: Vector, slope: Scalar, square: Scalar
    ) -> Flag:
        hidden = objective.traits.n_nonlinear
        return is_no_descent(inner(point.gradient[:hidden], d[:hidden]), square)

    def choose(self, line: Line, memory: Any) -> Chosen:
        line = line.of_f  # the paper's formula uses f, also with a fixed terminal
        assert isinstance(line, NetworkLine)  # see `check`
        hidden, d = line.objective.hidden, line.d
        curvature = line.output_curvature()
        slope = inner(line.evaluation.gradient[hidden:], d[hidden:])
        output = jnp.where(curvature > 0, slope / curvature, 0)
        etas = grid_candidates(d.dtype)
        values = line.layer_values(etas, jnp.full_like(etas, output))
        steps = jnp.where(jnp.arange(d.size) < hidden, etas[:, None], output)
        return Chosen(best_candidate(steps, values), cost=len(etas) * line.costs.value)
