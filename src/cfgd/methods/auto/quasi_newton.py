"""L-BFGS, then a dense matrix of the Broyden family where a run is long.

Limited memory is right for short runs: a dense matrix would have to learn first what a diagonal and
16 pairs say at once. On long runs it is wrong, because what it forgets must be found again and
again. How long a run will be is not known beforehand. So L-BFGS goes first, and the dense matrix
begins with what its memory knows.

The cost of a dense iteration is a gradient and about 2 d^2 multiplications, where L-BFGS has 64 d.
Gradients are what is saved; on functions of microseconds the multiplications may cost more.
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
# Iterations of L-BFGS before the matrix: twice its pairs, so that most of what it learnt would be
# forgotten next.
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
        """Keep a dense matrix: with other samples of the same kind f is curved much the same."""
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

    Points at a bound are left to L-BFGS, whose compact matrix the steps on their faces need.
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
    """Check the curvature around x: the run ends, or goes on with the matrix or with L-BFGS.

    It goes on with the matrix where the check only says that f can be lowered further. L-BFGS
    leaves saddles, looks along flat directions and decides where no step lowers f.
    """
    after = check_curvature(oracle, with_limited_memory(oracle, state), goal)
    goes_on = after.status is Status.running and not after.search.leaves_saddle
    if goes_on and not state.is_stuck and state.idle == 0:
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
