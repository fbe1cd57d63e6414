"""`--rule my_rule.py:MyRule`: import an update rule from a file of the user."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from cfgd.apps.bench.fractional import engine
from cfgd.apps.bench.fractional.competitors import BASELINES, LBFGS, RULES, Competitor, own
from cfgd.apps.bench.fractional.problems import FractionalProblem, quadratic
from cfgd.zoo.update_rule import UpdateRule

Made = TypeVar("Made")

MODULE = "cfgd_own_rule"  # the name under which the file is imported
# Two iterations show whether `update` accepts the state that it has returned.
TRIAL = FractionalProblem(
    "trial", "quadratics", "", lambda seed: quadratic(10.0, True, seed, d=3), gradients=2
)


def read_rule(text: str) -> Competitor:
    """Return the competitor named by `FILE.py:Class`; importing the file executes its code.

    Raises
    ------
    ValueError
        If the file, the class, its grid or its `update` cannot be used.
    """
    path, _, name = text.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise ValueError(f"--rule must be FILE.py:Class, such as my_rule.py:MyRule, got {text!r}.")
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"--rule: there is no file {path}.")
    kind = getattr(_tried(file, "the file", lambda: _imported(file)), name, None)
    if not isinstance(kind, type) or not issubclass(kind, UpdateRule):
        raise ValueError(f"--rule: {path} must define {name}, a subclass of cfgd.zoo.UpdateRule.")
    if name in {LBFGS, *(one.name for one in (*RULES, *BASELINES))}:
        raise ValueError(f"--rule: the comparison has a rule of the name {name}; rename the class.")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    competitor = _tried(file, f"{name}.grid", lambda: own(kind, digest))
    _tried(file, name, lambda: _try_out(competitor))
    return competitor


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, file)
    assert spec is not None  # the name ends with .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # dataclasses look up annotations there
    spec.loader.exec_module(module)
    return module


def _try_out(competitor: Competitor) -> None:
    """Construct the rule for each setting, and run two iterations with the first setting."""
    instance = TRIAL.make(0)
    scale = engine.scale_of(TRIAL, instance)
    with engine.precision(TRIAL):
        rules = [competitor.make(scale, *setting) for setting in competitor.settings]
    engine.run(TRIAL, [instance], rules[:1], [0])


def _tried(file: Path, what: str, make: Callable[[], Made]) -> Made:
    """Return `make()`; an error becomes a ValueError that names the line of the user's file."""
    try:
        return make()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(file)]
        where = f", line {lines[-1]}" if lines else ""
        reason = (str(error).strip().splitlines() or [""])[0]
        raise ValueError(
            f"--rule: {what} cannot be used ({file}{where}): {type(error).__name__}: {reason}"
        ) from error
