"""Recognise classes that are separated, after a run on a likelihood that has no maximum."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cfgd._core.box import Box
from cfgd._core.engines.local import SerialEngine
from cfgd._core.sharding import any_sharded
from cfgd.methods.base import MethodTraits
from cfgd.objectives.base import Objective
from cfgd.objectives.linear.blocks import Blocks
from cfgd.objectives.linear.classified_rows import Classes, RowBlock
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.losses import Logistic
from cfgd.objectives.linear.model import LinearModel
from cfgd.objectives.linear.multinomial import Multinomial
from cfgd.objectives.linear.separation import Separation, find_separation
from cfgd.objectives.linear.stream import Model
from cfgd.solve.solution import Solution
from cfgd.solve.wrong_gradient import with_diagnosis
from cfgd.status import Status

# Statuses of runs that may have followed a separating direction; the user causes the others.
ENDINGS = (
    Status.converged,
    Status.stages_done,
    Status.max_iterations,
    Status.nonfinite,
    Status.unbounded,
    Status.saddle,
    Status.stalled,
)
NAMED = 5  # columns that a message names


def separated(
    solution: Solution, traits: MethodTraits, objective: Objective, x: np.ndarray, box: Box | None
) -> Solution:
    """Return the solution with the status `separated` where the classes are.

    Parameters
    ----------
    solution
        That of a run that ended.
    objective
        What was minimised; only a logistic or multinomial model can be separated.
    x
        The coefficients as a vector.
    """
    if solution.status not in ENDINGS:
        return solution
    passes = objective.passes if isinstance(objective, Blocks) else 0
    found = separation_of(objective, x, box)
    if isinstance(objective, Blocks):
        evaluations = solution.evaluations + objective.passes - passes
        solution = dataclasses.replace(solution, evaluations=evaluations)
    if found is None:
        return solution
    diagnosed = with_diagnosis(solution, traits, Status.separated, describe_separation(found))
    return dataclasses.replace(diagnosed, information=None)


def separation_of(objective: Objective, x: np.ndarray, box: Box | None = None) -> Separation | None:
    """Return a direction that separates the classes of a linear model, or None.

    None is also the answer for other objectives, and for data on several devices.
    """
    classes = _classes_of(objective, x, box)
    if classes is None:
        return None
    return find_separation(classes, np.asarray(x, float).reshape(classes.lower.shape))


def separating_value(objective: Objective) -> float:
    """Return the value below which every row is classified correctly; -inf if there is none.

    A row whose class has a probability of at most 1/2 has a loss of at least log 2. If every row is
    classified correctly, the classes are completely separated, and further iterations would only
    make the coefficients larger.
    """
    if isinstance(objective, Blocks):
        stream = objective.stream
        loss, l2, has_offset = stream.model.loss, stream.l2, stream.survey.has_offset
        least = stream.survey.least_weight
    elif isinstance(objective, LinearModel) and not any_sharded(objective):
        loss, l2, has_offset = objective.loss, objective.l2, objective.offset is not None
        weight = np.asarray(objective.sample_weight)
        least = float(np.min(weight, where=weight > 0, initial=np.inf))
    else:
        return -np.inf
    if has_offset or not isinstance(loss, Logistic | Multinomial) or np.any(l2 > 0):
        return -np.inf
    return least * math.log(2)


def _classes_of(objective: Objective, x: np.ndarray, box: Box | None) -> Classes | None:
    """Return the rows of a logistic or multinomial model."""
    if isinstance(objective, Blocks):
        stream = objective.stream
        loss, l2, has_intercept = stream.model.loss, stream.l2, stream.model.intercept
    elif isinstance(objective, LinearModel):
        loss, l2 = objective.loss, objective.l2
        has_intercept = isinstance(objective.X, WithIntercept)
    else:
        return None
    if isinstance(loss, Multinomial):
        contrasts = np.eye(loss.classes)
    elif isinstance(loss, Logistic):
        contrasts = np.array([[-0.5], [0.5]])
    else:
        return None
    shape = (x.size // contrasts.shape[1], contrasts.shape[1])
    is_free = np.broadcast_to(np.asarray(l2) == 0, x.shape)
    if not is_free.any():
        return None
    if has_intercept and not is_free.reshape(shape)[:-1].any() and _has_all_classes(objective):
        return None  # a constant cannot be on the side of every class
    lower, upper = -1.0 * is_free, 1.0 * is_free
    if box is not None:
        lower = np.where(np.isfinite(box.lower), 0.0, lower)
        upper = np.where(np.isfinite(box.upper), 0.0, upper)
    if isinstance(objective, LinearModel):
        host = objective.on_host()
        if host is None:
            return None
        rows = host.X, np.asarray(host.y), np.asarray(host.sample_weight)
        passes = SerialEngine([lambda: iter([rows])]).map
        read = functools.partial(_used_rows, loss)
    else:
        passes, read = stream.map, functools.partial(_used_rows_of_blocks, stream.model)
    limits = lower.reshape(shape), upper.reshape(shape)
    return Classes(passes, read, contrasts, has_intercept, *limits)


def _has_all_classes(objective: LinearModel | Blocks) -> bool:
    """Return whether every class has a row of positive weight, as far as that is cheap to tell."""
    if isinstance(objective, Blocks):
        return True  # it would take a pass over the rows
    if any_sharded(objective):
        return False
    y = np.asarray(objective.y)[np.asarray(objective.sample_weight) > 0]
    if isinstance(objective.loss, Multinomial):
        return bool((np.bincount(y.astype(int), minlength=objective.loss.classes) > 0).all())
    return bool((y > 0).any() and (y <= 0).any())


def _used_rows(loss: Any, blocks: Iterable[Any]) -> Iterator[RowBlock]:
    """Iterate over the rows whose weight is not zero, with their classes 0, 1, ..."""
    for X, y, weight in blocks:
        classes = np.asarray(y if isinstance(loss, Multinomial) else y > 0).astype(int)
        used = np.asarray(weight) > 0
        if used.all():
            yield RowBlock(X, classes)
        elif used.any():
            yield RowBlock(X.rows(np.flatnonzero(used)), classes[used])


def _used_rows_of_blocks(model: Model, blocks: Iterable[Any]) -> Iterator[RowBlock]:
    """Iterate over the used rows of streamed blocks, as `_used_rows` does."""
    at_zero = model.predict(blocks, np.zeros(model.dimension))
    return _used_rows(model.loss, ((X, y, weight) for X, y, weight, _ in at_zero))


# ---------------------------------------------------------------------- in words


def describe_separation(
    found: Separation, columns: Sequence[str] = (), classes: Sequence[str] = ()
) -> str:
    """Say which classes are separated by which columns.

    Parameters
    ----------
    columns, classes
        Their names, without the intercept; numbers by default.
    """
    n_classes = len(found.pairs)
    names = list(classes) or [str(k) for k in range(n_classes)]
    kind = "complete" if found.is_complete else "quasi-complete"
    return f"{_who(found, names)} by {_columns(found, columns)} ({kind} separation)."


def _who(found: Separation, names: list[str]) -> str:
    """Return a phrase that names the classes that are separated."""
    groups = _groups(found.pairs | found.pairs.T)
    if len(names) == 2 or len(groups) == 1:
        apart = [k for k in range(len(names)) if found.pairs[k].any() or found.pairs[:, k].any()]
        return f"The classes {_listed([names[k] for k in apart])} are separated"
    groups.sort(key=len)
    one, *others = ([names[k] for k in group] for group in groups)
    rest = [name for group in others for name in group]
    kind, verb = ("class", "is") if len(one) == 1 else ("classes", "are")
    return f"The {kind} {_listed(one)} {verb} separated from {_listed(rest)}"


def _groups(is_apart: np.ndarray) -> list[list[int]]:
    """Return groups of classes: classes that are not separated are in the same group."""
    left, groups = set(range(len(is_apart))), []
    while left:
        group, new = set(), {min(left)}
        while new:
            group |= new
            new = {j for j in left - group if any(not is_apart[i, j] for i in new)}
        left -= group
        groups.append(sorted(group))
    return groups


def _columns(found: Separation, names: Sequence[str]) -> str:
    """Return the columns of the direction, the most important first."""
    shares = found.shares
    order = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] > 0]
    named = [names[j] if names else f"{j}" for j in order]
    if not named:
        return "the intercept alone: a class has no rows"
    if len(named) == 1:
        return f"the column {named[0]}"
    more = len(named) - NAMED
    if more > 1:
        named = [*named[:NAMED], f"{more} others"]
    return f"the columns {_listed(named)} together"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
