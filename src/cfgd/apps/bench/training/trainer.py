"""Training of a network: all seeds in one batch, all steps in one compiled loop.

The learning rate and gamma are traced numbers: a program is compiled once for a problem, a kind of
optimizer and a lag. The loop stores the parameters at thirty checkpoints. Losses are evaluated
afterwards by another program, so that the measured time of a step does not include them.
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
from cfgd.apps.bench.training.problem import TrainingProblem

TIMING_ROUNDS = 7
TIMING_RATE = 1e-3  # a learning rate at which no optimizer diverges
# 30 divided by the costs of a step (1.2 for cfgd, 3 for AdaHessian) is whole: at equal gradients
# these are evaluated at the checkpoints 25 and 10.
CHECKPOINTS = 30


@dataclasses.dataclass(frozen=True)
class Curves:
    """One optimizer on one problem: arrays [rate][seed][checkpoint], infinite if diverged."""

    problem: str
    optimizer: Optimizer
    rates: tuple[float, ...]
    losses: Any
    errors: Any
    seconds: float  # time of a step of all seeds together
    timed: bool = False  # whether `seconds` was measured in turns with the other optimizers


class Trainer:
    """The compiled programs of a problem; each is compiled once."""

    def __init__(self, problem: TrainingProblem, seeds: int) -> None:
        self.problem, self.seeds = problem, seeds
        with _precision(problem):
            self.start = jax.vmap(problem.init)(
                jax.vmap(jax.random.key)(np.arange(seeds, dtype=np.uint32))
            )
            self.batches = np.stack([_batches(problem, seed) for seed in range(seeds)])
            self._compiled_evaluate = jax.jit(self._evaluate)
        self._programs: dict[tuple[str, int], Callable[..., Any]] = {}

    def curves(self, optimizer: Optimizer, rates: Sequence[float]) -> Curves:
        """Train with each learning rate."""
        losses, errors, seconds = [], [], []
        with _precision(self.problem):
            program = self._program(optimizer.kind, optimizer.lag)
            for rate in rates:
                checkpoints, step_seconds = self._timed_run(program, optimizer.gamma, rate)
                seconds.append(step_seconds)
                evaluated = self._compiled_evaluate(checkpoints)
                loss, error = (np.asarray(one, dtype=float) for one in evaluated)
                diverged = ~np.isfinite(loss)
                losses.append(np.where(diverged, np.inf, loss))
                errors.append(np.where(diverged | ~np.isfinite(error), np.inf, error))
        return Curves(
            self.problem.name,
            optimizer,
            tuple(rates),
            np.array(losses),
            np.array(errors),
            min(seconds),
        )

    def seconds(self, optimizers: Sequence[Optimizer]) -> list[float]:
        """Return the CPU seconds of a step of each optimizer.

        It is CPU time, because wall time includes other programs on the machine. The optimizers run
        in turns, because the speed of the machine varies, and the smallest of `TIMING_ROUNDS` times
        counts. Optimizers that differ only in gamma share a program and its time.
        """
        least: dict[tuple[str, int], float] = {}
        with _precision(self.problem):
            for _ in range(TIMING_ROUNDS):
                for key in dict.fromkeys((one.kind, one.lag) for one in optimizers):
                    program = self._program(*key)
                    step_seconds = self._timed_run(program, 0.0, TIMING_RATE)[1]
                    least[key] = min(step_seconds, least.get(key, np.inf))
        return [least[one.kind, one.lag] for one in optimizers]

    def _timed_run(
        self, program: Callable[..., Any], gamma: float, rate: float
    ) -> tuple[Any, float]:
        """Return the parameters at the checkpoints, and the CPU seconds of a step."""
        began = time.process_time()
        checkpoints = jax.block_until_ready(program(gamma, rate, self.start, self.batches))
        return checkpoints, (time.process_time() - began) / self.problem.steps

    def _program(self, kind: str, lag: int) -> Callable[..., Any]:
        if (kind, lag) not in self._programs:
            program = jax.jit(functools.partial(self._run, kind, lag))
            lowered = program.lower(0.0, 0.0, self.start, self.batches)
            self._programs[kind, lag] = lowered.compile()
        return self._programs[kind, lag]

    def _run(self, kind: str, lag: int, gamma: Any, rate: Any, start: Any, batches: Any) -> Any:
        """Return the parameters at the checkpoints, for each seed."""
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

        def to_next_checkpoint(carry: Any, rows: Any) -> Any:
            carry, _ = jax.lax.scan(step, carry, rows)
            return carry, carry[0]

        def train_seed(params: Any, batches: Any) -> Any:
            rows = batches.reshape(CHECKPOINTS, -1, batches.shape[-1])
            return jax.lax.scan(to_next_checkpoint, (params, optimizer.init(params)), rows)[1]

        return jax.vmap(train_seed)(start, batches)

    def _evaluate(self, checkpoints: Any) -> tuple[Any, Any]:
        """Return the loss on all training data, and the error on the test data."""
        problem = self.problem
        inputs, targets = jnp.asarray(problem.inputs), jnp.asarray(problem.targets)

        def evaluate_params(params: Any) -> tuple[Any, Any]:
            return problem.loss(params, inputs, targets), problem.error(params)

        return jax.lax.map(lambda of_seed: jax.lax.map(evaluate_params, of_seed), checkpoints)


def _precision(problem: TrainingProblem) -> Any:
    return jax.enable_x64(problem.double)


def _batches(problem: TrainingProblem, seed: int) -> Any:
    """Return the row numbers of each step; every epoch is a random permutation of the rows."""
    rows, random = len(problem.inputs), np.random.default_rng(seed)
    per_epoch = rows // problem.batch
    epochs = -(-problem.steps // per_epoch)
    order = [random.permutation(rows)[: per_epoch * problem.batch] for _ in range(epochs)]
    batches = np.concatenate(order).reshape(-1, problem.batch)
    return batches[: problem.steps].astype(np.int32)
