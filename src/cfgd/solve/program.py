"""Compiled programs: what does not change in a run is bound once, and let go with its functions."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any, ParamSpec, TypeVar

import jax

from cfgd._core.arrays import is_array
from cfgd._core.sharding import is_sharded
from cfgd.solve.native import native

P = ParamSpec("P")
R = TypeVar("R")

# on a CPU compiled in half of the time, and as fast
OPTIONS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}
# a library's sums have no place in a native function; jax 0.8 has no such library
NATIVE = OPTIONS | {"xla_cpu_experimental_ynn_fusion_type": ""}
# how a loop may be compiled, the best first: natively or not, and with which options
WAYS = [(True, NATIVE), (True, OPTIONS), (False, OPTIONS)]
# of the options those that this version of XLA does not have, as it turned out
NOT_THERE: set[str] = set()

_programs: dict[Any, Any] = {}


def bind(fn: Callable[..., R], *parts: Any, loops: bool = False) -> Callable[..., R]:
    """fn(*parts, ...), compiled once for all parts that differ in the numbers of their arrays only.

    Functions among the parts are not kept alive: a lambda that captures data may go, and its
    program goes with it. What `loops`, and has its data on one device, may become native.
    """
    leaves, treedef = jax.tree.flatten(parts)
    arrays = [leaf for leaf in leaves if is_array(leaf)]
    fixed = tuple(None if is_array(leaf) else _weakly(leaf) for leaf in leaves)
    loops = loops and not any(map(is_sharded, arrays))
    key = fn, treedef, fixed, loops
    if key not in _programs:

        def run(arrays: list[Any], *args: Any) -> R:
            numbers = iter(arrays)
            leaves = [next(numbers) if leaf is None else leaf() for leaf in fixed]
            return fn(*jax.tree.unflatten(treedef, leaves), *args)

        run.__name__ = fn.__name__
        _programs[key] = _Program(run, loops)
    return partial(_programs[key], arrays)


class _Program:
    """A jitted function; its options are for a program that stands alone."""

    def __init__(self, fn: Callable[..., Any], loops: bool) -> None:
        self.fn, self.inside = fn, jax.jit(fn)
        self.ways = iter(tuple(WAYS if loops else WAYS[-1:]))
        self._next_way()

    def _next_way(self) -> bool:
        """Compile in the next best way, if there is one."""
        way = next(self.ways, None)
        if way is None:
            return False
        self.way = way
        self._compile()
        return True

    def _compile(self) -> None:
        natively, options = self.way
        fn = native(self.fn) if natively else self.fn
        there = {name: value for name, value in options.items() if name not in NOT_THERE}
        self.alone = jax.jit(fn, compiler_options=there)

    def __call__(self, *args: Any) -> Any:
        while True:
            try:
                return self.alone(*args)
            except ValueError as error:
                if "compiler_options" not in str(error):
                    raise
                return self.inside(*args)
            except jax.errors.JaxRuntimeError as error:
                missing = re.search(r"No such compile option: '(\w+)'", str(error))
                if missing and missing[1] not in NOT_THERE:
                    NOT_THERE.add(missing[1])
                    self._compile()
                # or it has no place in a native loop for something in the user's function
                elif not self._next_way():
                    raise


class _Strong:
    """A leaf that is no function: kept, and called as a weak reference is."""

    def __init__(self, leaf: Any) -> None:
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


def _weakly(leaf: Any) -> Callable[[], Any]:
    # a bound method is made anew whenever it is asked for: nobody else keeps it
    if not callable(leaf) or isinstance(leaf, MethodType | type):
        return _Strong(leaf)
    try:
        return weakref.ref(leaf, _forget)
    except TypeError:
        return _Strong(leaf)


def _forget(gone: Any) -> None:
    for key in [key for key in _programs if any(leaf is gone for leaf in key[2])]:
        del _programs[key]
