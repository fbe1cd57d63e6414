"""Compiled programs that are shared by calls and freed together with the functions in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import jax

from cfgd._core.arrays import is_array
from cfgd._core.interruptible import interruptible_trace
from cfgd._core.weak_table import WeakTable

P = ParamSpec("P")
R = TypeVar("R")

# On a CPU programs compile in half of the time without fusion emitters, and most run as fast.
OPTIONS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}
# Without LLVM's optimisations they compile in a third of that time. Short programs without loops
# run as fast, others take twice as long.
QUICK_OPTIONS: dict[str, Any] = OPTIONS | {"xla_backend_optimization_level": 0}
# With fusion emitters gradients of physics-informed networks take 0.75 to 0.9 of the time.
EFFORTS: dict[str, dict[str, Any]] = {"quick": QUICK_OPTIONS, "usual": OPTIONS, "full": {}}


def bind(fn: Callable[..., R], *parts: object, effort: str = "usual") -> Callable[..., R]:
    """Return fn(*parts, ...), compiled once for all parts that differ only in numbers.

    With the effort "quick" it is compiled in less time, with "full" it runs faster.

    Arrays among the leaves of `parts` are arguments of the program; all other leaves are constants.
    Functions among them are referred to weakly: a lambda that captures data can be freed, and its
    program is freed with it.
    """
    leaves, treedef = jax.tree.flatten(parts)
    arrays = [leaf for leaf in leaves if is_array(leaf)]
    fixed, rest = _programs.references(leaves), (fn, treedef, effort)
    program = _programs.get(fixed, rest)
    if program is None:

        def run(arrays: list[Any], *args: object) -> R:
            numbers = iter(arrays)
            leaves = [next(numbers) if leaf is None else leaf() for leaf in fixed]
            return interruptible_trace(fn, *jax.tree.unflatten(treedef, leaves), *args)

        run.__name__ = fn.__name__
        program = _programs.setdefault(fixed, rest, _Program(run, EFFORTS[effort]))
    return partial(program, arrays)


# Options that this version of XLA does not have: it has refused a program with them.
_missing: set[str] = set()


class _Program:
    """A jitted function with compiler options, which JAX takes at the outermost level only."""

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any]) -> None:
        self.fn, self.options = fn, options
        self.inside_jit = jax.jit(fn)
        self.outermost = self._with_known_options()

    def _with_known_options(self) -> Callable[..., Any]:
        known = {name: value for name, value in self.options.items() if name not in _missing}
        return jax.jit(self.fn, compiler_options=known)

    def __call__(self, *args: object) -> Any:
        try:
            return self.outermost(*args)
        except ValueError as error:
            if "compiler_options" not in str(error):
                raise
            return self.inside_jit(*args)
        except jax.errors.JaxRuntimeError as error:
            refused = re.search(r"No such compile option: '(\w+)'", str(error))
            if refused is None:
                raise
            _missing.add(refused[1])
            self.outermost = self._with_known_options()
            return self(*args)


_programs: WeakTable[_Program] = WeakTable()
