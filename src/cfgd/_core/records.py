"""Copies of frozen dataclasses."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeVar

T = TypeVar("T")


def changed(record: T, **changes: Any) -> T:
    """Return a copy of a dataclass without `__slots__` with some fields replaced.

    This is a fast `dataclasses.replace` for records with many fields that change in every
    iteration: fields are not read and assigned one by one, which takes as long as a small matrix
    product.
    """
    copied = object.__new__(type(record))
    copied.__dict__.update(record.__dict__)
    copied.__dict__.update(changes)
    return copied


def fields_of(record: Any, kind: type) -> dict[str, Any]:
    """Return those fields of a dataclass without `__slots__` that its base class `kind` has."""
    found = record.__dict__
    return {name: found[name] for name in _names(kind)}


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
