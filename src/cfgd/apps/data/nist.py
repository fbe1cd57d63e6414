"""NIST's Statistical Reference Datasets: 27 nonlinear regressions with certified parameters.

The data are public (https://www.itl.nist.gov/div898/strd/); `nist.json` in this folder has a copy.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

FILE = Path(__file__).with_suffix(".json")
FUNCTIONS = {name: getattr(jnp, name) for name in ("exp", "sin", "cos", "arctan", "sqrt", "pi")}
MAX_DIGITS = 11.0  # the number of digits that NIST certifies


@dataclasses.dataclass(frozen=True, eq=False)  # hashable: JAX compiles by identity
class Regression:
    """The regression y = formula(b1, b2, ...) of x; `starts` are those of NIST, far and near."""

    name: str
    formula: str
    data: dict[str, Any]
    y: Any
    starts: tuple[Any, Any]
    certified: Any
    deviations: Any  # standard deviations of the parameters
    sum_of_squares: float

    def residuals(self, b: Any) -> Any:
        """Return formula(b) - y."""
        parameters = {f"b{i + 1}": b[i] for i in range(len(self.certified))}
        # The formula is from nist.json, not from a user. It needs the builtins, since NumPy imports
        # modules while it computes, with the `__import__` of the calling frame.
        return eval(self._code, {}, FUNCTIONS | self.data | parameters) - self.y

    @functools.cached_property
    def _code(self) -> Any:
        return compile(self.formula, self.name, "eval")

    def digits(self, b: Any) -> float:
        """Return the number of correct digits of the least accurate parameter, from 0 to 11."""
        error = float(np.max(np.abs((np.asarray(b) - self.certified) / self.certified)))
        return float(np.clip(-np.log10(max(error, 1e-16)), 0, MAX_DIGITS)) if error < 1 else 0.0


@functools.cache
def regressions() -> dict[str, Regression]:
    """Return all 27 regressions by name."""
    return {name: _regression(name, entry) for name, entry in json.loads(FILE.read_text()).items()}


def _regression(name: str, entry: dict[str, Any]) -> Regression:
    y = np.array(entry["y"])
    return Regression(
        name,
        entry["formula"],
        {key: np.array(entry[key]) for key in ("x", "x1", "x2") if key in entry},
        np.log(y) if entry.get("log_y") else y,
        (np.array(entry["start1"]), np.array(entry["start2"])),
        np.array(entry["certified"]),
        np.array(entry["standard_deviation"]),
        entry["residual_sum_of_squares"],
    )
