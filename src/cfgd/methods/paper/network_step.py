"""The paper's step for its networks: one length for each layer."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.linalg import inner
from cfgd._core.types import Flag, Scalar, Vector
from cfgd.methods.paper.step import Chosen, StepRule, candidates, least, no_descent
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation, Line
from cfgd.objectives.network.line import NetworkLine


class NetworkStep(StepRule):
    """For `ShallowNetwork`: the exact step for its output layer, 32 candidates for the hidden one.

    The output weights enter f quadratically, so their own line has an exact step; the candidates
    are tried with it, and the one with the least value is taken (section 4.3 and erratum 8).

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
        return no_descent(inner(point.gradient[:hidden], d[:hidden]), square)

    def choose(self, line: Line, memory: Any) -> Chosen:
        line = line.of_f  # the paper's formula, whatever the terminal does
        assert isinstance(line, NetworkLine)  # see `check`
        hidden, d = line.objective.hidden, line.d
        curvature = line.output_curvature()
        slope = inner(line.evaluation.gradient[hidden:], d[hidden:])
        output = jnp.where(curvature > 0, slope / curvature, 0)
        etas = candidates(d.dtype)
        values = line.layer_values(etas, jnp.full_like(etas, output))
        steps = jnp.where(jnp.arange(d.size) < hidden, etas[:, None], output)
        return Chosen(least(steps, values), cost=len(etas) * line.costs.value)
