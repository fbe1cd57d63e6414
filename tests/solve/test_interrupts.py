"""Ctrl-C inside functions of the user, in all kinds of calls."""

import signal
import threading

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import cfgd
from cfgd import Status
from cfgd.integrations.scipy import auto, least_squares
from cfgd.objectives.linear.design import Dense

X0 = np.array([0.0, 1.0])
DESCENT = cfgd.GradientDescent(cfgd.FixedStep(1e-3))
TARGET = np.array([3.0, -1.0])


@pytest.fixture(autouse=True)
def ctrl_c():
    """Install Python's own handler, which a job in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press():
    """Do what Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


def interrupt():
    """Do what Ctrl-C does to the function that is running, in whichever thread JAX calls it."""
    raise KeyboardInterrupt


def value_of(x):
    return float(np.sum((x - TARGET) ** 4))


class Interrupted:
    """A function that presses Ctrl-C in evaluation `at`, and notes what it does after that."""

    def __init__(self, at, press=press):
        self.at, self.press, self.calls, self.later = at, press, 0, []

    def __call__(self, x):
        self.calls += 1
        if self.calls >= self.at:
            self.press()
            self.later.append(x)  # the code goes on where the signal only set a flag
        return value_of(x), 4 * (x - TARGET) ** 3


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("method", "how"), [(cfgd.Auto(), press), (DESCENT, interrupt)], ids=["host", "compiled"]
)
def test_ctrl_c_inside_an_external_function(method, how):
    f = Interrupted(at=6, press=how)
    ends = cfgd.minimize(cfgd.External(f), X0, method, tolerance=0, max_iterations=1000)
    assert ends.status is Status.interrupted
    assert (f.calls, f.later) == (6, [])  # it was left at once, and not called for the solution
    assert ends.value == value_of(ends.x) < value_of(X0)
    gradient = 4 * (ends.x - TARGET) ** 3
    np.testing.assert_allclose(ends.gradient_norm, np.linalg.norm(gradient), rtol=1e-12)
    assert ends.history["iteration"][-1] == ends.iterations


def test_ctrl_c_in_a_chunk_of_many_iterations_keeps_its_best_point():
    """Of a chunk that was left, points count and iterations do not."""
    f = Interrupted(at=60, press=interrupt)
    ends = cfgd.minimize(
        cfgd.External(f), X0, DESCENT, tolerance=0, every=40, callback=lambda so_far: None
    )
    assert ends.iterations == ends.history["iteration"][-1] == 40
    assert ends.value == value_of(ends.x) < ends.history["value"][-1]
    gradient = 4 * (ends.x - TARGET) ** 3
    np.testing.assert_allclose(ends.gradient_norm, np.linalg.norm(gradient), rtol=1e-12)
    assert f.later == []


def test_ctrl_c_inside_the_first_evaluation_returns_the_start():
    f = Interrupted(at=1)
    ends = cfgd.minimize(cfgd.External(f), [0.0, 1.0])
    assert ends.status is Status.interrupted
    assert f.later == []
    assert "not been evaluated" in ends.message
    np.testing.assert_array_equal(ends.x, [0.0, 1.0])
    assert np.isnan(ends.value)
    with pytest.raises(KeyboardInterrupt):  # which setting would it be?
        cfgd.sweep(cfgd.External(Interrupted(at=1)), [0.0, 1.0], cfgd.Auto())


def test_an_interrupted_run_with_a_checkpoint_says_that_the_same_call_resumes(tmp_path):
    file, sentence = tmp_path / "run.npz", "The same call resumes from `checkpoint`."
    ends = cfgd.minimize(cfgd.External(Interrupted(at=6)), X0, tolerance=0, checkpoint=file)
    assert ends.status is Status.interrupted
    assert sentence in ends.message
    alone = cfgd.minimize(cfgd.External(Interrupted(at=6)), X0, tolerance=0)
    assert sentence not in alone.message


def test_ctrl_c_in_a_sweep():
    f = Interrupted(at=15, press=interrupt)
    steps = cfgd.GradientDescent(cfgd.FixedStep(np.array([1e-3, 2e-3])))
    ends = cfgd.sweep(cfgd.External(f), X0, steps, tolerance=0)
    assert ends.status == 2 * [Status.interrupted]
    assert (f.calls, f.later) == (15, [])
    for end in ends:
        assert end.value == value_of(end.x) < value_of(X0)


def test_ctrl_c_while_a_function_is_traced():
    later = []

    def fresh(x):
        press()
        later.append(x)
        return jnp.sum(x**2)

    ends = cfgd.minimize(fresh, [0.1, 0.2])
    assert ends.status is Status.interrupted
    assert later == []
    np.testing.assert_array_equal(ends.x, [0.1, 0.2])


def test_ctrl_c_while_a_recorded_function_is_traced():
    def recorded(x):
        press()
        raise AssertionError

    f = cfgd.Quadratic(np.eye(2), np.ones(2))
    assert cfgd.minimize(f, X0, record={"r": recorded}).status is Status.interrupted


def test_ctrl_c_inside_a_callback():
    later = []

    def callback(so_far):
        if so_far.iterations == 3:
            press()
            later.append(so_far)

    f = cfgd.Quadratic(np.diag([1.0, 10.0]), [1.0, 1.0])
    ends = cfgd.minimize(f, [1.0, 2.0], DESCENT, callback=callback)
    assert (ends.status, ends.iterations, later) == (Status.interrupted, 3, [])
    assert ends.value == pytest.approx(f.value(ends.x), rel=1e-14)


def test_a_second_ctrl_c_raises_with_the_solution():
    calls = []

    def stubborn(x):
        calls.append(x)
        if len(calls) == 6:
            try:
                press()
            except KeyboardInterrupt:
                press()
        return value_of(x), 4 * (x - TARGET) ** 3

    with pytest.raises(KeyboardInterrupt) as raised:
        cfgd.minimize(cfgd.External(stubborn), X0)
    found = raised.value.solution
    assert found.status is Status.interrupted
    assert len(calls) == 6
    assert found.value == value_of(found.x) < value_of(X0)


def test_a_second_ctrl_c_inside_the_library_raises_with_the_solution(monkeypatch, tmp_path):
    """While the checkpoint is written after the first one."""
    monkeypatch.setattr("cfgd.solve.checkpoint.Checkpoint.write", lambda *_: press())
    f = cfgd.External(Interrupted(at=6))
    with pytest.raises(KeyboardInterrupt) as raised:
        cfgd.minimize(f, X0, checkpoint=tmp_path / "run.npz")
    found = raised.value.solution
    assert found.value == value_of(found.x) < value_of(X0)


def test_a_swallowed_ctrl_c_ends_the_run_after_the_evaluation():
    f = Interrupted(at=6)

    def careless(x):
        try:
            return f(x)
        except KeyboardInterrupt:
            return value_of(x), 4 * (x - TARGET) ** 3

    ends = cfgd.minimize(cfgd.External(careless), X0)
    assert (ends.status, f.calls) == (Status.interrupted, 6)


def test_a_run_resumes_after_ctrl_c(tmp_path):
    whole = cfgd.minimize(cfgd.External(Interrupted(at=10**9)), X0)
    file = tmp_path / "run.npz"
    ends = cfgd.minimize(cfgd.External(Interrupted(at=6)), X0, checkpoint=file)
    assert 0 < ends.iterations < whole.iterations
    resumed = cfgd.minimize(cfgd.External(Interrupted(at=10**9)), X0, checkpoint=file)
    assert resumed.iterations == whole.iterations
    np.testing.assert_array_equal(resumed.x, whole.x)


def test_a_handler_of_the_user_is_called_and_stays():
    pressed = []

    def own(number, frame):
        pressed.append(number)

    signal.signal(signal.SIGINT, own)
    f = Interrupted(at=3)
    ends = cfgd.minimize(cfgd.External(f), X0, max_iterations=4)
    assert signal.getsignal(signal.SIGINT) is own
    assert ends.status is Status.max_iterations
    assert len(pressed) == len(f.later) > 0
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_handler_that_a_callback_installs_stays():
    own = lambda number, frame: None  # noqa: E731

    def callback(so_far):
        signal.signal(signal.SIGINT, own)

    f = cfgd.Quadratic(np.eye(2), np.ones(2))
    cfgd.minimize(f, X0, DESCENT, callback=callback, max_iterations=2)
    assert signal.getsignal(signal.SIGINT) is own
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_in_a_run_inside_of_a_run_ends_both():
    inner = []

    def callback(so_far):
        inner.append(cfgd.minimize(cfgd.External(Interrupted(at=6)), X0))

    f = cfgd.Quadratic(np.diag([1.0, 10.0]), [1.0, 1.0])
    ends = cfgd.minimize(f, [1.0, 2.0], DESCENT, callback=callback)
    assert [end.status for end in inner] == [Status.interrupted]
    assert (ends.status, ends.iterations) == (Status.interrupted, 1)


def test_a_run_in_a_thread_leaves_signals_alone():
    handlers, found = [], []

    def f(x):
        handlers.append(signal.getsignal(signal.SIGINT))
        return value_of(x), 4 * (x - TARGET) ** 3

    thread = threading.Thread(target=lambda: found.append(cfgd.minimize(cfgd.External(f), X0)))
    thread.start()
    thread.join()
    assert found[0].success
    assert set(handlers) == {signal.default_int_handler}


@pytest.mark.parametrize("while_block", ["is waited for", "is used"])
def test_ctrl_c_while_a_block_of_rows_is_read(while_block, monkeypatch):
    """Another thread reads the next one, and may take long."""
    passes, may_end = [], threading.Event()
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = (X @ [1.0, -1.0, 2.0] + random.logistic(size=60) > 0).astype(float)

    times = Dense.times

    def times_then_wait(X, w):
        if while_block == "is used" and len(passes) == 4:
            may_end.wait(120)
        return times(X, w)

    monkeypatch.setattr(Dense, "times", times_then_wait)

    def blocks():
        passes.append(None)
        yield X[:30], y[:30]
        if len(passes) == 4:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            may_end.wait(120)  # a limit for a failure
            passes.append("waited for")
        yield X[30:], y[30:]

    f = cfgd.Blocks(blocks)
    ends = cfgd.minimize(f, np.zeros(3))
    assert ends.status is Status.interrupted
    assert len(passes) == 4
    may_end.set()
    whole = cfgd.LinearModel(X, y)
    assert ends.value == pytest.approx(whole.value(ends.x), rel=1e-12)
    assert ends.value < whole.value(np.zeros(3))


def test_ctrl_c_in_scipy_and_curve_fit():
    f = Interrupted(at=6)
    found = scipy.optimize.minimize(f, X0, jac=True, method=auto)
    assert not found.success
    assert found.message.startswith("Interrupted")
    assert f.later == []

    def residuals(x):
        calls.append(x)
        if len(calls) == 6:
            press()
            raise AssertionError
        return np.array([x[0] - 1, 10 * (x[1] - x[0] ** 2)])

    calls = []
    found = least_squares(residuals, X0)
    assert found.message.startswith("Interrupted")

    def model(t, a, b):
        calls.append(t)
        if len(calls) == 3:
            press()
            raise AssertionError
        return a * jnp.exp(-b * t)

    calls = []
    t = np.linspace(0, 1, 20)
    fit = cfgd.curve_fit(model, t, 2 * np.exp(-3 * t), [1.0, 1.0])
    assert fit.solution.status is Status.interrupted
    assert fit.warnings[0].startswith("The fit did not converge: Interrupted")
