"""Compiled programs that are shared by calls and freed together with the functions in them."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any, ParamSpec, TypeVar

import jax

from cfgd._core.arrays import is_array
from cfgd._core.interruptible import interruptible_trace

P = ParamSpec("P")
R = TypeVar("R")

# On a CPU programs compile in half of the time without fusion emitters, and most run as fast.
OPTIONS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}
# Without LLVM's optimisations they compile in a third of that time. Short programs without loops
# run as fast, others take twice as long.
QUICK_OPTIONS: dict[str, Any] = OPTIONS | {"xla_backend_optimization_level": 0}
# With fusion emitters gradients of physics-informed networks take 0.75 to 0.9 of the time.
EFFORTS: dict[str, dict[str, Any]] = {"quick": QUICK_OPTIONS, "usual": OPTIONS, "full": {}}

_programs: dict[Any, _Program] = {}


def bind(fn: Callable[..., R], *parts: object, effort: str = "usual") -> Callable[..., R]:
    """Return fn(*parts, ...), compiled once for all parts that differ only in numbers.

    With the effort "quick" it is compiled in less time, with "full" it runs faster.

    Arrays among the leaves of `parts` are arguments of the program; all other leaves are constants.
    Functions among them are referred to weakly: a lambda that captures data can be freed, and its
    program is freed with it.
    """
    leaves, treedef = jax.tree.flatten(parts)
    arrays = [leaf for leaf in leaves if is_array(leaf)]
    fixed = tuple(None if is_array(leaf) else _weakly(leaf) for leaf in leaves)
    key = fn, treedef, fixed, effort
    program = _programs.get(key)
    if program is None:

        def run(arrays: list[Any], *args: object) -> R:
            numbers = iter(arrays)
            leaves = [next(numbers) if leaf is None else leaf() for leaf in fixed]
            return interruptible_trace(fn, *jax.tree.unflatten(treedef, leaves), *args)

        run.__name__ = fn.__name__
        program = _programs.setdefault(key, _Program(run, EFFORTS[effort]))
    return partial(program, arrays)


class _Program:
    """A jitted function with compiler options, which JAX takes at the outermost level only."""

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any]) -> None:
        self.fn = fn
        self.inside_jit = jax.jit(fn)
        self.outermost = jax.jit(fn, compiler_options=options)

    def __call__(self, *args: object) -> Any:
        try:
            return self.outermost(*args)
        except ValueError as error:
            if "compiler_options" not in str(error):
                raise
            return self.inside_jit(*args)
        except jax.errors.JaxRuntimeError as error:
            # a version of XLA that does not have the option
            if not re.search(r"No such compile option", str(error)):
                raise
            self.outermost = self.inside_jit
            return self.inside_jit(*args)


class _Strong:
    """A leaf that is no function: referred to strongly, and called as a weak reference is."""

    def __init__(self, leaf: object) -> None:
        self.leaf = leaf

    def __call__(self) -> Any:
        return self.leaf

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and True are different programs
        return isinstance(other, _Strong) and (type(self.leaf), self.leaf) == (
            type(other.leaf),
            other.leaf,
        )

    def __hash__(self) -> int:
        return hash(self.leaf)


def _weakly(leaf: object) -> Callable[[], Any]:
    # a bound method is made anew whenever it is asked for: nobody else keeps it
    if not callable(leaf) or isinstance(leaf, MethodType | type):
        return _Strong(leaf)
    try:
        return weakref.ref(leaf, _forget)
    except TypeError:
        return _Strong(leaf)


def _forget(gone: object) -> None:
    # a copy of the keys: other threads may add programs, and this function may be called inside
    # itself where memory is freed
    for key in list(_programs or ()):  # at the end of the process the table is None
        if any(leaf is gone for leaf in key[2]):
            _programs.pop(key, None)
