"""The argument names of models, and how models take their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from cfgd._core import checks
from cfgd._core.weak_table import WeakTable
from cfgd.fitting.model import Call
from cfgd.objectives.parameters import Parameters


class Arguments(NamedTuple):
    """The arguments of a model after x: all names, those without a default, and `**` if any.

    `by_name` are those without a default that are taken by name only.
    """

    names: list[str]
    required: list[str]
    by_name: list[str]
    takes_any: bool


# Arguments by models: reading a signature takes as long as an iteration of a small fit.
_known: WeakTable[Arguments] = WeakTable()


def arguments_of(model: Callable[..., Any]) -> Arguments:
    """Return the arguments of a model; one whose signature is unknown takes any."""
    return _known.of(model, lambda: _read_arguments(model))


def _read_arguments(model: Callable[..., Any]) -> Arguments:
    try:
        each = list(inspect.signature(model).parameters.items())
    except (TypeError, ValueError):  # a callable without a signature
        return Arguments([], [], [], True)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [(name, one) for name, one in each if one.kind in kinds][1:]
    by_name = [(name, one) for name, one in each if one.kind is one.KEYWORD_ONLY]
    required = [name for name, one in positional + by_name if one.default is one.empty]
    return Arguments(
        names=[name for name, _ in positional + by_name],
        required=required,
        by_name=[name for name, _ in by_name if name in required],
        takes_any=any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for _, one in each),
    )


def names_for(model: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first `count` arguments after x, or p[0], p[1], ..."""
    arguments = arguments_of(model)
    first = arguments.names[:count]
    if len(first) == count and set(arguments.required) <= set(first):
        return first
    return [f"p[{i}]" for i in range(count)]


def call_by_name(
    owner: str, model: Callable[..., Any], parameters: Parameters, data_set: str
) -> Call:
    """Return how a model takes parameters by name.

    In a fit of several data sets, an argument `size` of the data set `a` is the parameter `size[a]`
    where there is one.
    """
    arguments, own = arguments_of(model), f"[{data_set}]"
    found = {}
    for name in parameters:
        if name.endswith(own):
            found[name.removesuffix(own)] = name
        elif not name.endswith("]"):
            found.setdefault(name, name)
    if not arguments.takes_any:
        for name in arguments.required:
            if name not in found:
                wanted = f"have the argument `{name}` of the model"
                checks.fail(owner, "p0", wanted, f"the parameters {', '.join(parameters)}")
        found = {name: found[name] for name in arguments.names if name in found}
    return Call(tuple(found.items()))
