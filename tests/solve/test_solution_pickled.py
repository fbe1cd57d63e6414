"""A ConvergenceError keeps its solution when it is pickled and in another process."""

import copy
import multiprocessing
import pickle

import pytest
from solutions import assert_same_solution, one

import cfgd
from cfgd.status import Status


def fail_in_another_process(solution):
    raise cfgd.ConvergenceError(solution)


def test_an_error_can_be_pickled():
    error = cfgd.ConvergenceError(one(status=Status.stalled))
    error.add_note("in the third fold")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cfgd.ConvergenceError
    assert str(again) == str(error) == error.solution.message
    assert again.__notes__ == ["in the third fold"]
    assert_same_solution(again.solution, error.solution)
    assert again.solution.status is Status.stalled
    assert_same_solution(copy.deepcopy(error).solution, error.solution)


@pytest.mark.slow
def test_an_error_passes_through_a_process_pool():
    """An error that cannot be restored ends a thread of the pool, and the caller waits for ever."""
    solution = one(status=Status.max_iterations)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        result = pool.apply_async(fail_in_another_process, (solution,))
        with pytest.raises(cfgd.ConvergenceError, match=r"^Stopped at `max_iterations`") as raised:
            result.get(timeout=600)
    assert_same_solution(raised.value.solution, solution)
