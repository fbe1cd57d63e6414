"""A stopped run resumes from its checkpoint bit for bit."""

import contextlib

import numpy as np
import pytest
from fake_clock import fake_clock
from resumed import LOGISTIC, MEMORY, QUADRATIC, same
from solver_cases import CASES, SWEPT, valley

import cfgd
from cfgd.methods.auto.oracle import Oracle
from cfgd.solve import checkpoint_file
from problems import quick

PROBED = cfgd.AdaptiveTerminal(gamma=-0.1)
STAGES = [cfgd.Stage(30, gamma=1.0), cfgd.Stage(60, gamma=0.0)]
COMPILED = {
    "a function": (valley, np.zeros(6), cfgd.AdaptiveTerminal(gamma=-0.1, nodes=3)),
    "a quadratic": (QUADRATIC, np.ones(12), MEMORY),
    "stages": (QUADRATIC, np.ones(12), cfgd.AdaptiveOrder(STAGES, np.zeros(12))),
    "random probes": (cfgd.Local(valley, "hutchinson", key=3), np.zeros(6), PROBED),
}
AUTO = {name: (objective, starts[0], None) for name, (objective, starts) in CASES.items()}
AUTO["L-BFGS on a linear model"] = (LOGISTIC, np.zeros(5), cfgd.Auto("lbfgs"))
FEW = ["a quadratic"]


@pytest.mark.one_case
@pytest.mark.parametrize(("objective", "x0", "method"), quick(COMPILED | AUTO, [*AUTO, *FEW]))
def test_a_run_resumes_bit_for_bit(objective, x0, method, tmp_path):
    options = {"max_iterations": 90, "record": {"first": lambda x: x[0]}, "tolerance": 1e-13}
    whole = cfgd.minimize(objective, x0, method, **options)
    file = tmp_path / "run.npz"
    for stop in (1, 3, 8, 90):
        part = cfgd.minimize(
            objective, x0, method, checkpoint=file, **options | {"max_iterations": stop}
        )
        assert part.iterations == min(stop, whole.iterations)
    same(part, whole)
    again = cfgd.minimize(objective, x0, method, checkpoint=file, **options)
    same(again, whole)


@pytest.mark.slow
def test_a_sweep_resumes_bit_for_bit(tmp_path):
    methods = cfgd.AdaptiveTerminal(gamma=[-0.3, -0.1, 0.0])
    options = {"max_iterations": 200, "record": {"first": lambda x: x[0]}}
    whole = cfgd.sweep(QUADRATIC, np.ones(12), methods, **options)
    file = tmp_path / "sweep.npz"
    for stop in (8, 40, 200):
        part = cfgd.sweep(
            QUADRATIC, np.ones(12), methods, checkpoint=file, **options | {"max_iterations": stop}
        )
    for one, other in zip(part, whole, strict=True):
        same(one, other)


@pytest.mark.parametrize(("objective", "starts"), quick(SWEPT, ["variable projection"]))
def test_a_sweep_of_auto_resumes_bit_for_bit(objective, starts, tmp_path):
    options = {"max_iterations": 60, "record": {"first": lambda x: x[0]}, "tolerance": 1e-13}
    whole = cfgd.sweep(objective, starts, cfgd.Auto(), **options)
    for stop in (1, 5, 60):
        part = cfgd.sweep(
            objective, starts, cfgd.Auto(),
            checkpoint=tmp_path / "sweep.npz", **options | {"max_iterations": stop},
        )  # fmt: skip
    for one, other in zip(part, whole, strict=True):
        same(one, other)


@contextlib.contextmanager
def slow_evaluations():
    """Let a second pass before every evaluation or product of Auto's solvers."""
    check = Oracle.check_stop

    def ticking(self):
        clock.advance(1.0)
        check(self)

    with fake_clock() as clock, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Oracle, "check_stop", ticking)
        yield


ONCE = [name for name in CASES if "rescaled" not in name]


@pytest.mark.parametrize(("objective", "starts"), quick(CASES, ONCE))
def test_a_run_resumes_after_a_stop_in_the_middle_of_a_step(objective, starts, tmp_path):
    options = {"max_iterations": 60, "tolerance": 1e-13, "every": 3}
    whole = cfgd.minimize(objective, starts[0], **options)
    with slow_evaluations():
        for seconds in (2.5, 6.5, 11.5, 20.5, 1e9):
            part = cfgd.minimize(
                objective, starts[0], time_limit=seconds, checkpoint=tmp_path / "run.npz", **options
            )
    same(part, whole)


@pytest.mark.slow
def test_a_sweep_resumes_after_a_stop_between_its_runs(tmp_path):
    """Some runs are then an iteration ahead of others."""
    objective, starts = CASES["L-BFGS"]
    whole = cfgd.sweep(objective, starts, cfgd.Auto(), max_iterations=30)
    stopped = set()
    with slow_evaluations():
        for seconds in (2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1e9):
            part = cfgd.sweep(
                objective, starts, cfgd.Auto(), max_iterations=30,
                time_limit=seconds, checkpoint=tmp_path / "run.npz",
            )  # fmt: skip
            stopped.add(part.iterations[0] - part.iterations[1])
    assert 1 in stopped
    for one, other in zip(part, whole, strict=True):
        same(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, MEMORY], ids=["on the host", "compiled"])
def test_rows_of_the_history_stay_multiples_of_every(method, tmp_path):
    """A run that stopped in between has a row there, which a longer run does not have."""
    options = {"every": 5, "tolerance": 0, "record": {"first": lambda x: x[0]}}
    file, (f, starts) = tmp_path / "run.npz", CASES["L-BFGS"]
    part = cfgd.minimize(f, starts[0], method, max_iterations=7, checkpoint=file, **options)
    np.testing.assert_array_equal(part.history["iteration"], [0, 5, 7])
    part = cfgd.minimize(f, starts[0], method, max_iterations=22, checkpoint=file, **options)
    np.testing.assert_array_equal(part.history["iteration"], [0, 5, 10, 15, 20, 22])
    same(part, cfgd.minimize(f, starts[0], method, max_iterations=22, **options))


# Seconds between checkpoints, seconds that one takes, and the iterations after which one is written
# if an iteration takes a second. A run of 20 iterations writes another one at its end.
INTERVALS = {
    "at the end only": (3600, 0.0, []),
    "every second": (0, 0.0, [*range(1, 20)]),
    "every five seconds": (5, 0.0, [5, 10, 15]),
    # after one that took 1/16 s none is written for 100/16 s: the run may lose one percent
    "a slow disk": (0, 0.0625, [1, 8, 15]),
}


@pytest.mark.parametrize(("every", "takes", "wanted"), INTERVALS.values(), ids=INTERVALS)
def test_intervals_between_two_files(every, takes, wanted, tmp_path, monkeypatch):
    iterations, written = [0], []

    def next_second(solution):
        clock.advance(1.0)
        iterations.append(solution.iterations)

    def write(*args):
        clock.advance(takes)
        written.append(iterations[-1])

    monkeypatch.setattr("cfgd.solve.checkpoint.write", write)
    with fake_clock() as clock:
        cfgd.minimize(
            valley, np.zeros(6), max_iterations=20, tolerance=0, callback=next_second,
            checkpoint=tmp_path / "a", checkpoint_every=every,
        )  # fmt: skip
    assert written == [*wanted, 19]  # there is no callback after the last iteration


@pytest.mark.slow
def test_a_run_resumes_after_its_callback_has_stopped_it(tmp_path):
    def stop(solution):
        if solution.iterations >= 7:
            raise StopIteration

    file = tmp_path / "run.npz"
    part = cfgd.minimize(valley, np.zeros(6), callback=stop, checkpoint=file)
    assert part.status.name == "callback"
    same(cfgd.minimize(valley, np.zeros(6), checkpoint=file), cfgd.minimize(valley, np.zeros(6)))


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_run_shorter_than_a_block_leaves_a_checkpoint(most, tmp_path):
    """Four iterations of a quadratic are one block; the start is saved where none is complete."""
    file = tmp_path / "run.npz"
    cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, max_iterations=most, checkpoint=file)
    assert file.exists()
    part = cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, max_iterations=16, checkpoint=file)
    same(part, cfgd.minimize(QUADRATIC, np.ones(12), MEMORY, max_iterations=16))


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_file.np, "savez", full)
    with pytest.warns(UserWarning, match="could not be written: .*No space left"):
        assert cfgd.minimize(valley, np.zeros(3), checkpoint=tmp_path / "run.npz").success
    assert list(tmp_path.iterdir()) == []
