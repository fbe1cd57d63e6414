"""What a solution prints, and that its arrays may be written into."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solutions import PLAIN, STATUSES, SWEPT, one, swept

import cfgd
from cfgd.status import Status


def test_repr():
    assert repr(one()).splitlines() == [
        "Solution: converged (Auto: L-BFGS)",
        "  value -1.25, gradient norm 3.14e-09",
        "  28 iterations, 57 gradients, 0.25 s and 1.25 s of compilation",
    ]
    assert str(one(how="")).splitlines()[0] == "Solution: converged"


def test_repr_of_a_sweep():
    assert repr(swept()).splitlines() == [
        "Solution of a sweep of 3 settings: 2 converged, 1 stalled (Auto: L-BFGS)",
        "  least value -2 in setting 1, gradient norm 0.125",
        "  at most 30 iterations, 66 gradients in all, 0.25 s and 1.25 s of compilation",
    ]
    assert "no value is a number" in repr(swept(value=np.full(3, np.nan)))
    assert repr(swept()[1]).splitlines()[1] == "  value -2, gradient norm 0.125"


@pytest.mark.parametrize("status", Status)
def test_a_solution_is_true_if_it_converged(status):
    solution = one(status=status)
    assert bool(solution) is solution.success is (status is Status.converged)


def test_a_sweep_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"^A sweep is neither .* use `\.success`, an array, with"):
        bool(swept())
    np.testing.assert_array_equal(swept().success, [True, False, True])


def test_the_message_has_the_numbers():
    assert one().message == f"{Status.converged.value} The norm fell from 2 to 3.14e-09."
    assert one(details="").message == Status.converged.value
    first, second, _ = swept().message
    assert first == f"{Status.converged.value} From 1 to 2."
    assert second == Status.stalled.value
    assert swept(details="").message == [status.value for status in STATUSES]
    assert swept()[2].details == "From 3 to 4."


# ------------------------------------------------------------------------------------- arrays


def test_arrays_are_copied_and_can_be_written_into():
    view = np.asarray(jnp.ones(2))
    assert not view.flags.writeable
    x = {"a": view, "b": (jnp.ones(2), None), "c": np.zeros(3)}
    solution = one(x=x, history={"iteration": np.arange(2), "value": view})
    solution.x["a"][0] = solution.history["value"][0] = 7.0
    assert view[0] == 1.0
    assert isinstance(solution.x["b"][0], jax.Array)
    mine = np.zeros(2)
    assert not np.shares_memory(cfgd.Solution(**PLAIN | {"x": mine}).x, mine)


def test_a_run_gives_writable_arrays():
    f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    solution = cfgd.minimize(f, [0.0, 0.0])
    assert solution
    solution.x[:] = 0.0
    solution.history["value"][0] = 1.0
    lower = cfgd.sweep(f, [[0.0, 0.0], [5.0, 5.0]], cfgd.Auto())
    for array in (lower.x, lower.value, lower.iterations, *lower.history.values()):
        array[0] = 1


def test_a_setting_has_the_types_of_a_single_run():
    setting = swept()[1]
    for name in ("value", "gradient_norm", "iterations", "evaluations", "resets"):
        assert type(getattr(setting, name)) is type(getattr(one(), name))
    assert type(swept(x=np.arange(3.0))[1].x) is np.ndarray
    assert swept(resets=0)[1].resets == 0


def test_writing_into_a_setting_does_not_change_the_sweep():
    sweep = swept()
    setting = sweep[1]
    setting.x[0] = 100.0
    assert sweep.x[1, 0] == SWEPT["x"][1, 0]
