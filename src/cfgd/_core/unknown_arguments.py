"""Errors for keywords that a function does not have, with the name that is meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def refuse_unknown(
    owner: str, names: Iterable[str], known: Collection[str], instead: Mapping[str, str]
) -> None:
    """Raise for a name that is not `known`.

    The message has what `instead` says of the name, or else the known name that is most like it.
    """
    for name in names:
        if name in known:
            continue
        hint = "."
        if name in instead:
            hint = f": {instead[name]}."
        elif near := difflib.get_close_matches(name, known, 1):
            hint = f": did you mean `{near[0]}`?"
        raise TypeError(f"`{owner}` has no argument `{name}`{hint}")


def explains_arguments(instead: Mapping[str, str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: the function refuses unknown keywords with what to write instead."""

    def explained(fn: Callable[P, R]) -> Callable[P, R]:
        known = list(inspect.signature(fn).parameters)

        @functools.wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            refuse_unknown(fn.__name__, kwargs, known, instead)
            return fn(*args, **kwargs)

        return call

    return explained
