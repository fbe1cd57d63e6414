"""A run: all seeds at once, all steps in one compiled loop, parameters kept at thirty places.

The learning rate and gamma are traced numbers: a program is compiled once for a problem, a kind of
optimizer and a lag. Losses are found afterwards from the parameters that were kept, by one program
for all, so that the time of a step is that of a step.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cfgd.apps.bench.training.optimizers import MAKERS, Optimizer
from cfgd.apps.bench.training.problem import Problem

ROUNDS = 7
CALM = 1e-3  # a learning rate at which nothing diverges
PLACES = 30  # the cost of ours, 1.2, and of AdaHessian, 3, divide it: 25 and 10 places


@dataclasses.dataclass(frozen=True)
class Curves:
    """Of one optimizer on one problem: [rate][seed][place]; what is not finite is infinite."""

    problem: str
    optimizer: Optimizer
    rates: tuple[float, ...]
    losses: Any
    errors: Any
    seconds: float  # of a step, all seeds together
    timed: bool = False  # in turn with the others, and not just by the way


class Trainer:
    """The programs of a problem; nothing is compiled twice."""

    def __init__(self, problem: Problem, seeds: int) -> None:
        self.problem, self.seeds = problem, seeds
        with _precision(problem):
            self.start = jax.vmap(problem.init)(
                jax.vmap(jax.random.key)(np.arange(seeds, dtype=np.uint32))
            )
            self.batches = np.stack([_batches(problem, seed) for seed in range(seeds)])
            self._looked = jax.jit(self._look)
        self._programs: dict[tuple[str, int], Callable[..., Any]] = {}

    def curves(self, optimizer: Optimizer, rates: Sequence[float]) -> Curves:
        """A run for each learning rate."""
        losses, errors, seconds = [], [], []
        with _precision(self.problem):
            program = self._program(optimizer.kind, optimizer.lag)
            for rate in rates:
                kept, spent = self._ran(program, optimizer.gamma, rate)
                seconds.append(spent)
                loss, error = (np.asarray(one, dtype=float) for one in self._looked(kept))
                lost = ~np.isfinite(loss)
                losses.append(np.where(lost, np.inf, loss))
                errors.append(np.where(lost | ~np.isfinite(error), np.inf, error))
        name, cubes = self.problem.name, (np.array(losses), np.array(errors))
        return Curves(name, optimizer, tuple(rates), *cubes, min(seconds))

    def seconds(self, optimizers: Sequence[Optimizer]) -> list[float]:
        """Of a step of each: the least of `ROUNDS` runs, in which all take turns.

        Of the processor, because the clock on the wall counts whatever else the machine does; in
        turns, because it is slower at times. All gamma are one program.
        """
        least: dict[tuple[str, int], float] = {}
        with _precision(self.problem):
            for _ in range(ROUNDS):
                for key in dict.fromkeys((one.kind, one.lag) for one in optimizers):
                    program = self._program(*key)
                    spent = self._ran(program, 0.0, CALM)[1]
                    least[key] = min(spent, least.get(key, np.inf))
        return [least[one.kind, one.lag] for one in optimizers]

    def _ran(self, program: Callable[..., Any], gamma: float, rate: float) -> tuple[Any, float]:
        """What was kept, and the seconds of a step."""
        began = time.process_time()
        kept = jax.block_until_ready(program(gamma, rate, self.start, self.batches))
        return kept, (time.process_time() - began) / self.problem.steps

    def _program(self, kind: str, lag: int) -> Callable[..., Any]:
        if (kind, lag) not in self._programs:
            program = jax.jit(functools.partial(self._run, kind, lag))
            # before the clock runs
            lowered = program.lower(0.0, 0.0, self.start, self.batches)
            self._programs[kind, lag] = lowered.compile()
        return self._programs[kind, lag]

    def _run(self, kind: str, lag: int, gamma: Any, rate: Any, start: Any, batches: Any) -> Any:
        """The parameters at `PLACES` places, for each seed."""
        problem = self.problem
        inputs, targets = jnp.asarray(problem.inputs), jnp.asarray(problem.targets)
        optimizer = optax.with_extra_args_support(MAKERS[kind](rate, gamma, lag))

        def step(carry: Any, rows: Any) -> tuple[Any, None]:
            params, state = carry

            def value(params: Any) -> Any:
                return problem.loss(params, inputs[rows], targets[rows])

            grads = jax.grad(value)(params)
            updates, state = optimizer.update(grads, state, params, value_fn=value)
            return (optax.apply_updates(params, updates), state), None

        def to_the_next(carry: Any, rows: Any) -> Any:
            carry, _ = jax.lax.scan(step, carry, rows)
            return carry, carry[0]

        def one(params: Any, batches: Any) -> Any:
            rows = batches.reshape(PLACES, -1, batches.shape[-1])
            return jax.lax.scan(to_the_next, (params, optimizer.init(params)), rows)[1]

        return jax.vmap(one)(start, batches)

    def _look(self, kept: Any) -> tuple[Any, Any]:
        """The loss on all that is trained on, and the error on the test data."""
        problem = self.problem
        inputs, targets = jnp.asarray(problem.inputs), jnp.asarray(problem.targets)

        def one(params: Any) -> tuple[Any, Any]:
            return problem.loss(params, inputs, targets), problem.error(params)

        return jax.lax.map(lambda seed: jax.lax.map(one, seed), kept)


def _precision(problem: Problem) -> Any:
    return jax.enable_x64(problem.double)


def _batches(problem: Problem, seed: int) -> Any:
    """Rows for each step: every epoch is one order of all of them."""
    rows, random = len(problem.inputs), np.random.default_rng(seed)
    per = rows // problem.batch
    epochs = -(-problem.steps // per)
    order = [random.permutation(rows)[: per * problem.batch] for _ in range(epochs)]
    drawn = np.concatenate(order).reshape(-1, problem.batch)
    return drawn[: problem.steps].astype(np.int32)
