"""The checkpoint of many fits: a file with the table of those that have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.compiled import bind
from cfgd._core.files import NotWrittenError
from cfgd._core.version import __version__
from cfgd.fitting.many.inputs import Inputs
from cfgd.fitting.many.program import Goal, fixed_of, x_of
from cfgd.fitting.many.regions import Region
from cfgd.fitting.model import WeightedResiduals
from cfgd.solve import clock
from cfgd.solve.checkpoint import SHARE, check_identity, digest, load_newest
from cfgd.solve.checkpoint_file import DamagedError, read, write

FORMAT = "cfgd fits 1"


class TableFile:
    """A file that holds the table, and when to write it.

    Parameters
    ----------
    every
        Seconds between two writes at least; a file that takes long is written less often.
    """

    def __init__(self, owner: str, path: Path, every: float, inputs: Inputs, goal: Goal) -> None:
        self.owner, self.path, self.every = owner, path, every
        self.written, self.cost = clock.now(), 0.0
        self.identity = _identity(inputs, goal)

    def read_into(self, table: np.ndarray) -> None:
        """Fill the table with what was saved of these fits, if anything was."""

        def load(path: Path) -> np.ndarray:
            meta, arrays = read(path)
            check_identity(self.owner, path, meta, FORMAT, self.identity)
            if [(a.shape, a.dtype) for a in arrays] != [(table.shape, table.dtype)]:
                raise DamagedError("its table has another shape")
            return arrays[0]

        saved = load_newest(self.owner, self.path, load)
        if saved is not None:
            table[:] = saved

    def write_if_due(self, table: np.ndarray) -> None:
        if clock.now() - self.written >= max(self.every, SHARE * self.cost):
            self.write(table)

    def write(self, table: np.ndarray) -> None:
        began = clock.now()
        try:
            write(self.path, {"format": FORMAT, "of": self.identity}, [table.copy()])
        except NotWrittenError as error:  # losing the checkpoint must not lose the fits
            checks.warn(f"The checkpoint {error}")
        self.written = clock.now()
        self.cost = self.written - began


def _identity(inputs: Inputs, goal: Goal) -> dict[str, str]:
    """Return what must be the same for the fits to go on.

    The model is known by its values at the first start, the data by those of the first and the last
    fit: all of it may take longer to read than to fit.
    """
    ends = [_first_region(inputs), _last_region(inputs)]
    rows = [inputs.read(region) for region in ends]
    with in_precision(inputs.dtype):
        data, starts = rows[0]
        values = bind(_residuals_at, inputs.residuals, inputs.x_treedef)(
            starts[0], inputs.shared | {name: each[0] for name, each in data.items()}
        )
    leaves = [leaf for data, starts in rows for leaf in (*data.values(), starts)]
    shared = [inputs.shared[name] for name in sorted(inputs.shared)]
    return {
        "version": __version__,
        "shape": str((*inputs.shape, inputs.n_points)),
        "precision": inputs.dtype.name,
        "parameters": str([(n, p.kind) for n, p in inputs.given.parameters.items()]),
        "arguments": digest(*shared, words=str((sorted(inputs.shared), inputs.absolute_sigma))),
        "first and last fit": digest(*leaves),
        "model": digest(np.asarray(values)),
        "tolerance and iterations": str((float(goal.tolerance), int(goal.max_iterations))),
    }


def _first_region(inputs: Inputs) -> Region:
    outer = (0,) * (len(inputs.shape) - 1)
    return Region(0, 1, (*outer, slice(0, 1)))


def _last_region(inputs: Inputs) -> Region:
    outer, last = tuple(n - 1 for n in inputs.shape[:-1]), inputs.shape[-1]
    return Region(inputs.n_fits - 1, inputs.n_fits, (*outer, slice(last - 1, last)))


def _residuals_at(residuals: WeightedResiduals, x_treedef: Any, z: Any, data: Any) -> Any:
    fixed = fixed_of(residuals.layout.names, data)
    return residuals.predict(residuals.complete(z, fixed), x_of(x_treedef, data))
