"""How the free numbers of a fit become all its parameters by name."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.interruptible import interruptible_trace
from cfgd.objectives.parameters import Expression, Parameter, Parameters


@dataclasses.dataclass(frozen=True)
class Layout:
    """The names, shapes and kinds of all parameters, and the order in which ties are computed.

    Hashable and static under `jit`: fits that differ only in numbers share one compiled program.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]
    ties: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many numbers are free."""
        return sum(math.prod(shape) for _, shape in self._free())

    @property
    def free(self) -> list[str]:
        """The name of each free number: "w[0]" and so on for a parameter that is an array."""
        return [each for name, shape in self._free() for each in numbers_of(name, shape)]

    @property
    def owners(self) -> list[str]:
        """The parameter to which each free number belongs."""
        return [name for name, shape in self._free() for _ in range(math.prod(shape))]

    def _free(self) -> list[tuple[str, tuple[int, ...]]]:
        rows = zip(self.names, self.shapes, self.kinds, strict=True)
        return [(name, shape) for name, shape, kind in rows if kind == "free"]

    def complete(
        self, z: Any, fixed: Mapping[str, Any], expressions: Mapping[str, Expression]
    ) -> dict[str, Any]:
        """Return all parameters by name; entries of z after the free numbers are ignored."""
        found, start = dict(fixed), 0
        for name, shape in self._free():
            end = start + math.prod(shape)
            found[name], start = z[start:end].reshape(shape), end
        return self.tie(found, expressions)

    def tie(
        self, known: Mapping[str, Any], expressions: Mapping[str, Expression]
    ) -> dict[str, Any]:
        """Return all parameters by name, from those that are not tied."""
        found = dict(known)
        for name in self.ties:
            found[name] = jnp.asarray(expressions[name](dict(found)))
        return {name: found[name] for name in self.names}

    def ravel(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the free ones of the parameters as one vector."""
        return np.concatenate([np.zeros(0)] + [np.ravel(values[name]) for name, _ in self._free()])


def numbers_of(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the names of the numbers in a parameter: its own for a single number."""
    return [f"{name}[{i}]" for i in range(math.prod(shape))] if shape else [name]


class _UnknownError(Exception):
    """Raised if a tied parameter needs one that is not known yet."""


class _Known(dict[str, Any]):
    """The parameters that are known so far; the names that are looked up are added to `asked`."""

    def __init__(self, named: dict[str, Any], asked: set[str]) -> None:
        super().__init__(named)
        self.asked = asked

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise _UnknownError(name)
        self.asked.add(name)
        return super().__getitem__(name)


def layout_of(owner: str, parameters: Parameters) -> tuple[Layout, set[str]]:
    """Return the layout of parameters with values, and the names that ties are computed from.

    The parameters that a tie needs are found by calling its function. Circular ties are refused.
    """
    known = {name: _placeholder(each) for name, each in parameters.items() if each.kind != "tied"}
    asked: set[str] = set()
    waiting = [name for name, each in parameters.items() if each.kind == "tied"]
    ties: list[str] = []
    while waiting:
        needs: dict[str, str] = {}
        for name in waiting:
            expression = parameters[name].expression
            assert expression is not None
            try:
                with checks.traceable(owner, f"tied[{name!r}]"):
                    out = jax.eval_shape(partial(_call, expression, asked), known)
            except _UnknownError as missing:
                needs[name] = missing.args[0]
                continue
            if not hasattr(out, "shape"):
                wanted = "return a number or an array"
                checks.fail(owner, f"tied[{name!r}]", wanted, f"a {type(out).__name__}")
            known[name] = np.ones(out.shape, out.dtype)
            ties.append(name)
            break
        else:
            _refuse(owner, parameters, needs)
        waiting.remove(ties[-1])
    layout = Layout(
        names=tuple(parameters),
        shapes=tuple(tuple(known[name].shape) for name in parameters),
        kinds=tuple(each.kind for each in parameters.values()),
        ties=tuple(ties),
    )
    return layout, asked


def _call(expression: Expression, asked: set[str], known: dict[str, Any]) -> Any:
    return interruptible_trace(expression, _Known(known, asked))


def _placeholder(parameter: Parameter) -> Any:
    """Return an array of the shape of a parameter, which is a number while its start is unknown."""
    lower, upper = parameter.bounds
    shape = np.broadcast_shapes(np.shape(parameter.value), lower.shape, upper.shape)
    return np.ones(shape) if parameter.value is None else np.asarray(parameter.value)


def _refuse(owner: str, parameters: Parameters, needs: dict[str, str]) -> None:
    for name, missing in needs.items():
        if missing not in parameters:
            wanted = f"be a function of the parameters {', '.join(parameters)}"
            checks.fail(owner, f"tied[{name!r}]", wanted, f"one of {missing!r}")
    circle = ", ".join(f"{name} needs {missing}" for name, missing in needs.items())
    checks.fail(owner, "tied", "not refer to each other in a circle", circle)
