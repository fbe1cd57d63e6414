"""A checked problem: objective, method and start in one precision, as functions of a vector."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import as_array, cast, cast_on_host, in_precision, is_array, precision_of
from cfgd._core.box import Box
from cfgd._core.failing import warn
from cfgd._core.pytrees import Structure, checked_pytree, promote_precision
from cfgd._core.sharding import any_sharded
from cfgd._core.types import DType, Vector
from cfgd.methods.base import Method, State, Tuning
from cfgd.methods.paper.settings import n_settings
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.bounds import as_box
from cfgd.solve.compiled_chunk import BLOCK
from cfgd.solve.history import check_records, recorders
from cfgd.solve.options import Options
from cfgd.solve.run_stats import LoopSettings
from cfgd.solve.terms import term_recorders

# Limits of the rows of the history that a chunk writes, and of the numbers in them (1 MiB of
# float64): a compiled chunk allocates them in advance.
MOST_ROWS, MOST_NUMBERS = 2**13, 2**17


@dataclasses.dataclass(frozen=True)
class Problem:
    """Objective, method and start of a call of `minimize` or `sweep`.

    Parameters
    ----------
    objective
        As a function of a vector, in the precision `dtype`.
    method
        With numbers in all its fields; in a sweep they have a leading axis of settings.
    start
        A vector, or one for each setting.
    n_settings
        The number of settings of a sweep, None for a single run.
    x0
        The first start as the user gave it: results get its structure and array types.
    structure
        How vectors become pytrees like x0.
    dtype
        The precision of the run.
    loop
        The options that the loops use.
    how
        A short description of the method for this objective.
    tuning
        The numbers that were chosen in place of "best", if any.
    box
        The bounds of the vector, or None.
    was_moved
        Whether a start was outside of the bounds and has been projected.
    """

    objective: Objective
    method: Any
    start: Any
    n_settings: int | None
    x0: Any
    structure: Structure
    dtype: np.dtype[Any]
    loop: LoopSettings
    how: str
    tuning: Tuning | None
    box: Box | None = None
    was_moved: bool = False


def prepare_problem(
    options: Options, objective: Objective, x0: Any, method: Any, bounds: Any, swept: bool
) -> Problem:
    """Check and convert the arguments of a call, before any work starts."""
    n = _number_of_settings(options, method, swept)
    x0 = checked_pytree(options.owner, "x0", x0)
    starts = _starts(options.owner, objective, x0, n)
    n = n if n is None else max(n, len(starts))
    structure = Structure.of(starts[0])
    dtype = precision_of(x0, objective)
    x0 = promote_precision(
        starts[0], dtype
    )  # in the user's precision, hence outside of `in_precision`
    with in_precision(dtype):
        vectors = [_vector(structure, x, dtype) for x in starts]
        box, was_moved = None, False
        if bounds is not None:
            box = as_box(options.owner, bounds, structure, dtype)
            was_moved = not all(box.contains(np.asarray(x)) for x in vectors)
            vectors = [box.project(x) for x in vectors]
            several = isinstance(method, list | tuple)
            for one in method if several else [method]:
                if not one.traits.seeks_minimiser:
                    wanted = "be None for a method that does not minimise f"
                    checks.fail(options.owner, "bounds", wanted, type(one).__name__)
            method = [one.in_box() for one in method] if several else method.in_box()
        d = vectors[0].size
        objective = objective.raveled(structure)
        objective.check(options.owner, vectors[0])
        method, tuning = _prepared(method, objective, structure, d, dtype, n)
        one = method if n is None or not jax.tree.leaves(method) else _first_setting(method)
        how = one.describe(objective) + (f", {tuning.description}" if tuning else "")
        on_host = one.traits.runs_on_host
        objective = cast_on_host(objective, dtype) if on_host else cast(objective, dtype)
        method = cast(method, dtype)
        start = vectors[0]
        if n is not None:
            start = np.broadcast_to(np.stack(vectors), (n, d))
            start = start if on_host else jnp.asarray(start)
        loop = _loop_settings(options, objective, one, structure, vectors[0], n)
    return Problem(
        objective, method, start, n, x0, structure, dtype, loop, how, tuning, box, was_moved
    )


def check_start(owner: str, value: Any, largest: Any) -> None:
    """Raise unless value and gradient are finite; `largest` are the largest entries of |g|."""
    good = np.isfinite(value) & np.isfinite(largest)
    if good.all():
        return
    first = int(np.argmin(good))
    got = f"the value {value[first]}"
    if np.isfinite(value[first]):
        got = f"a gradient of norm {largest[first]}"
    checks.fail(owner, "x0", "give a finite value and gradient", got)


def _first_setting(method: object) -> Any:
    """Return the first of the settings in a stacked method."""
    return jax.tree.map(lambda leaf: leaf[0] if is_array(leaf) else leaf, method)


def replicated_arguments(options: Options, problem: Problem) -> dict[str, Any]:
    """Return the arguments that must be the same on every process."""
    names = ("max_iterations", "tolerance", "gradient_tolerance", "every")
    has = ("time_limit", "callback", "checkpoint")
    leaves = [leaf for leaf in jax.tree.leaves(problem.objective) if is_array(leaf)]
    return {
        **{name: getattr(options, name) for name in names},
        **{name: getattr(options, name) is None for name in has},
        "record": sorted(options.record),
        "bounds": None if problem.box is None else list(problem.box),
        "x0": [np.asarray(problem.start)],
        "methods" if options.owner == "sweep" else "method": (problem.how, problem.method),
        "objective": [[*np.shape(leaf), str(leaf.dtype)] for leaf in leaves],
        "data": None if any_sharded(problem.objective) else leaves,
    }


def shard_settings(problem: Problem) -> Problem:
    """Return the problem with its settings sharded over all devices of all processes.

    The last setting is repeated until their number is a multiple of that of the devices, and the
    objective is replicated. Auto's solvers run all settings on every process.
    """
    owner, devices = "sweep", jax.devices()
    if problem.method.traits.runs_on_host:
        return problem
    if any_sharded(problem.objective):
        wanted = "be False for an objective that is sharded by rows"
        checks.fail(owner, "spread", wanted, "True")
    assert problem.n_settings is not None
    mesh = Mesh(np.array(devices), ("settings",))
    more = -problem.n_settings % len(devices)

    def placed(tree: PyTree, *axes: str) -> Any:
        """Shard by settings where an axis is named, else replicate."""
        at = NamedSharding(mesh, PartitionSpec(*axes))

        def one(leaf: object) -> Any:
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


def _number_of_settings(options: Options, method: Any, swept: bool) -> int | None:
    """Return the number of settings, or raise where `method` is none."""
    if not swept:
        if not isinstance(method, Method):
            wanted = "be a method of cfgd such as Auto(), the default"
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
        if getattr(one, "is_open", False):
            checks.fail("sweep", "methods", "have numbers for gamma and eta", repr("best"))
    return n_settings(method)


def _starts(owner: str, objective: Objective, x0: PyTree, rows: int | None) -> list[Any]:
    """Return the starts: x0 alone, or one x0 for each setting of a sweep."""
    own = objective.shape
    shape: tuple[int, ...] | None = getattr(x0, "shape", None)
    if own is None and shape is not None and len(shape) == 2 and rows in (1, shape[0]):
        if not _is_one_point(owner, objective, x0):
            return list(x0)
        if len(x0) > 1 and _is_one_point(owner, objective, x0[0]):
            warn(
                f"`{owner}(x0=...)` of shape {shape} is one start, because the objective takes the "
                f"whole matrix as its x. If its {len(x0)} rows are starts, give an `Objective` "
                "that has a `shape`."
            )
        return [x0]
    if own is None or shape == own:
        return [x0]
    several = shape is not None and shape[1:] == own and shape[0] > 0
    if rows is not None and several and rows in (1, len(x0)):
        return list(x0)
    each = ", ".join(map(str, own))
    also = "" if rows is None else f" or ({'n' if rows == 1 else rows}, {each})"
    got = "a pytree" if shape is None else shape
    checks.fail(owner, "x0", f"have shape {own}{also}", got)


def _is_one_point(owner: str, objective: Objective, x0: Any) -> bool:
    """Return whether a function of any shape takes a matrix, or else its rows are starts."""
    structure = Structure.of(x0)
    try:
        objective.raveled(structure).check(owner, structure.ravel(x0))
    except Exception:  # whatever a function raises at an argument of another shape
        return False
    return True


def _vector(structure: Structure, x: PyTree, dtype: DType) -> Any:
    """Return a start as a vector, NumPy or JAX as it was given; a copy for NumPy."""
    vector = structure.ravel(x)
    if isinstance(vector, np.ndarray):
        return np.array(as_array(vector), dtype)
    return cast(vector, dtype)


def _prepared(
    method: Any, objective: Objective, structure: Structure, d: int, dtype: Any, n: int | None
) -> tuple[Any, Tuning | None]:
    """Return the method with numbers in all its fields, for points of d coordinates."""
    if not isinstance(method, list | tuple):
        return method.prepare(objective, structure, d, dtype, n)
    settings = [one.prepare(objective, structure, d, dtype).method for one in method]

    def stacked(*leaves: Any) -> Any:
        return jnp.broadcast_to(jnp.stack(leaves), (n, *jnp.shape(leaves[0])))

    return jax.tree.map(stacked, *settings), None


def _loop_settings(
    options: Options,
    objective: Objective,
    method: Any,
    structure: Structure,
    x0: Any,
    n: int | None,
) -> LoopSettings:
    records: dict[str, Any] = {**recorders(options.record, structure)}
    numbers = 1
    if records:
        numbers += check_records(options.owner, records, _example_state(objective, method, x0))
    terms = term_recorders(options.owner, objective, records)
    records, numbers = records | terms, numbers + len(terms)
    block = BLOCK if objective.traits.is_quadratic and not method.traits.runs_on_host else 1
    if options.every > 1 or options.callback is not None:
        block = math.gcd(block, options.every)
    capacity = max(1, min(MOST_ROWS, MOST_NUMBERS // (numbers * (n or 1))))
    return LoopSettings(records, options.every, capacity, block, n is not None)


def _example_state(objective: Objective, method: Any, x0: Any) -> State:
    """Return a state by whose shapes the records are checked."""

    def auto_state(x: Vector) -> State:
        """Return a state like those that the host loop shows to records."""
        number = x.sum()
        return State(jnp.zeros((), jnp.int32), Evaluation(x, number, x), number, number)

    if method.traits.runs_on_host:
        return jax.eval_shape(auto_state, x0)
    return jax.eval_shape(lambda x: method.init(objective, x), x0)
