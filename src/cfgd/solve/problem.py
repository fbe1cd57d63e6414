"""What is solved: objective, method and start, checked, in one precision and one layout."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from cfgd._core import checks
from cfgd._core.arrays import as_array, cast, cast_on_host, in_precision, is_array, precision_of
from cfgd._core.either import Unbound, made
from cfgd._core.pytrees import Structure, checked_pytree, promote_precision
from cfgd._core.sharding import any_sharded
from cfgd.methods.base import Method, Tuning
from cfgd.methods.paper.settings import n_settings
from cfgd.objectives.base import Objective
from cfgd.objectives.linear.sharded import host_of
from cfgd.objectives.local import Local
from cfgd.solve.compiled_loop import BLOCK, Loop
from cfgd.solve.history import check_records, recorders
from cfgd.solve.options import Options

# rows of the history that a chunk may write, and the numbers in them (1 MiB): it is set to zero
MOST_ROWS, MOST_NUMBERS = 2**13, 2**17
# gradients that a direction may cost before the user is told
COSTLY = 10_000


@dataclasses.dataclass(frozen=True)
class Problem:
    """`rows` is the number of settings of a sweep; None for one method."""

    objective: Objective
    host: Unbound | None  # the objective in NumPy, where a run is walked from Python
    method: Any
    start: Any  # a vector, or one for each row
    rows: int | None
    x0: Any  # of the kind that the user gave: results come back like it
    structure: Structure
    dtype: np.dtype[Any]
    loop: Loop
    how: str
    tuning: Tuning | None

    @property
    def last_iteration(self) -> int | None:
        return self.method.last_iteration


def problem(options: Options, objective: Objective, x0: Any, method: Any, swept: bool) -> Problem:
    """Check everything and lay it out, before any work starts."""
    rows = _rows(options, method, swept)
    x0 = checked_pytree(options.owner, "x0", x0)
    starts = _starts(options.owner, objective, x0, rows)
    rows = rows if rows is None else max(rows, len(starts))
    structure = Structure.of(starts[0])
    dtype = precision_of(x0, objective)
    x0 = promote_precision(starts[0], dtype)  # in the user's precision, hence here
    with in_precision(dtype):
        vectors = [_vector(structure, x, dtype) for x in starts]
        d = vectors[0].size
        objective = objective.raveled(structure)
        objective.check(options.owner, vectors[0])
        method, tuning = _method(method, objective, structure, d, dtype, rows)
        how = method.describe(objective) + (f", {tuning.words}" if tuning else "")
        method = method.on(objective)
        objective = method.view(objective)
        _say_cost(objective, method.direction_cost(objective, d))
        outside, host = rows is None and method.from_outside(objective), None
        if outside:
            here = cast_on_host(objective, dtype)
            host = host_of(here)
        objective = cast(objective, dtype) if host is None else here
        method = cast(method, dtype)
        start = vectors[0]
        if rows is not None:
            start = jnp.asarray(np.broadcast_to(np.stack(vectors), (rows, d)))
        loop = _loop(options, objective, method, structure, vectors[0], rows)
    return Problem(objective, host, method, start, rows, x0, structure, dtype, loop, how, tuning)


def alike(options: Options, problem: Problem) -> dict[str, Any]:
    """What must be given alike on every process, for all to go the same way."""
    names = ("max_iterations", "tolerance", "gradient_tolerance", "every")
    has = ("time_limit", "callback", "checkpoint")
    whole = not any_sharded(problem.objective)
    leaves = [leaf for leaf in jax.tree.leaves(problem.objective) if is_array(leaf)]
    return {
        **{name: getattr(options, name) for name in names},
        **{name: getattr(options, name) is None for name in has},
        "record": sorted(options.record),
        "x0": [np.asarray(problem.start)],
        "methods" if options.owner == "sweep" else "method": (problem.how, problem.method),
        "objective": [[*np.shape(leaf), str(leaf.dtype)] for leaf in leaves],
        "data": leaves if whole else None,
    }


def shared_out(problem: Problem) -> Problem:
    """The settings of a sweep, spread over all devices; the last one repeated as often as needed.

    The objective goes to every device.
    """
    owner, devices = "sweep", jax.devices()
    if any_sharded(problem.objective):
        wanted = "be False for an objective that is spread by rows"
        checks.fail(owner, "spread", wanted, "True")
    assert problem.rows is not None
    mesh = Mesh(np.array(devices), ("settings",))
    more = -problem.rows % len(devices)

    def placed(tree: Any, *axes: str) -> Any:
        """By settings where an axis is named, else whole on every device."""
        at = NamedSharding(mesh, PartitionSpec(*axes))

        def one(leaf: Any) -> Any:
            if not is_array(leaf):
                return leaf
            rows = np.asarray(leaf)
            if axes:
                rows = np.concatenate([rows, np.repeat(rows[-1:], more, 0)])
            return jax.make_array_from_callback(rows.shape, at, lambda place: rows[place])

        return jax.tree.map(one, tree)

    with in_precision(problem.dtype):
        return dataclasses.replace(
            problem,
            objective=placed(problem.objective),
            method=placed(problem.method, "settings"),
            start=placed(problem.start, "settings"),
        )


def _rows(options: Options, method: Any, swept: bool) -> int | None:
    """How many settings there are, the methods being what they should be."""
    if not swept:
        if not isinstance(method, Method):
            wanted = "be a method such as GradientDescent()"
            checks.fail(options.owner, "method", wanted, repr(method))
        return None
    several = isinstance(method, list | tuple)
    if not several and not isinstance(method, Method):
        checks.fail("sweep", "methods", "be a method or a list of settings", repr(method))
    for one in method if several else [method]:
        if not isinstance(one, Method):
            wanted = "be settings of one and the same method"
            got = repr(one) if isinstance(one, type) else type(one).__name__
            checks.fail("sweep", "methods", wanted, got)
        if one.is_open:
            checks.fail("sweep", "methods", "have numbers for gamma and eta", repr("best"))
    return n_settings(method)


def _starts(owner: str, objective: Objective, x0: Any, rows: int | None) -> list[Any]:
    """x0 alone, or one x0 for each setting of a sweep."""
    own = objective.shape
    shape: tuple[int, ...] | None = getattr(x0, "shape", None)
    if own is None or shape == own:
        return [x0]
    several = shape is not None and shape[1:] == own and shape[0] > 0
    if rows is not None and several and rows in (1, len(x0)):
        return list(x0)
    each = ", ".join(map(str, own))
    also = "" if rows is None else f" or ({'n' if rows == 1 else rows}, {each})"
    got = "a pytree" if shape is None else shape
    checks.fail(owner, "x0", f"have shape {own}{also}", got)


def _vector(structure: Structure, x: Any, dtype: Any) -> Any:
    """A start of our own, of the kind that was given."""
    vector = structure.ravel(x)
    if isinstance(vector, np.ndarray):
        return np.array(as_array(vector), dtype)
    return cast(vector, dtype)


def _method(
    method: Any, objective: Objective, structure: Structure, d: int, dtype: Any, rows: int | None
) -> tuple[Any, Tuning | None]:
    """The method with numbers in all its fields, for points of d coordinates."""
    if rows is None:
        method, tuning = method.tuned(objective, d, dtype)
        return method.laid_out(structure, d), tuning
    if not isinstance(method, list | tuple):
        return method.laid_out(structure, d, rows), None
    settings = [one.laid_out(structure, d) for one in method]

    def stacked(*leaves: Any) -> Any:
        return jnp.broadcast_to(jnp.stack(leaves), (rows, *jnp.shape(leaves[0])))

    return jax.tree.map(stacked, *settings), None


def _say_cost(objective: Objective, cost: float) -> None:
    """Warn before a direction that costs many gradients."""
    local = isinstance(objective, Local)
    cheaper = 'the curvature "hutchinson"' if local else "cfgd.Local(objective, ...)"
    if cost >= COSTLY:
        checks.warn(
            "An exact direction moves one coordinate at a time and costs about "
            f"{cost:.0f} gradients here; {cheaper} costs a few."
        )


def _loop(
    options: Options,
    objective: Objective,
    method: Any,
    structure: Structure,
    x0: Any,
    rows: int | None,
) -> Loop:
    records = recorders(options.record, structure)
    numbers = 1
    if records:
        one = method if rows is None else jax.tree.map(lambda a: a[0], method)
        state = jax.eval_shape(lambda x: one.start(objective, x), x0)
        numbers += check_records(options.owner, records, state)
    block = BLOCK if objective.is_quadratic else 1
    if options.every > 1 or options.callback is not None:
        block = math.gcd(block, options.every)
    capacity = max(1, min(MOST_ROWS, MOST_NUMBERS // (numbers * (rows or 1))))
    return made(
        Loop,
        records=records,
        every=options.every,
        capacity=capacity,
        block=block,
        batched=rows is not None,
    )
