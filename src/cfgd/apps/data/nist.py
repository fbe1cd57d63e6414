"""NIST's Statistical Reference Datasets: 27 nonlinear regressions with certified parameters.

Facts of a public agency (https://www.itl.nist.gov/div898/strd/), in `nist.json` beside this file.
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
WORDS = {name: getattr(jnp, name) for name in ("exp", "sin", "cos", "arctan", "sqrt", "pi")}
MOST_DIGITS = 11.0  # that NIST certifies


@dataclasses.dataclass(frozen=True, eq=False)  # hashable: JAX compiles by identity
class Regression:
    """y = formula(b1, b2, ...) of some x; `starts` are NIST's two, far and near."""

    name: str
    formula: str
    data: dict[str, Any]
    y: Any
    starts: tuple[Any, Any]
    certified: Any
    deviations: Any  # standard, of the parameters
    sum_of_squares: float

    def residuals(self, b: Any) -> Any:
        words = {f"b{i + 1}": b[i] for i in range(len(self.certified))}
        return eval(self._code, {"__builtins__": {}}, WORDS | self.data | words) - self.y

    @functools.cached_property
    def _code(self) -> Any:
        return compile(self.formula, self.name, "eval")

    def digits(self, b: Any) -> float:
        """How many digits of all parameters are right: those of the worst one, 0 to 11."""
        wrong = float(np.max(np.abs((np.asarray(b) - self.certified) / self.certified)))
        return float(np.clip(-np.log10(max(wrong, 1e-16)), 0, MOST_DIGITS)) if wrong < 1 else 0.0


@functools.cache
def regressions() -> dict[str, Regression]:
    """All 27, by name."""
    return {name: _regression(name, one) for name, one in json.loads(FILE.read_text()).items()}


def _regression(name: str, one: dict[str, Any]) -> Regression:
    y = np.array(one["y"])
    return Regression(
        name,
        one["formula"],
        {key: np.array(one[key]) for key in ("x", "x1", "x2") if key in one},
        np.log(y) if one.get("log_y") else y,
        (np.array(one["start1"]), np.array(one["start2"])),
        np.array(one["certified"]),
        np.array(one["standard_deviation"]),
        one["residual_sum_of_squares"],
    )
