"""Every optimizer on every problem, each kept as soon as it has run; then the report."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax

from cfgd._core.files import NotWrittenError, check_writable, json_safe, write
from cfgd.apps.bench.field.part import machine
from cfgd.apps.bench.training.optimizers import Optimizer
from cfgd.apps.bench.training.part import Part, file_of, key_of, name_of, saved_parts
from cfgd.apps.bench.training.problem import Problem
from cfgd.apps.bench.training.report import COUNTED, markdown
from cfgd.apps.bench.training.table import Standing, standings
from cfgd.apps.bench.training.training import Curves, Trainer
from cfgd.apps.bench.training.verdicts import pairs, verdicts

FILES = ("training.json", "training.md")


class Plan(NamedTuple):
    problems: Sequence[Problem]
    optimizers: Sequence[Optimizer]
    rates: tuple[float, ...]
    seeds: int
    quick: bool

    @property
    def runs(self) -> int:
        return len(self.problems) * len(self.optimizers)


class Report(NamedTuple):
    standings: list[Standing]
    interrupted: bool
    unwritten: NotWrittenError | None = None


def check_files(out: Path, plan: Plan) -> None:
    """Find out before the run what is in the way of the report."""
    parts = [file_of(name_of(p, o)) for p in plan.problems for o in plan.optimizers]
    check_writable(out, [*FILES, *parts])


def run(
    out: Path,
    plan: Plan,
    *,
    resume: bool = False,
    say: Callable[[str], None] = lambda what: None,
    finished: Callable[[str, bool], None] = lambda what, reused: None,
    warn: Callable[[str], None] = lambda said: None,
) -> Report:
    """Train all and write `FILES` to `out`; Ctrl-C or a full disk keeps what is finished."""
    saved = saved_parts(out, warn) if resume else {}
    curves: list[Curves] = []
    interrupted, unwritten = False, None
    try:
        try:
            for problem in plan.problems:
                trainer, parts = Trainer(problem, plan.seeds), []
                key = key_of(problem, plan.seeds, plan.rates)
                for optimizer in plan.optimizers:
                    name, what = name_of(problem, optimizer), f"{problem.name}: {optimizer.name}"
                    part = saved.get(name)
                    reused = part is not None and part.key == key
                    if part is None or not reused:
                        say(what)
                        part = Part(name, key, trainer.curves(optimizer, plan.rates))
                        curves.append(part.curves)  # even if they cannot be written
                        part.save(out)
                    else:
                        curves.append(part.curves)
                    parts.append(part)
                    finished(what, reused)
                if not all(part.curves.timed for part in parts):
                    say(f"{problem.name}: the time of a step")
                    curves[-len(parts) :] = _timed(out, trainer, parts)
        except KeyboardInterrupt:
            interrupted = True
        _write(out, plan, standings(curves))
    except NotWrittenError as error:
        unwritten = error
    return Report(standings(curves), interrupted, unwritten)


def _timed(out: Path, trainer: Trainer, parts: list[Part]) -> list[Curves]:
    """All of a problem once more, in turns, and kept with what they take."""
    seconds = trainer.seconds([part.curves.optimizer for part in parts])
    curves = [
        dataclasses.replace(part.curves, seconds=each, timed=True)
        for part, each in zip(parts, seconds, strict=True)
    ]
    for part, one in zip(parts, curves, strict=True):
        dataclasses.replace(part, curves=one).save(out)
    return curves


def _write(out: Path, plan: Plan, found: list[Standing]) -> None:
    data = {
        "machine": {"processor": machine(), "jax": jax.__version__},
        "size": "quick" if plan.quick else "full",
        "seeds": plan.seeds,
        "rates": plan.rates,
        "counted": COUNTED,
        "problems": [
            {"name": one.name, "what": one.what, "steps": one.steps, "batch": one.batch}
            for one in plan.problems
        ],
        "verdicts": verdicts(found),
        "pairs": [dataclasses.asdict(one) | {"mean": one.mean} for one in pairs(found)],
        "table": [
            dataclasses.asdict(one) | {"optimizer": one.optimizer.name, "cost": one.optimizer.cost}
            for one in found
        ],
    }
    write(out / FILES[0], json.dumps(json_safe(data, not_finite=lambda _: None), indent=1) + "\n")
    write(out / FILES[1], markdown(plan.problems, found, plan.seeds))
