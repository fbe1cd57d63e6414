"""Tables whose keys are functions, or pytrees that hold functions, without keeping them alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from cfgd._core.arrays import is_array

V = TypeVar("V")
# The entry of a key for a leaf: a function that returns the leaf. None for an array.
Reference = Callable[[], Any] | None


class WeakTable(Generic[V]):
    """A table in which the functions of a key are weakly referenced.

    An entry is dropped when one of them is freed, so that a lambda that captures data can be freed,
    and what was computed for it with it.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[tuple[Reference, ...], Any], V] = {}
        # Empty it before Python frees the functions of modules at the end of the process: then the
        # modules that `_forget` needs may be gone.
        weakref.finalize(self, self._values.clear)

    def references(self, leaves: Iterable[Any]) -> tuple[Reference, ...]:
        """Return the first part of a key: weak references to functions, other leaves as they are.

        Arrays count as equal: what depends on their shapes belongs into the second part.
        """
        return tuple(None if is_array(leaf) else self._reference(leaf) for leaf in leaves)

    def get(self, references: tuple[Reference, ...], rest: Any) -> V | None:
        return self._values.get((references, rest))

    def setdefault(self, references: tuple[Reference, ...], rest: Any, value: V) -> V:
        return self._values.setdefault((references, rest), value)

    def of(self, fn: object, make: Callable[[], V]) -> V:
        """Return the value for a function, or for a module with functions and arrays.

        A new value is made for each call if it cannot be stored: for leaves that are not hashable,
        bound methods (a new object at each access), and values that JAX traces.
        """
        leaves, treedef = jax.tree.flatten(fn)
        if any(isinstance(leaf, MethodType | jax.core.Tracer) for leaf in leaves):
            return make()
        shapes = tuple((np.shape(leaf), leaf.dtype) for leaf in leaves if is_array(leaf))
        try:
            references = self.references(leaves)
            found = self.get(references, (treedef, shapes))
        except TypeError:  # not hashable
            return make()
        return self.setdefault(references, (treedef, shapes), make()) if found is None else found

    def _reference(self, leaf: object) -> Callable[[], Any]:
        # a bound method is a new object at each access, which nothing else keeps alive
        if not callable(leaf) or isinstance(leaf, MethodType | type):
            return _Strong(leaf)
        try:
            return weakref.ref(leaf, self._forget)
        except TypeError:
            return _Strong(leaf)

    def _forget(self, gone: object) -> None:
        # a copy of the keys: other threads add entries, and freeing an entry may call this again
        for key in list(self._values):
            if any(leaf is gone for leaf in key[0]):
                self._values.pop(key, None)


class _Strong:
    """A strong reference to a leaf that is no function, called like a weak reference."""

    def __init__(self, leaf: object) -> None:
        self.leaf = leaf

    def __call__(self) -> Any:
        return self.leaf

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and True are different programs; no name of the module is needed, which may be gone
        # when functions are freed at the end of the process
        if type(other) is not type(self):
            return False
        return type(self.leaf) is type(other.leaf) and bool(self.leaf == other.leaf)

    def __hash__(self) -> int:
        return hash(self.leaf)
