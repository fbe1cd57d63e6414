"""The loop of a run: compiled, on the host, or on the host with samples that are drawn again."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from cfgd.objectives.base import Objective
from cfgd.objectives.host import host_objective
from cfgd.objectives.projected import Projected
from cfgd.objectives.rescaled import Rescaled
from cfgd.solve.compiled_loop import CompiledLoop
from cfgd.solve.host_loop import HostLoop
from cfgd.solve.loop import Loop
from cfgd.solve.options import Options
from cfgd.solve.problem import Problem
from cfgd.solve.resample import ResampledLoop
from cfgd.solve.separated import separating_value


def make_loop(
    options: Options, problem: Problem, factor: float, should_stop: Callable[[], bool] | None
) -> Loop:
    """Return the loop in which the method minimises factor * f."""
    box = problem.box

    def rescaled(objective: Objective) -> Objective:
        if factor == 1:
            return objective
        return Rescaled(objective, jnp.asarray(factor, problem.dtype))

    def on_host(objective: Objective) -> Objective:
        return host_objective(rescaled(objective))

    if not problem.method.traits.runs_on_host:
        objective = rescaled(problem.objective)
        objective = objective if box is None else Projected(objective, box)
        return CompiledLoop(problem.loop, objective, problem.method)
    objective = on_host(problem.objective)
    solver = problem.method.solver_for(objective)
    arguments = problem.loop, objective, solver, should_stop, max(factor, 1.0), box
    if options.resample is None:
        loop = HostLoop(*arguments)
        if box is None and problem.n_settings is None:
            loop.enough = factor * separating_value(problem.objective)
        return loop
    return ResampledLoop(options.resample, problem, on_host, *arguments)
