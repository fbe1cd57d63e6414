"""Levenberg-Marquardt in a trust region: its models, its steps, and what they cost."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import cfgd
from cfgd._core.records import changed
from cfgd.methods.auto import convergence_proof
from cfgd.methods.auto.levenberg_marquardt import LMState
from cfgd.methods.auto.quadratic_model import Secant, augmented_model, gauss_newton_model
from cfgd.methods.auto.state import Start
from cfgd.objectives import host
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.external_residuals import ExternalResiduals
from cfgd.objectives.programs import outline_of
from nist import NIST, residuals
from problems import few, identity

RNG = np.random.default_rng(3)
J = RNG.normal(size=(12, 4)) * [1, 30, 0.1, 2]
R = RNG.normal(size=12)
D = np.diag(J.T @ J) * [1, 2, 1, 5]
S = np.diag([0.5, 100.0, -0.001, 1.0])

# ---------------------------------------------------------------- models


def models():
    plain = gauss_newton_model(J, R, np.sqrt(D))
    return {"plain": (plain, J.T @ J), "augmented": (augmented_model(plain, S, R @ J), J.T @ J + S)}


@pytest.mark.every_case
@pytest.mark.parametrize("name", ["plain", "augmented"])
def test_steps_of_a_model_solve_the_damped_system(name):
    model, H = models()[name]
    g = R @ J
    np.testing.assert_allclose(model.step(model.undamped), np.linalg.solve(H, g), rtol=1e-9)
    z = model.damped(0.3)
    p = np.linalg.solve(H + 0.3 * np.diag(D), g)
    np.testing.assert_allclose(model.step(z), p, rtol=1e-9)
    assert np.linalg.norm(z) == pytest.approx(np.sqrt(p @ (D * p)))
    assert model.decrease(z) == pytest.approx(g @ p - p @ H @ p / 2)
    v = RNG.normal(size=4)
    expected = np.linalg.solve(H + 0.3 * np.diag(D), v)
    np.testing.assert_allclose(model.step(model.solve(v, 0.3)), expected, rtol=1e-9)


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.9])
def test_the_damping_gives_a_step_the_length_of_the_radius(share):
    model, _ = models()["plain"]
    whole = np.linalg.norm(model.undamped)
    length = np.linalg.norm(model.damped(model.damping_for(share * whole)))
    assert length == pytest.approx(share * whole, rel=0.1)
    assert model.damping_for(1.01 * whole) == 0


def test_no_step_is_taken_along_what_the_jacobian_does_not_see():
    double = np.column_stack([J, J[:, 0]])
    model = gauss_newton_model(double, R, np.ones(5))
    expected = np.linalg.pinv(double) @ R
    np.testing.assert_allclose(model.step(model.undamped), expected, rtol=1e-8)


def test_an_indefinite_matrix_is_no_model():
    plain = gauss_newton_model(J, R, np.sqrt(D))
    assert augmented_model(plain, -2 * J.T @ J, R @ J) is None


def test_the_secant_is_what_the_jacobian_changed_by():
    s, J_new, r_new = RNG.normal(size=4), J + 0.1 * RNG.normal(size=J.shape), R + J @ np.ones(4)
    if s @ (r_new @ J_new - R @ J) < 0:
        s = -s
    found = Secant(S, True).updated((J, R), (J_new, r_new), s, D).matrix
    np.testing.assert_allclose(found @ s, (J_new - J).T @ r_new, rtol=1e-9)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)


def test_a_secant_that_predicts_worse_is_not_used():
    """A linear model is exact without it."""
    s = RNG.normal(size=4)
    found = Secant(S, True).updated((J, R), (J, R + J @ s), s, D)
    assert not found.is_used


# ---------------------------------------------------------------- steps

T = np.linspace(0, 3, 12)
Y = 4 * np.exp(-0.9 * T) + 0.5 + 0.1 * np.random.default_rng(7).normal(size=12)
X0 = np.array([1.0, 0.2, 0.1])


def misfit(p):
    return p[0] * jnp.exp(-p[1] * T) + p[2] - Y


def by_hand(p):
    e = np.exp(-p[1] * T)
    return p[0] * e + p[2] - Y, np.stack([e, -p[0] * T * e, np.ones(12)], 1)


def test_the_first_step_is_as_long_as_the_start():
    """In the norm of D; (J'J + gamma D) p = g with the gamma of the history."""
    end = cfgd.minimize(cfgd.Residuals(misfit), X0, record={"x": identity, "gamma": "gamma"})
    r, J = by_hand(X0)
    D = np.diag(J.T @ J)
    p = np.linalg.solve(J.T @ J + end.history["gamma"][1] * np.diag(D), J.T @ r)
    np.testing.assert_allclose(end.history["x"][1], X0 - p, rtol=1e-9)
    assert np.sqrt(D @ p**2) == pytest.approx(np.sqrt(D @ X0**2), rel=0.1)


def test_a_pole_is_not_jumped():
    """Puromycin: the plain step from here leads beyond K = -x, whence there is no way back."""
    x = np.array([0.02, 0.02, 0.06, 0.06, 0.11, 0.11, 0.22, 0.22, 0.56, 0.56, 1.1, 1.1])
    y = np.array([76, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200.0])
    end = cfgd.minimize(cfgd.Residuals(lambda b: b[0] * x / (b[1] + x) - y), [38.4, 1.62])
    assert end.success
    assert 2 * end.value == pytest.approx(1195.4488144, rel=1e-9)  # R's data set `Puromycin`


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("name", ["Jennrich and Sampson", "Meyer"])
def test_a_flat_coordinate_does_not_run_away(name):
    """The first steps would move one coordinate to where the model no longer depends on it."""
    i = np.arange(1, 11)
    t = 50 + 5.0 * np.arange(16)
    y = np.array([34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744])
    y = np.concatenate([y, [8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872]])
    fn, x0, best = {
        "Jennrich and Sampson": (
            lambda p: 2 + 2 * i - jnp.exp(i * p[0]) - jnp.exp(i * p[1]),
            [0.28, 1.03],
            124.362182,
        ),
        "Meyer": (
            lambda b: b[0] * jnp.exp(b[1] / (t + b[2])) - y,
            [4.7193388140308, 475795.6889176654, 13625.518898724395],
            87.9458552,
        ),
    }[name]
    solution = cfgd.minimize(cfgd.Residuals(fn), np.array(x0))
    assert solution.success
    np.testing.assert_allclose(2 * solution.value, best, rtol=1e-8)


def test_exponentials_do_not_merge():
    f = cfgd.Residuals(residuals("Lanczos2"))
    for seed in range(5):
        factors = np.exp(0.3 * np.random.default_rng(seed).normal(size=6))
        end = cfgd.minimize(f, NIST["Lanczos2"]["start1"] * factors)
        assert end.success
        expected = NIST["Lanczos2"]["residual_sum_of_squares"]
        assert 2 * end.value == pytest.approx(expected, rel=1e-6)


def test_large_residuals_converge_superlinearly():
    """Gauss-Newton steps alone take 40 iterations; the secant sees the second-order part."""
    t = np.linspace(0, 10, 60)
    y = 3 * np.exp(-0.7 * t) + 1.5 * np.random.default_rng(20).normal(size=60)
    end = cfgd.minimize(cfgd.Residuals(lambda b: b[0] * jnp.exp(-b[1] * t) - y), [1.0, 1.0])
    assert end.success
    assert end.iterations <= 15


# ---------------------------------------------------------------- the end


def test_the_last_step_gives_all_digits():
    end = cfgd.minimize(cfgd.Residuals(misfit), X0)
    x = end.x.copy()
    for _ in range(5):  # Newton's method with the exact Hessian
        r, J = by_hand(x)
        e = np.exp(-x[1] * T)
        H = J.T @ J
        H[0, 1] += r @ (-T * e)
        H[1, 0] += r @ (-T * e)
        H[1, 1] += r @ (x[0] * T**2 * e)
        x = x - np.linalg.solve(H, J.T @ r)
    np.testing.assert_allclose(end.x, x, rtol=1e-11)


def symmetric(p):
    """Unchanged where p[0] changes its sign, with a saddle at (0, 1): J has full rank there."""
    return jnp.stack([jnp.exp(p[0]) - 3, jnp.exp(-p[0]) - 3, p[1] ** 2 - 1])


def test_a_saddle_on_a_symmetry_is_left():
    """The run stays at p[0] = 0, and converges fast."""
    end = cfgd.minimize(cfgd.Residuals(symmetric), [0.0, 5.0])
    assert end.success
    assert abs(end.x[0]) == pytest.approx(np.arccosh(1.5), rel=1e-9)


def test_without_the_probe_that_saddle_would_be_a_minimum(monkeypatch):
    monkeypatch.setattr(convergence_proof, "MOST_ALONG_PROBE", np.inf)
    end = cfgd.minimize(cfgd.Residuals(symmetric), [0.0, 5.0])
    assert end.x[0] == 0


TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(2, 2)))[0]


@pytest.mark.parametrize("turn", [np.eye(2), TURN], ids=["on an axis", "turned"])
def test_a_start_at_a_saddle_is_left(turn):
    """No steps have shown anything of the curvature there."""
    f = cfgd.Residuals(lambda p: symmetric(turn @ p))
    end = cfgd.minimize(f, turn.T @ [0.0, 1.0])
    assert end.success
    assert abs((turn @ end.x)[0]) == pytest.approx(np.arccosh(1.5), rel=1e-9)


class Counted:
    """Residuals and a Jacobian in NumPy that remember where they were evaluated."""

    def __init__(self):
        self.points, self.jacobians = [], []

    def residuals(self, p):
        self.points.append(tuple(p))
        return by_hand(p)[0]

    def jacobian(self, p):
        self.jacobians.append(tuple(p))
        return by_hand(p)[1]


STARTS = {"near": [3.0, 1.0, 0.0], "far": [1.0, 0.2, 0.1], "other": [8.0, 3.0, 2.0]}


@pytest.mark.parametrize("name", few(STARTS, 2))
def test_a_fit_takes_no_more_evaluations_than_minpack(name):
    """The end of a run included, and no point is evaluated twice."""
    f = Counted()
    end = cfgd.minimize(ExternalResiduals(f.residuals, f.jacobian), STARTS[name])
    assert end.success
    assert len(set(f.points)) == len(f.points)
    assert len(set(f.jacobians)) == len(f.jacobians)
    other = least_squares(
        lambda p: by_hand(p)[0], STARTS[name], lambda p: by_hand(p)[1], method="lm"
    )
    assert len(f.points) + len(f.jacobians) <= 1.15 * (other.nfev + other.njev) + 2


def test_a_start_at_the_minimum_takes_three_evaluations():
    """Itself, and two that tell it from a saddle."""
    x = cfgd.minimize(cfgd.Residuals(misfit), X0).x
    f = Counted()
    end = cfgd.minimize(ExternalResiduals(f.residuals, f.jacobian), x)
    assert end.success
    assert end.iterations == 0
    assert len(f.points) == len(f.jacobians) == 3


def test_the_rate_of_convergence_saves_the_last_steps():
    """Steps shrink by hundreds here: one that is predicted to change no digit is not taken."""
    f = Counted()
    end = cfgd.minimize(ExternalResiduals(f.residuals, f.jacobian), X0, record={"x": identity})
    errors = abs(end.history["x"] - end.x).max(1)
    assert (errors > 1e-8).sum() >= end.iterations - 1
    tight = cfgd.minimize(cfgd.Residuals(misfit), X0, tolerance=1e-13)
    np.testing.assert_allclose(end.x, tight.x, rtol=1e-8)


def test_a_step_that_leaves_the_box_ends_the_trust_region():
    """From there on steps minimise the model in the box."""
    end = cfgd.minimize(cfgd.Residuals(misfit), X0, bounds=([0.5, 0.0, 0.0], [3.0, 5.0, 1.0]))
    r = lambda p: by_hand(p)[0]  # noqa: E731
    other = least_squares(r, X0, bounds=([0.5, 0.0, 0.0], [3.0, 5.0, 1.0]), xtol=1e-15, ftol=1e-15)
    assert end.success
    assert end.active_mask[0] == 1
    np.testing.assert_allclose(end.x, other.x, rtol=1e-6)


def test_bounds_that_are_not_met_change_nothing():
    free = cfgd.minimize(cfgd.Residuals(misfit), X0)
    wide = cfgd.minimize(cfgd.Residuals(misfit), X0, bounds=([-50.0] * 3, [50.0] * 3))
    np.testing.assert_array_equal(free.x, wide.x)
    assert free.iterations == wide.iterations


def test_a_changed_record_is_a_copy():
    at = Evaluation(X0, np.float64(1), X0)
    state = LMState(
        evaluation=at, computed_value=at.value, norm2=np.float64(4), start=Start.of(at), scaling=X0
    )
    other = changed(state, norm2=np.float64(5), iteration=3)
    assert (state.norm2, state.iteration) == (4.0, 0)
    expected = dataclasses.replace(state, norm2=np.float64(5), iteration=3)
    assert repr(other) == repr(expected)
    assert vars(other).keys() == vars(expected).keys()


def test_a_new_function_compiles_one_program(caplog):
    with jax.log_compiles():
        end = cfgd.minimize(cfgd.Residuals(lambda p: misfit(p) * 1.0), X0)
    assert end.success
    compiled = [line for line in caplog.messages if line.startswith("Compiling")]
    assert len(compiled) == 1


def test_residuals_with_loops_are_compiled_with_all_optimisations():
    def by_scan(p):
        return jax.lax.scan(lambda c, t: (c, misfit(p)[0] + t), 0.0, jnp.zeros(4))[1]

    with jax.enable_x64(True):
        assert outline_of(cfgd.Residuals(by_scan), X0) == (4, True)
        assert outline_of(cfgd.Residuals(misfit), X0) == (12, False)


def test_a_large_jacobian_is_not_computed_at_every_trial(monkeypatch):
    """The steps are the same, with residuals and Jacobian by programs of their own."""
    expected = cfgd.minimize(cfgd.Residuals(misfit), X0)
    monkeypatch.setattr(host, "MOST_ENTRIES", 0)
    found = cfgd.minimize(cfgd.Residuals(misfit), X0)
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-12)


@pytest.mark.slow
def test_a_sum_of_many_peaks_is_fitted_as_well_as_by_scipy():
    """22 peaks of three parameters each, which overlap."""
    random = np.random.default_rng(3)
    x = np.linspace(0, 100, 1000)
    sizes, widths = random.uniform(1, 10, 22), random.uniform(0.8, 2, 22)
    centres = np.linspace(3, 97, 22) + random.normal(0, 0.8, 22)
    true = np.stack([sizes, centres, widths], 1)
    offsets = random.normal(size=true.shape) * [1.0, 0.6, 0.2]

    def peaks(b, xp):
        b = b.reshape(22, 3, 1)
        return (b[:, 0] * xp.exp(-0.5 * ((x - b[:, 1]) / b[:, 2]) ** 2)).sum(0)

    y = peaks(true, np) + 0.3 * random.normal(size=1000)
    start = np.abs(true + offsets).ravel()
    end = cfgd.minimize(cfgd.Residuals(lambda b: peaks(b, jnp) - y), start)
    other = least_squares(lambda b: peaks(b, np) - y, start, x_scale="jac", max_nfev=300)
    assert end.success
    assert end.value <= (1 + 1e-6) * other.cost
    assert end.iterations <= 100


def test_a_parameter_without_effect_but_rounding_does_not_shorten_the_others():
    """Its column of the Jacobian is rounding errors, as that of a bias before a normalisation."""
    t = np.linspace(0, 4, 30)
    y = 3 * np.exp(-0.8 * t) + 0.5 + 0.3 * np.sin(9 * t)
    random = np.random.default_rng(7)

    def fn(p):
        return p[0] * np.exp(-p[1] * t) + p[2] - y

    def jacobian(p):
        decay = np.exp(-p[1] * t)
        columns = [decay, -t * p[0] * decay, np.ones_like(t), 1e-17 * random.normal(size=t.size)]
        return np.stack(columns, axis=1)

    start = np.array([0.7, 0.2, 0.1, 0.4])
    end = cfgd.minimize(ExternalResiduals(fn, jacobian), start, max_iterations=30)
    expected = least_squares(lambda p: fn([*p, 0]), start[:3], xtol=1e-15, ftol=1e-15)
    assert end.value == pytest.approx(expected.cost, rel=1e-4)
    np.testing.assert_allclose(end.x[:3], expected.x, rtol=0.02)
