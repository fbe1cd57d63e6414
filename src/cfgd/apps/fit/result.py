"""The result of a fit, with everything that is reported about it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cfgd._core.version import __version__
from cfgd.apps.fit.conditioning import Conditioning
from cfgd.apps.fit.cross_validation import CrossValidation
from cfgd.apps.fit.leakage import Suspect
from cfgd.apps.fit.model import Model
from cfgd.apps.fit.options import FitOptions
from cfgd.apps.fit.quality import Quality
from cfgd.apps.fit.solver_run import SolverRun
from cfgd.apps.fit.table_statistics import TableStatistics
from cfgd.apps.fit.target import Target
from cfgd.status import Status


@dataclasses.dataclass(frozen=True)
class FitResult:
    """A fitted model with everything that is reported about it."""

    options: FitOptions
    model: Model
    target: Target
    standardised: np.ndarray  # coefficients of standardised columns, the intercept last
    standardised_errors: np.ndarray | None  # their standard errors
    dof: float  # of Student's t for intervals; infinite for the normal distribution
    error_kind: str  # classical, robust or clustered, in words
    no_errors: str  # why there are no standard errors, if there are none
    statistics: TableStatistics
    unknown_text_rows: int  # held-out rows with a text that no training row has
    streamed: bool
    passes: int  # over the file, after the first, which collects the statistics
    l2: float
    cross_validation: CrossValidation | None
    solution: SolverRun
    conditioning: Conditioning | None
    quality: Quality
    leaks: tuple[Suspect, ...]  # columns that alone explain the target
    seconds: float
    undefined_rows: int = 0  # held-out rows for which the formula has no value
    sentences: tuple[str, ...] = ()  # about what was detected in the file

    @property
    def separable(self) -> bool:
        """Whether the likelihood has no maximum: separated classes, or counts that are all 0."""
        return self.solution.status is Status.separated

    @property
    def success(self) -> bool:
        """Whether the solver converged to coefficients that exist."""
        return self.solution.success

    @property
    def measured_on(self) -> str:
        """The rows on which the quality is measured, in words."""
        rows = f"{self.quality.rows:,}"
        return f"{rows} held-out rows" if self.options.test else f"the {rows} training rows"


def model_facts(result: FitResult) -> dict[str, Any]:
    """Return how the model was fitted, for its file."""
    condition, statistics = result.conditioning, result.statistics
    return {
        "made by": f"cfgd {__version__}",
        "data": result.options.name.name,
        "rows fitted to": statistics.training_count,
        "rows held out": statistics.held_out_count,
        "rows left out": statistics.left_out_count,
        "seed": result.options.seed,
        **_weight_facts(result),
        "l2": result.l2,
        "method": result.options.method,
        "standard errors": result.error_kind,
        "status": result.solution.status.name,
        "condition number": None if condition is None else condition.standardised,
        "measured on": result.measured_on,
        "quality": result.quality.model,
        "baseline": result.quality.baseline,
        **_table_facts(result),
    }


def _table_facts(result: FitResult) -> dict[str, Any]:
    """Return the confusion matrix and the errors of cross-validation, where there are any."""
    found: dict[str, Any] = {}
    if result.quality.confusion is not None:
        found["confusion matrix"] = {
            "labels": [str(label) for label in result.target.labels],
            "rows of a label, columns of a prediction": result.quality.confusion.tolist(),
        }
    validation = result.cross_validation
    if validation is not None:
        found["cross-validation"] = {
            "l2": validation.l2.tolist(),
            "mean loss": validation.losses.tolist(),
            "standard error": validation.standard_errors.tolist(),
        }
    return found


def _weight_facts(result: FitResult) -> dict[str, Any]:
    """Return the facts about weights, offset and positive label, where there are any."""
    options, target = result.options, result.target
    facts: dict[str, Any] = {}
    if options.formula is not None:
        facts["formula"] = options.formula
    if options.weights is not None:
        facts["weights"] = options.weights
    if options.offset is not None:
        facts["offset"] = options.offset
    if target.class_weights is not None:
        given = zip(target.labels, target.class_weights.tolist(), strict=True)
        facts["class weights"] = {str(label): weight for label, weight in given}
    if target.loss == "logistic":
        facts["positive label"] = target.labels[1]
    return facts
