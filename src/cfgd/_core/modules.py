"""Equinox modules whose methods are bound as those of any Python object."""

from __future__ import annotations

import equinox as eqx


class FastModule(eqx.Module):
    """An equinox module for values that are read in every iteration.

    Equinox makes a pytree of a bound method whenever one is read, which takes longer than a small
    matrix product. Here a bound method is Python's own, and cannot be passed to `filter_jit`.
    """

    __getattribute__ = object.__getattribute__
