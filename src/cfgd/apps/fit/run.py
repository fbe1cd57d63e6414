"""A fit from the file to everything that is shown of it."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cfgd import distributed
from cfgd._core.process_group import ProcessGroup
from cfgd._core.version import __version__
from cfgd.apps.fit.columns import labels
from cfgd.apps.fit.conditioning import SINGULAR, Conditioning, conditioning, correlation
from cfgd.apps.fit.fitting import METHODS, Setting, fitted, is_certain, start
from cfgd.apps.fit.model import Model
from cfgd.apps.fit.opening import open_table
from cfgd.apps.fit.quality import Quality, quality
from cfgd.apps.fit.rows import Rows, Streamed, held, rows_of_block
from cfgd.apps.fit.split import FOLDS, Split, test, train
from cfgd.apps.fit.survey import MISSING, Survey
from cfgd.apps.fit.target import NAMES, OF_LABELS, Target, target_of
from cfgd.apps.fit.uncertainty import as_they_are, covariance
from cfgd.apps.fit.validation import Validated, validated
from cfgd.solve import Solution

SHARE = 1 / 4  # of the memory that is free: a fit makes two copies of some of it
UNKNOWN = 1e9  # bytes that are free, where the system does not say


@dataclasses.dataclass(frozen=True)
class Asked:
    """What the command was asked for."""

    data: Path
    target: str
    loss: str | None = None
    l2: float | None = None
    cross_validate: bool = False
    method: str = "auto"
    missing: str = "refuse"
    drop: tuple[str, ...] = ()
    test: float = 0.2
    seed: int = 0
    memory: float | None = None  # bytes
    checkpoint: Path | None = None  # of the fit itself, after any cross-validation


@dataclasses.dataclass(frozen=True)
class Fitted:
    asked: Asked
    model: Model
    target: Target
    standardised: np.ndarray  # coefficients of standardised columns, the intercept last
    spread: np.ndarray | None  # their standard errors
    survey: Survey
    unseen: int
    streamed: bool
    passes: int  # over the file, after the one that says what is in it
    l2: float
    validated: Validated | None
    solution: Solution
    conditioning: Conditioning | None
    quality: Quality
    seconds: float

    @property
    def separated(self) -> bool:
        """Whether the likelihood has no maximum, since the labels can be told apart."""
        return self.target.loss in OF_LABELS and is_certain(self.solution)

    @property
    def good(self) -> bool:
        return bool(self.solution.success) and not self.separated

    @property
    def measured_on(self) -> str:
        rows = f"{self.quality.rows:,} rows"
        return f"{rows} that were held out" if self.asked.test else f"the {rows} fitted to"


class Meter:
    """Told what is being done, and how far it is; this one tells nobody."""

    def stage(self, name: str, rows: int | None = None) -> None:
        """What comes next: a pass over so many rows, or something of which `at` tells more."""

    def advance(self, rows: int) -> None:
        """So many more rows of a pass were read."""

    def at(self, far: float, words: str) -> None:
        """How far it is, from 0 to 1."""


def free_memory() -> float:
    """Bytes, as far as the system says."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return UNKNOWN


def fit(asked: Asked, meter: Meter, ready: Callable[[], None] = lambda: None) -> Fitted:
    """Read, check, encode, fit and measure; a `ValueError` is one sentence.

    `ready` is called when the data are known to be good, before the work. Of several processes
    each reads the file, and fits to its share of the rows.
    """
    began = time.perf_counter()
    _check(asked)
    me = distributed.start()
    memory = SHARE * free_memory() / me.count if asked.memory is None else asked.memory
    if me.count > 1:  # else they would not read the same blocks
        memory = float(ProcessGroup(jax.devices()).gather([memory]).min())
    meter.stage("reading")
    table = open_table(asked.data)
    survey = Survey(table, asked.target, list(asked.drop), asked.missing)
    split = Split(asked.test, asked.seed)
    survey.run(split, rows_of_block(memory, len(survey.names)), meter.advance)
    target = target_of(survey, asked.loss)
    columns, scaling = survey.columns(), survey.scaling()
    width = len(scaling.mean)
    streamed = 8 * width * (survey.train + survey.test) > memory
    if streamed and me.count > 1:
        raise ValueError(
            f"--processes: {asked.data} does not fit into --memory {memory / 1e6:.0f}, and several "
            "processes take rows from memory alone: give more, or read the file with one process."
        )
    _check_rows(asked, survey, target, width, streamed)
    size = rows_of_block(memory, width * target.classes)
    stream = Streamed(
        table, columns, scaling, target, split, asked.missing, size, survey.train, meter.advance
    )
    rows: Rows = stream
    if not streamed:
        meter.stage("encoding", survey.rows)
        rows = held(stream, survey)
    meter.stage("correlations", survey.rows)
    matrix = correlation(rows)
    condition = None if matrix is None else conditioning(matrix, scaling)
    if condition is not None:
        _check_columns(asked, condition, labels(columns))
    ready()
    l2, found = asked.l2 or 0.0, None
    if asked.cross_validate:
        meter.stage("cross-validation")
        found = validated(rows, matrix, meter.at)
        l2 = found.best
    meter.stage("fitting")
    setting = Setting(l2, asked.method, meter.at, bool(target.labels), checkpoint=asked.checkpoint)
    w, solution = fitted(rows, train, setting, start(rows), matrix)
    meter.stage("standard errors", survey.rows)
    C = covariance(rows, w, l2)
    meter.stage("quality", survey.rows)
    measured = quality(rows, test if asked.test else train, w)
    raw, errors = as_they_are(w, C, scaling, target.centre, target.scale)
    spread = None if C is None else np.sqrt(np.diagonal(C)).reshape(w.shape)
    model = Model(
        target.name,
        target.loss,
        target.labels,
        asked.missing,
        tuple(columns),
        raw,
        errors,
        {},
    )
    done = Fitted(
        asked,
        model,
        target,
        w,
        spread,
        survey,
        stream.unseen,
        streamed,
        stream.passes,
        l2,
        found,
        solution,
        condition,
        measured,
        time.perf_counter() - began,
    )
    return dataclasses.replace(done, model=dataclasses.replace(model, facts=facts(done)))


def facts(done: Fitted) -> dict[str, Any]:
    """How the model was found, for its file."""
    condition = done.conditioning
    return {
        "made by": f"cfgd {__version__}",
        "data": done.asked.data.name,
        "rows fitted to": done.survey.train,
        "rows held out": done.survey.test,
        "rows left out": done.survey.dropped,
        "seed": done.asked.seed,
        "l2": done.l2,
        "method": done.asked.method,
        "status": "separated" if done.separated else done.solution.status.name,
        "condition number": None if condition is None else condition.standardised,
        "measured on": done.measured_on,
        "quality": done.quality.model,
        "baseline": done.quality.baseline,
    }


def _check(asked: Asked) -> None:
    if asked.l2 is not None and asked.cross_validate:
        raise ValueError("--l2 and --cross-validate: give one of them, not both.")
    if asked.l2 is not None and not 0 <= asked.l2 < np.inf:
        raise ValueError(f"--l2 must be a number of at least 0, got {asked.l2:g}.")
    if not 0 <= asked.test <= 0.9:
        raise ValueError(f"--test must be a share from 0 to 0.9, got {asked.test:g}.")
    if asked.memory is not None and not 0 < asked.memory < np.inf:
        raise ValueError(f"--memory must be positive, got {asked.memory / 1e6:g}.")
    if asked.checkpoint is not None and not asked.checkpoint.parent.is_dir():
        raise ValueError(f"--checkpoint must be in a folder that is there, got {asked.checkpoint}.")
    for option, value, known in (
        ("--method", asked.method, tuple(METHODS)),
        ("--loss", asked.loss, (None, *NAMES)),
        ("--missing", asked.missing, MISSING),
    ):
        if value not in known:
            names = ", ".join(filter(None, known))
            raise ValueError(f"{option} must be one of {names}, got {value!r}.")


def _check_columns(asked: Asked, condition: Conditioning, names: list[str]) -> None:
    if condition.words == SINGULAR and not asked.l2 and not asked.cross_validate:
        raise ValueError(
            f"{asked.data}: the column {names[condition.worst]!r} follows from others, so that "
            "their coefficients are not determined: leave one out with --drop, or give a penalty "
            "with --l2 or --cross-validate."
        )


def _check_rows(asked: Asked, survey: Survey, target: Target, width: int, streamed: bool) -> None:
    if streamed and asked.method == "adaptive_terminal":
        raise ValueError(
            "--method adaptive_terminal needs the slopes along every column, and the rows do not "
            "fit into --memory: --method auto takes a pass over the file for each gradient."
        )
    coefficients = width + 1
    if survey.train <= coefficients and not asked.l2 and not asked.cross_validate:
        raise ValueError(
            f"{survey.table.path}: {survey.train} rows to fit to do not determine {coefficients} "
            "coefficients: give a penalty with --l2 or --cross-validate."
        )
    if asked.cross_validate and target.labels and survey.labels is not None:
        for label in target.labels:
            folds = survey.labels[label][1:]
            if (folds.sum() - folds).min() == 0 or len(folds) != FOLDS:
                raise ValueError(
                    f"--cross-validate: the target {target.name!r} is {label!r} in too few rows "
                    f"({folds.sum()}) to be in all folds: give a penalty with --l2."
                )
