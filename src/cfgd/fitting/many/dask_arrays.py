"""Many fits of a Dask array: one task for each of its blocks, and a Dask array as the result."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd.fitting.many.inputs import Inputs
from cfgd.fitting.many.program import Goal
from cfgd.fitting.many.regions import regions
from cfgd.fitting.many.run import ManyRun, block_size, empty_table
from cfgd.solve.interrupt import Interrupt


def is_dask(array: Any) -> bool:
    """Return whether an object is an array of Dask, without importing it."""
    return type(array).__module__.split(".")[0] == "dask" and hasattr(array, "map_blocks")


def dask_table(owner: str, inputs: Inputs, goal: Goal) -> Any:
    """Return the table of all fits as a Dask array with the leading axes of Y."""
    import dask.array as da

    Y = inputs.Y
    if len(Y.chunks[-1]) > 1:
        wanted = "have all points of a fit in one chunk: Y.rechunk({-1: -1})"
        checks.fail(owner, "Y", wanted, f"{len(Y.chunks[-1])} chunks along its last axis")
    leading = Y.chunks[:-1]

    def aligned(array: Any) -> Any:
        """Return an array of the leading shape and one more axis in the chunks of Y."""
        return da.asarray(array).rechunk((*leading, -1))

    mask_of_one = inputs.mask is not None and np.ndim(inputs.mask) == 1
    own = {f"per_fit {name}": array for name, array in inputs.per_fit.items()}
    own |= {f"p0 {name}": array[..., None] for name, array in inputs.p0_per_fit.items()}
    if inputs.mask is not None and not mask_of_one:
        own["mask"] = inputs.mask
    common = dataclasses.replace(
        inputs, Y=None, per_fit={}, p0_per_fit={}, mask=inputs.mask if mask_of_one else None
    )
    width = inputs.form.width
    return da.map_blocks(
        _fit_block,
        Y,
        *(aligned(array) for array in own.values()),
        names=list(own),
        inputs=common,
        goal=goal,
        dtype=inputs.dtype,
        chunks=(*leading, (width,)),
        meta=np.empty((0,) * Y.ndim, inputs.dtype),
    )


def _fit_block(
    y: np.ndarray, *own: np.ndarray, names: list[str], inputs: Inputs, goal: Goal
) -> np.ndarray:
    """Return the table of the fits of one block, with its leading axes."""
    arrays = dict(zip(names, own, strict=True))

    def of(kind: str) -> dict[str, np.ndarray]:
        return {
            name.removeprefix(f"{kind} "): array
            for name, array in arrays.items()
            if name.startswith(f"{kind} ")
        }

    block = dataclasses.replace(
        inputs,
        Y=y,
        shape=y.shape[:-1],
        per_fit=of("per_fit"),
        p0_per_fit={name: array[..., 0] for name, array in of("p0").items()},
        mask=arrays.get("mask", inputs.mask),
    )
    table = empty_table(block)
    # one thread: Dask has its own
    size = block_size(block, 1)
    todo = list(regions(block.shape, size))
    ManyRun(block, goal, table, size, 1)(todo, lambda: None, Interrupt())
    return table.reshape(*block.shape, -1)
