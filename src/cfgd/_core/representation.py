"""The repr of public objects: their call, with numbers in place of types and shapes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

# an array with more numbers is shown by its shape, a list or dict with more entries by its length
MOST_NUMBERS = 6
# characters of the repr of another object, about a line, above which its type is shown instead
LONGEST = 80
# Digits of a number in float64: two fewer than are exact, for gamma is computed from alpha and beta
DIGITS = 13


class ShowsCall:
    """Base class of objects that print as their call, such as `Lagged(lag=2)`.

    Arguments that are None, counts and words are left out where they equal their default.
    """

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text}" for name, text in self._shown_arguments())
        return f"{type(self).__name__}({shown})"

    def _argument(self, name: str) -> Any:
        """Return the argument of the constructor that made this object, where it is known."""
        return getattr(self, name)

    def _shown_arguments(self) -> Iterator[tuple[str, str]]:
        for name, parameter in inspect.signature(type(self)).parameters.items():
            try:
                value = self._argument(name)
            except Exception:
                continue  # it is not kept, or not known: of traced numbers, or during a sweep
            if getattr(value, "__self__", None) is self:
                continue  # an argument that is not kept, and a method of the same name
            if parameter.kind is parameter.VAR_KEYWORD:
                yield from ((key, text_of(each)) for key, each in value.items())
            elif not (is_count_or_word(parameter.default) and same(value, parameter.default)):
                yield name, text_of(value)


def is_count_or_word(default: object) -> bool:
    return default is None or isinstance(default, bool | int | str | tuple)


def same(value: Any, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)


def text_of(value: Any) -> str:
    """Return the text of an argument."""
    if isinstance(value, bool | int | str) or value is None:
        return repr(str(value)) if isinstance(value, str) else repr(value)
    if isinstance(value, Mapping | list | tuple) and type(value) in (dict, list, tuple):
        return _of_collection(value)
    if isinstance(value, ShowsCall):
        return repr(value)
    if isinstance(value, float | np.generic) or isinstance(getattr(value, "shape", None), tuple):
        return _of_array(value)
    if callable(value) and not inspect.isclass(value):
        name = getattr(value, "__name__", type(value).__name__)
        return name if name.startswith("<") else f"<function {name}>"
    text = repr(value)
    return text if len(text) <= LONGEST and "\n" not in text else f"<{type(value).__name__}>"


def _of_collection(value: Any) -> str:
    if len(value) > MOST_NUMBERS:
        return f"<{type(value).__name__} of {len(value)}>"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {text_of(each)}" for k, each in value.items()) + "}"
    inside = ", ".join(map(text_of, value))
    if isinstance(value, list):
        return f"[{inside}]"
    return f"({inside},)" if len(value) == 1 else f"({inside})"


def _of_array(value: Any) -> str:
    """Return the numbers of a small array; of others, and of traced ones, the shape."""
    shape = tuple(np.shape(value)) if isinstance(value, float) else tuple(value.shape)
    if all(isinstance(size, int) for size in shape) and int(np.prod(shape)) <= MOST_NUMBERS:
        try:
            array = np.asarray(value)
        except Exception:  # traced, on another process, or deleted
            array = None
        if array is not None and array.dtype.kind in "biuf" and array.shape == shape:
            return _of_numbers(array.tolist(), array.dtype)
    return f"<array of shape {shape}>"


def _of_numbers(numbers: Any, dtype: np.dtype[Any]) -> str:
    if isinstance(numbers, list):
        return "[" + ", ".join(_of_numbers(each, dtype) for each in numbers) + "]"
    if not isinstance(numbers, float):
        return repr(numbers)
    digits = min(DIGITS, np.finfo(dtype).precision)
    return repr(float(f"{numbers:.{digits}g}"))
