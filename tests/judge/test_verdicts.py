"""The judge is right about known points, and no status of `minimize` is false on random problems.

`make slow` tries 25 seeds of each of 44 families. Other seeds:
PYTHONPATH=tests .venv/bin/python -m judge --seeds 1000:1025
"""

import types

import numpy as np
import pytest

import cfgd
from judge.families import FAMILIES
from judge.functions import double_well, exponential_tail, inflection, valley
from judge.problem import plain_problem
from judge.reference import Reference
from judge.runs import judged, table
from judge.verdict import judge

SEEDS = range(25)
WELL = plain_problem(double_well, [0.3, 0.4, 0.5], [1.0, 2.0, 1.0])  # minima at (0, 1, 0)
INFLECTION = plain_problem(inflection, [1.0, 1.0], [1.0, 1.0, 1.0])
TAIL = plain_problem(exponential_tail, [0.0, 0.0], 1.0, truth="infimum")
DOWN = plain_problem(exponential_tail, [1.0, 0.0], -1.0, truth="unbounded")


def ending(problem, x, status, **changes):
    """Return what `minimize` would return if it ended at x with that status."""
    status = cfgd.Status[status]
    x = np.array(x)
    given = {"value": Reference(problem).value(x), "message": status.value, "iterations": 7}
    return types.SimpleNamespace(x=x, status=status, **{**given, **changes})


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("problem", "x", "status", "kind"),
    [
        (WELL, [0.0, 1.0, 0.0], "converged", ""),
        (WELL, [1e-9, -1.0, 1e-9], "converged", ""),
        (WELL, [0.0, 0.0, 0.0], "converged", "false"),
        (WELL, [0.0, 0.9, 0.0], "converged", "false"),
        (WELL, [0.0, 1.0, 0.0], "saddle", "false"),
        (WELL, [0.0, 0.0, 0.0], "saddle", "harsh"),
        (WELL, [0.5, 0.2, 0.5], "saddle", "false"),
        (WELL, [0.0, 1.0, 0.0], "stalled", "harsh"),
        (WELL, [0.0, 1.0, 0.0], "unbounded", "false"),
        (WELL, [0.0, 1.0, 0.0], "nonfinite", "false"),
        (WELL, [0.0, 1.0, 0.0], "max_iterations", "false"),
        (WELL, [3.0, 3.0, 3.0], "max_iterations", "false"),
        (INFLECTION, [0.0, 5e-5], "converged", "false"),
        (INFLECTION, [0.0, -(0.5 ** (1 / 3))], "converged", ""),
        (TAIL, [2.0, 1.0], "converged", "false"),
        (TAIL, [20.0, 1.0], "converged", "harsh"),
        (TAIL, [20.0, 1.0], "unbounded", ""),
        (DOWN, [-300.0, 1.0], "unbounded", ""),
        (DOWN, [-300.0, 1.0], "converged", "false"),
    ],
)
def test_the_judge_is_right_about_known_points(problem, x, status, kind):
    assert judge(problem, ending(problem, x, status)).kind == kind


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("x", "changes"),
    [
        ([0.0, 1.0, 0.0], {"value": -1.0 + 1e-9}),
        ([0.0, 1.0, 0.0], {"value": np.nan}),
        ([0.0, 1.0, 0.0], {"message": "Converged"}),
        ([0.0, 9.0, 0.0], {}),
    ],
)
def test_numbers_that_are_wrong_are_found(x, changes):
    assert judge(WELL, ending(WELL, x, "converged", **changes)).kind == "false"


def test_the_reference_descends_a_valley_to_its_end():
    problem = plain_problem(valley, [-1.2, 1.0], 100.0, scale=100.0)
    end = Reference(problem).descend(problem.x0)
    np.testing.assert_allclose(end.x, 1.0, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_status_is_false(family):
    runs = [judged(family, seed) for seed in SEEDS]
    wrong = [run for run in runs if run.kind == "false"]
    assert not wrong, f"{len(wrong)} of {len(runs)} are false:\n{table(wrong)}"
