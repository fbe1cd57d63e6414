"""Arrays with names of their axes (xarray): read them, and give results the same names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core import checks


class Labels(NamedTuple):
    """Names and coordinates of the leading axes of Y."""

    dims: tuple[str, ...]
    coords: dict[Any, Any]

    def label(self, array: Any, last: tuple[str, list[str]] | None = None) -> Any:
        """Return an array as a DataArray; `last` names its last axis and the entries along it."""
        import xarray

        dims, coords = self.dims, self.coords
        if last is not None:
            dims, coords = (*dims, last[0]), coords | {last[0]: last[1]}
        return xarray.DataArray(array, coords, dims)


def is_labelled(array: Any) -> bool:
    """Return whether an object is a DataArray of xarray, without importing it."""
    return type(array).__module__.split(".")[0] == "xarray" and hasattr(array, "dims")


def read_labelled(owner: str, x: Any, Y: Any) -> tuple[Any, Any, Labels | None]:
    """Return x, Y with the points last, and the names of the other axes; None for plain arrays.

    The points lie along the dimension of x, which is a DataArray of one dimension or the name of a
    coordinate of Y; along the last dimension of Y where x is a plain array.
    """
    if not is_labelled(Y):
        if isinstance(x, str):
            checks.fail(owner, "x", "be numbers where Y is not a DataArray", repr(x))
        return x, Y, None
    points = Y.dims[-1]
    if isinstance(x, str):
        if x not in Y.coords:
            names = ", ".join(map(str, Y.coords))
            checks.fail(owner, "x", f"name a coordinate of Y: {names}", repr(x))
        x = Y.coords[x]
    if is_labelled(x):
        if x.ndim == 1 and x.dims[0] in Y.dims:
            points = x.dims[0]
        elif set(x.dims) == set(Y.dims):
            x = x.transpose(*Y.dims)
    Y = Y.transpose(*(name for name in Y.dims if name != points), points)
    if is_labelled(x) and x.ndim > 1:
        x = x.transpose(*Y.dims)
    coords = {name: each for name, each in Y.coords.items() if points not in each.dims}
    return (np.asarray(x) if is_labelled(x) else x), Y.data, Labels(Y.dims[:-1], coords)


def unlabelled(value: Any, labels: Labels | None) -> Any:
    """Return the numbers of a DataArray, with its axes in the order of Y; others as they are."""
    if labels is None or not is_labelled(value):
        return value
    others = [name for name in value.dims if name not in labels.dims]
    leading = [name for name in labels.dims if name in value.dims]
    return value.transpose(*leading, *others).data
