"""Runs of one rule on one problem: many settings and seeds as one compiled batch.

A program is compiled for a rule and the shapes of a problem. It makes `BATCH` runs at once; the
last batch is padded, so that tuning and test runs share the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.bench.fractional.competitors import Scale
from cfgd.apps.bench.fractional.problems import FractionalProblem, Instance
from cfgd.objectives.evaluation import Evaluation
from cfgd.zoo.update_rule import UpdateRule

BATCH = 24
POINTS = 30  # checkpoints of a minibatch run, at which the loss on all data is evaluated
PROBES = 100  # random sign vectors for the mean of the diagonal: relative error 0.1 or less
POWER_ITERATIONS = 30  # for the largest eigenvalue of the Hessian: two digits on these problems


class Runs(NamedTuple):
    """The values of f at the checkpoints, of shape (runs, checkpoints + 1), and their costs."""

    values: Any
    gradients: Any  # the number of gradients up to each checkpoint
    norms: Any  # |g| at the end divided by |g| at the start


def precision(problem: FractionalProblem) -> Any:
    """Return the context manager that selects the precision of a problem."""
    return jax.enable_x64(not problem.is_single)


def scale_of(problem: FractionalProblem, instance: Instance) -> Scale:
    """Return the scale of the Hessian at the initial point, by Hessian-vector products."""
    with precision(problem):
        f, x = as_jax(instance.objective), jnp.asarray(instance.x0)
        inner = f.objective if isinstance(f, cfgd.Local) else f
        return Scale(float(_power_method(inner, x)), abs(float(_mean_diagonal(inner, x))))


@eqx.filter_jit
def _power_method(f: Any, x: Any) -> Any:
    at = f.evaluate(x)
    v = jax.random.normal(jax.random.key(0), x.shape, x.dtype)

    def once(_: Any, v: Any) -> Any:
        product = f.hessian_times(at, v)
        return product / jnp.maximum(jnp.linalg.norm(product), jnp.finfo(x.dtype).tiny)

    v = jax.lax.fori_loop(0, POWER_ITERATIONS, once, v / jnp.linalg.norm(v))
    return jnp.linalg.norm(f.hessian_times(at, v))


@eqx.filter_jit
def _mean_diagonal(f: Any, x: Any) -> Any:
    at = f.evaluate(x)
    signs = jax.random.rademacher(jax.random.key(1), (PROBES, x.size), x.dtype)
    return jnp.mean(jax.lax.map(lambda v: v @ f.hessian_times(at, v), signs)) / x.size


def run(
    problem: FractionalProblem,
    instances: Sequence[Instance],
    rules: Sequence[UpdateRule],
    seeds: Sequence[int],
) -> Runs:
    """Run each instance with its rule; `seeds` determine the minibatches."""
    cost = _cost(problem, rules[0], instances[0])
    iterations = max(1, int(problem.gradients / cost))
    chunk = max(1, iterations // POINTS) if problem.batch else 1
    values, norms = [], []
    with precision(problem):
        for start in range(0, len(rules), BATCH):
            rows = [min(start + i, len(rules) - 1) for i in range(BATCH)]
            some = [instances[i] for i in rows]
            shared = problem.batch is not None
            objective = some[0].objective if shared else _stacked([i.objective for i in some])
            batches = _batches(problem, [seeds[i] for i in rows], iterations // chunk * chunk)
            out = _program(
                as_jax(objective),
                jnp.stack([jnp.asarray(i.x0) for i in some]),
                _stacked([rules[i] for i in rows]),
                batches,
                iterations // chunk,
                chunk,
            )
            values.append(np.asarray(out[0], float)[: len(rules) - start])
            norms.append(np.asarray(out[1], float)[: len(rules) - start])
    gradients = cost * chunk * np.arange(iterations // chunk + 1)
    return Runs(np.concatenate(values), gradients, np.concatenate(norms))


def _cost(problem: FractionalProblem, rule: UpdateRule, instance: Instance) -> float:
    """Return the cost of an iteration in gradients."""
    f = _for_curvature(instance.objective) if problem.batch else instance.objective
    return 1.0 + rule.extra_cost(f, instance.x0.size)


def _for_curvature(f: Any) -> Any:
    """Return the loss of a batch with a local model, for the rules with second derivatives."""
    return cfgd.Local(f, "hutchinson", key=np.zeros(2, np.uint32))  # the point decides the draw


@eqx.filter_jit
def _program(
    objective: Any, x0: Any, rules: Any, batches: Any, checkpoints: int, chunk: int
) -> tuple[Any, Any]:
    arrays, static = eqx.partition(rules, eqx.is_array)
    f_arrays, f_static = eqx.partition(objective, eqx.is_array)

    def one(f_arrays: Any, x0: Any, arrays: Any, batches: Any) -> tuple[Any, Any]:
        f, rule = eqx.combine(f_arrays, f_static), eqx.combine(arrays, static)
        return _one_run(f, x0, rule, batches, checkpoints, chunk)

    shared = None if batches is not None else 0
    by_run = 0 if batches is not None else None
    return jax.vmap(one, in_axes=(shared, 0, 0, by_run))(f_arrays, x0, arrays, batches)


def _one_run(
    f: Any, x0: Any, rule: UpdateRule, batches: Any, checkpoints: int, chunk: int
) -> tuple[Any, Any]:
    """Return f at each checkpoint, and |g| at the last point divided by |g(x0)|."""

    def iteration(carry: Any, _: Any) -> Any:
        x, memory, k, at = carry
        step, memory = rule.update(at, memory, k, f)
        x = x - step.astype(x.dtype)
        return (x, memory, k + 1, f.evaluate(x)), None

    def iteration_by_minibatch(carry: Any, rows: Any) -> Any:
        x, memory, k, _ = carry
        loss = _for_curvature(f.rows(rows))
        at = loss.evaluate(x)  # with the draw that estimates the curvature at this point
        step, memory = rule.update(at, memory, k, loss)
        return (x - step.astype(x.dtype), memory, k + 1, at), None

    def to_checkpoint(carry: Any, rows: Any) -> Any:
        if rows is None:
            carry, _ = iteration(carry, None)
            return carry, carry[3].value
        carry, _ = jax.lax.scan(iteration_by_minibatch, carry, rows)
        return carry, f.value(carry[0])

    first = f.evaluate(x0)
    at = first
    if batches is not None:
        batches = batches.reshape(checkpoints, chunk, -1)
        at = Evaluation(x0, first.value, first.gradient, jnp.zeros_like(x0))
    carry = (x0, rule.start(x0), jnp.zeros((), jnp.int32), at)
    carry, values = jax.lax.scan(to_checkpoint, carry, batches, length=checkpoints)
    last = f.evaluate(carry[0]).gradient
    values = jnp.concatenate([first.value[None], values])
    return values, jnp.linalg.norm(last) / jnp.linalg.norm(first.gradient)


def _batches(problem: FractionalProblem, seeds: Sequence[int], iterations: int) -> Any:
    """Return the rows of the minibatches; every epoch is a random permutation of the data."""
    if problem.batch is None:
        return None
    n = len(problem.make(0).objective.inputs)
    per_epoch = n // problem.batch
    epochs = -(-iterations // per_epoch)
    each = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        order = [random.permutation(n)[: per_epoch * problem.batch] for _ in range(epochs)]
        each.append(np.concatenate(order).reshape(-1, problem.batch)[:iterations])
    return jnp.asarray(np.stack(each), jnp.int32)


def as_jax(tree: Any) -> Any:
    """Return the tree with its NumPy arrays converted to JAX arrays."""
    return jax.tree.map(lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, tree)


def _stacked(trees: Sequence[Any]) -> Any:
    """Return one tree whose arrays and numbers are stacked along a leading axis."""
    numbers = (np.ndarray, jax.Array, float, np.generic)

    def stack(*leaves: Any) -> Any:
        return np.stack(leaves) if isinstance(leaves[0], numbers) else leaves[0]

    return as_jax(jax.tree.map(stack, *trees))
