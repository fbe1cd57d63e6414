"""The time that JAX spends on compiling is counted once, for each thread on its own."""

import threading

import jax
import jax.numpy as jnp
import pytest

import cfgd
from cfgd.solve.compiling import EVENTS, Compilations, not_counted, seconds_compiling

HOUR = 3600.0


def report(event=f"{EVENTS}backend_compile_duration", seconds=HOUR):
    """Report that a compilation has ended, as JAX does."""
    jax.monitoring.record_event_duration_secs(event, seconds, fun_name="jit(any_name)")


def in_a_thread(action):
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def counted(action):
    """Return the seconds that are counted in a thread of its own."""
    seconds = []

    def run():
        before = seconds_compiling()
        action()
        seconds.append(seconds_compiling() - before)

    in_a_thread(run)
    return seconds[0]


def test_an_inner_interval_is_counted_once():
    compilations = Compilations()
    for start, end, total in [(2, 3, 1), (4, 5, 2), (1, 6, 5), (7, 8, 6), (6.5, 9, 7.5)]:
        compilations.add(start, end)
        assert compilations.seconds == total


def test_intervals_that_touch_are_both_counted():
    compilations = Compilations()
    compilations.add(1, 2)
    compilations.add(2, 4)
    assert compilations.seconds == 3


@pytest.mark.parametrize("stage", ["jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile"])
def test_programs_of_every_name_are_counted(stage):
    assert counted(lambda: report(f"{EVENTS}{stage}_duration")) == pytest.approx(HOUR)


def test_events_of_other_kinds_are_not_counted():
    assert counted(lambda: report("/jax/compilation_cache/compile_time_saved_sec")) == 0


def test_other_threads_are_not_counted():
    assert counted(lambda: in_a_thread(report)) == 0


def test_what_is_excluded_is_not_counted():
    def action():
        with not_counted():
            report()

    assert counted(action) == 0


def test_a_run_that_compiles_and_one_that_does_not():
    def fresh(x):
        return jnp.sum((x - 1) ** 2 * (1 + x**2))

    def run():
        return cfgd.minimize(fresh, [0.0, 3.0], cfgd.AdaptiveTerminal(gamma=-0.1))

    assert run().compile_seconds > 0
    assert run().compile_seconds == 0


def test_a_callback_that_compiles_is_not_counted():
    f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    solution = cfgd.minimize(
        f, [0.0, 0.0], cfgd.GradientDescent(), max_iterations=3, callback=lambda _: report()
    )
    assert solution.compile_seconds < HOUR / 2
