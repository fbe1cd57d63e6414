"""Each of several runs at a time gets the errors of its own function alone."""

import threading

import numpy as np
import pytest

import cfgd
from cfgd.objectives.external import pop_error
from cfgd.solve import compiled_loop


class TimesUpError(Exception):
    pass


@pytest.mark.every_case
@pytest.mark.parametrize("shared", [False, True], ids=["own functions", "one function"])
def test_each_of_two_concurrent_runs_gets_its_own_error(shared, monkeypatch):
    """Both functions have failed before either compiled loop asks for its error."""
    failed, both_failed = set(), threading.Event()

    def wait_and_pop(run):
        if threading.current_thread().name in failed:
            both_failed.wait(60)
        return pop_error(run)

    monkeypatch.setattr(compiled_loop, "pop_error", wait_and_pop)

    def function():
        calls = {}

        def both(x):
            name = "first" if x[1] > 0 else "second"  # x[1] stays where it is
            calls[name] = calls.get(name, 0) + 1
            if calls[name] == 5:
                failed.add(name)
                if len(failed) == 2:
                    both_failed.set()
                raise TimesUpError(name)
            return x[0] ** 4, np.array([4 * x[0] ** 3, 0.0])

        return cfgd.External(both)

    one = function()
    objectives = (one, one) if shared else (one, function())
    raised = {}

    def run(objective, x0):
        try:
            cfgd.minimize(objective, x0, cfgd.GradientDescent(cfgd.FixedStep(1e-3)))
        except BaseException as error:
            raised[threading.current_thread().name] = error

    threads = [
        threading.Thread(target=run, name=name, args=(objective, [3.0, sign]))
        for name, objective, sign in zip(("first", "second"), objectives, (1.0, -1.0), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {name: (type(error), str(error)) for name, error in raised.items()} == {
        "first": (TimesUpError, "first"),
        "second": (TimesUpError, "second"),
    }
    for error in raised.values():
        solution = error.solution
        assert solution.value == pytest.approx(solution.x[0] ** 4, rel=1e-12)


def test_an_error_outside_of_runs_is_raised_and_reaches_no_run():
    def fails(x):
        if x[0] > 5:
            raise TimesUpError
        return np.sum(x**4), 4 * x**3

    f = cfgd.External(fails)
    with pytest.raises(TimesUpError):
        f.gradient([6.0, 1.0])
    np.testing.assert_array_equal(f.gradient([2.0, 1.0]), [32.0, 4.0])
    method = cfgd.GradientDescent(cfgd.FixedStep(1e-3))
    assert cfgd.minimize(f, [3.0, 1.0], method, max_iterations=3).iterations == 3
