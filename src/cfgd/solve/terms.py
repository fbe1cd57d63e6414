"""The terms of a `ResidualTerms` in the history, on the progress line and in the solution."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Array

from cfgd._core import checks
from cfgd._core.compiled import bind
from cfgd.methods.base import State
from cfgd.objectives.base import Objective
from cfgd.objectives.residual_terms import ResidualTerms, values_of_terms
from cfgd.solve.history import History


@dataclasses.dataclass(frozen=True)
class TermRecorder:
    """The value of one term, which comes with the evaluation of their sum."""

    index: int

    def of(self, state: Any) -> Any:
        return values_of_terms(state.evaluation)[self.index]

    def __call__(self, state: State) -> Array:
        return self.of(state)


def names_of_terms(objective: Objective) -> tuple[str, ...]:
    """Return the names of the terms of an objective, none where it has no terms."""
    return objective.names if isinstance(objective, ResidualTerms) else ()


def term_recorders(
    owner: str, objective: Objective, record: Mapping[str, Any]
) -> dict[str, TermRecorder]:
    """Return a recorder for each term; refuse terms with the name of something recorded."""
    names = names_of_terms(objective)
    for name in names:
        if name in record:
            wanted = "use other names than those of the terms of the objective"
            checks.fail(owner, "record", wanted, repr(name))
    return {name: TermRecorder(i) for i, name in enumerate(names)}


def describe_terms(objective: Objective, history: History) -> str:
    """Return the values of the terms in the last row of the history, for the progress line."""
    row = history.parts[-1]
    texts = [f"  {name} {np.min(row[name][-1]):.3g}" for name in names_of_terms(objective)]
    return "".join(texts)


def terms_at(
    objective: Objective, rows: Mapping[str, Any], x: Any, is_last: bool
) -> dict[str, Any] | None:
    """Return the values of the terms at the point of a solution, None where there are none.

    Where x is the last point (`is_last`) they are in the last row of the history.
    """
    names = names_of_terms(objective)
    if not names:
        return None
    if is_last:
        return {name: _number(rows[name][..., -1]) for name in names}
    found = [bind(_values, objective)(point) for point in np.atleast_2d(x)]
    values = np.stack([np.asarray(one) for one in found])
    values = values if np.ndim(x) > 1 else values[0]
    return {name: _number(values[..., i]) for i, name in enumerate(names)}


def _values(objective: Objective, x: Any) -> Any:
    return values_of_terms(objective.evaluate(x))


def _number(values: Any) -> Any:
    return float(values) if np.ndim(values) == 0 else np.array(values)
