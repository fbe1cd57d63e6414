"""`minimize` started from `Parameters`: some are fixed or tied, the others are fitted."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd.objectives.base import Objective
from cfgd.objectives.function import Smooth
from cfgd.objectives.parameter_layout import Layout, layout_of
from cfgd.objectives.parameters import Expression, Parameters
from cfgd.objectives.residual_terms import ResidualTerms
from cfgd.objectives.residuals import Residuals
from cfgd.solve.resample import Resample
from cfgd.solve.solution import Solution


class OfFree(eqx.Module):
    """A function of all parameters, as a function of the dict of the free ones."""

    fn: Callable[..., Any]
    fixed: dict[str, Any]  # arrays: another value compiles nothing
    layout: Layout = eqx.field(static=True)
    expressions: tuple[Expression, ...] = eqx.field(static=True)

    def __call__(self, free: dict[str, Any], *args: Any) -> Any:
        return self.fn(self.complete(free), *args)

    def complete(self, free: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters by name."""
        ties = dict(zip(self.layout.ties, self.expressions, strict=True))
        return self.layout.tie({**self.fixed, **free}, ties)


class NamedProblem:
    """An objective of `Parameters`, as an objective of the dict of the free ones.

    Parameters
    ----------
    owner
        The function that the user called, for messages.
    objective
        A `Residuals` or a JAX function of a dict of parameters.
    parameters
        All parameters.
    """

    def __init__(self, owner: str, objective: Any, parameters: Parameters) -> None:
        if not isinstance(objective, Residuals | ResidualTerms | Smooth):
            wanted = "be a start other than Parameters, which are for Residuals or a function"
            checks.fail(owner, "x0", wanted, f"Parameters for {objective.traits.label}")
        unknown = [name for name in parameters.free if parameters[name].value is None]
        if unknown:
            wanted = "have a value for each free parameter"
            checks.fail(owner, "x0", wanted, f"none for {unknown[0]!r}")
        if not parameters.free:
            checks.fail(owner, "x0", "have a free parameter", "none")
        layout, _ = layout_of(owner, parameters)
        ties = tuple(parameters[name].expression for name in layout.ties)
        fixed = {
            name: np.asarray(each.value)
            for name, each in parameters.items()
            if each.kind == "fixed"
        }

        def of_free(objective: Any) -> Any:
            self.of_free = OfFree(objective.fn, fixed, layout, ties)  # type: ignore[arg-type]
            changed = copy.copy(objective)
            object.__setattr__(changed, "fn", self.of_free)
            return changed

        self.objective: Objective
        if isinstance(objective, ResidualTerms):
            pairs = zip(objective.names, objective.terms, strict=True)
            self.objective = objective.changed({name: of_free(term) for name, term in pairs})
        else:
            self.objective = of_free(objective)
        self.start = {name: np.asarray(parameters[name].value) for name in parameters.free}
        bounds = {name: parameters[name].bounds for name in parameters.free}
        is_bounded = any(np.isfinite(side).any() for pair in bounds.values() for side in pair)
        self.bounds = bounds if is_bounded else None

    def complete(self, free: Any) -> dict[str, Any]:
        """Return all parameters by name, from the free ones."""
        return self.of_free.complete(free)

    def completed(self, solution: Solution) -> Solution:
        """Return a solution whose x are all parameters."""
        with in_precision(np.result_type(*map(np.asarray, solution.x.values()))):
            all_of_them = self.complete(solution.x)
        x = {name: np.asarray(value) for name, value in all_of_them.items()}
        return dataclasses.replace(solution, x=x)

    def of_all(self, record: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the functions to record as functions of the free parameters."""
        if not isinstance(record, Mapping):
            return record
        return {
            name: (lambda free, fn=fn: fn(self.complete(free))) if callable(fn) else fn
            for name, fn in record.items()
        }

    def drawing(self, resample: Resample | None) -> Resample | None:
        """Return the drawing of samples whose function gets all parameters."""
        if not isinstance(resample, Resample):
            return resample
        draw = resample.draw
        return Resample(lambda k, free: draw(k, self.complete(free)), resample.every)

    def with_all(self, callback: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """Return a callback that gets solutions with all parameters."""
        if not callable(callback):
            return callback
        return lambda solution: callback(self.completed(solution))
