"""L-BFGS, followed by a dense matrix of the Broyden family in long runs.

Limited memory is better in short runs: a dense matrix needs many iterations to model what a
diagonal and 16 pairs model at once. In long runs a dense matrix is better, because it keeps the
information of all pairs. How long a run will be is not known in advance. L-BFGS therefore runs
first, and the dense matrix starts from its memory.

A dense iteration costs a gradient and about 2 d^2 multiplications; L-BFGS has 64 d. The dense
matrix saves gradients; for functions of microseconds the multiplications may cost more than it
saves.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd._core.records import fields_of
from cfgd._core.types import Scalar, Vector
from cfgd.methods.auto.broyden import BroydenState, broyden_step, curvatures, leaves_box
from cfgd.methods.auto.broyden_matrix import BroydenMatrix
from cfgd.methods.auto.lbfgs import LBFGS, LBFGSState, check_curvature
from cfgd.methods.auto.lbfgs_memory import PAIRS, Memory, next_direction
from cfgd.methods.auto.line_search import Search
from cfgd.methods.auto.longest_step import longest_fraction
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Goal, Solver, SolverState, Start
from cfgd.objectives.base import Objective
from cfgd.status import Status

# Largest dimension of a dense matrix: 5,000^2 numbers are 200 MB in float64, and a pass over one of
# its triangles takes about 10 ms, as long as a gradient of a network with so many weights.
MOST_DENSE = 5_000
# Iterations of L-BFGS before the dense matrix: twice the number of its pairs, which have then been
# replaced once.
LONG_RUN = 2 * PAIRS


class QuasiNewton(Solver[SolverState]):
    """L-BFGS for some iterations, then the dense matrix; every accepted step lowers f."""

    lbfgs = LBFGS()

    def describe(self, objective: Objective) -> str:
        return f"{self.lbfgs.describe(objective)}, on long runs with a dense quasi-Newton matrix"

    def init(self, oracle: Oracle, x0: Vector) -> LBFGSState:
        return self.lbfgs.init(oracle, x0)

    def step(self, oracle: Oracle, state: SolverState, goal: Goal) -> SolverState:
        if isinstance(state, BroydenState):
            state = checked(oracle, state, goal) if state.needs_check else state
            if state.status is not Status.running:
                return state
        if isinstance(state, BroydenState):
            if not leaves_box(oracle, state):
                return broyden_step(oracle, state, goal)
            state = with_limited_memory(oracle, state)
        assert isinstance(state, LBFGSState)
        after = self.lbfgs.step(oracle, state, goal)
        if not is_long(oracle, after):
            return after
        return with_dense_matrix(after, state.evaluation.value - after.evaluation.value)

    def restart(self, oracle: Oracle, state: SolverState) -> SolverState:
        """Keep a dense matrix: with other samples of the same kind the Hessian is similar."""
        if not isinstance(state, BroydenState):
            return self.init(oracle, state.evaluation.x.copy())
        at = oracle.evaluate(state.evaluation.x.copy())
        norm2 = oracle.norm2(at)
        return BroydenState(
            evaluation=at,
            computed_value=at.value,
            norm2=norm2,
            start=Start.of(at),
            matrix=state.matrix,
            fall=state.fall,
            least_norm2=norm2,
        )


def is_long(oracle: Oracle, state: LBFGSState) -> bool:
    """Return whether a run of L-BFGS has become long, and a dense matrix is affordable.

    At a bound L-BFGS continues: steps on the faces of the box need its compact matrix.
    """
    x, box = state.evaluation.x, oracle.box
    if x.size > MOST_DENSE or (box is not None and box.mask(x).any()):
        return False
    is_in_search = state.status is Status.running and not state.needs_check
    has_pairs = bool(state.memory.product > 0) and not state.memory.is_flat
    return is_in_search and has_pairs and state.iteration - state.first_iteration >= LONG_RUN


def with_dense_matrix(state: LBFGSState, fall: Scalar) -> BroydenState:
    """Return the state with the matrix of L-BFGS as a dense one, after f has fallen by `fall`."""
    return BroydenState(
        fall=fall,
        **fields_of(state, SolverState),
        matrix=BroydenMatrix.of_memory(state.memory, state.scaling),
        looks=state.looks,
        idle=state.idle,
        least_norm2=state.least_norm2,
        checked_norm2=state.checked_norm2,
    )


def checked(oracle: Oracle, state: BroydenState, goal: Goal) -> SolverState:
    """Check the curvature around x: the run ends, or continues with the matrix or with L-BFGS.

    It continues with the matrix if the check only finds that f can be lowered further. L-BFGS
    leaves saddles, searches along flat directions, and decides if no step lowers f.
    """
    after = check_curvature(oracle, with_limited_memory(oracle, state), goal)
    continues = after.status is Status.running and not after.search.leaves_saddle
    if continues and not state.is_stuck and state.idle == 0:
        return dataclasses.replace(
            state,
            start=after.start,
            forgot_start=after.forgot_start,
            checked_norm2=state.norm2,
            needs_check=False,
        )
    return after


def with_limited_memory(oracle: Oracle, state: BroydenState) -> LBFGSState:
    """Return a state of L-BFGS, with no pairs and the diagonal of the matrix."""
    at, P = state.evaluation, curvatures(state.matrix)
    memory = Memory.empty(at.x)
    p, slope, eta, gamma = next_direction(memory, at, P, np.zeros_like(at.x), oracle.box)
    t = longest_fraction(at.x, state.start.x, p)
    return LBFGSState(
        **fields_of(state, SolverState),
        memory=memory,
        scaling=P,
        search=Search(p, slope, t, eta, gamma),
        needs_check=state.needs_check,
        is_stuck=state.is_stuck,
        idle=state.idle,
        least_norm2=state.least_norm2,
        looks=state.looks,
        first_iteration=state.iteration,
    )
