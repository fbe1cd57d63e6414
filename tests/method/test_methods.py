"""Each method, iterate by iterate, against a plain loop in NumPy; then what the paper shows."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd import Status
from problems import (
    BOWL,
    FIGURE1,
    METHODS,
    PROBLEMS,
    SMOOTH_METHODS,
    STAGES,
    STEPS,
    WAVE_X0,
    A,
    C,
    Row,
    constant,
    few,
    identity,
    ill_conditioned,
    lagged,
    least_squares,
    look_on,
    quick,
    smooth_walk,
    walk,
    wave,
    wave_hessian,
    wave_value,
)

ITERATIONS = 20  # two blocks of eight and a half
CORE = ("gradient descent", "non-adaptive", "lag 2", "adaptive order")
# every row on the quadratic with the exact step; the four versions with all the rest
WALKS = {
    f"{problem}-{method}-{step}": (PROBLEMS[problem], METHODS[method], *STEPS[step])
    for problem in PROBLEMS
    for method in METHODS
    for step in STEPS
    if method in CORE or (problem, step) == ("quadratic", "exact")
}
# without `make slow`: each problem and each version with each step, each version on two problems
REST = ("lag 3", "lag 4", "lag 3, x0 before x0")
QUICK = {
    "quadratic-non-adaptive-fixed",
    "tall-gradient descent-fixed",
    "tall-non-adaptive-exact",
    "wide-adaptive order-fixed",
    "wide-lag 2-fixed",
} | {f"quadratic-{row}-exact" for row in METHODS if row not in REST}


def points_of(problem, method, iterations=ITERATIONS, **options):
    """x_0, ..., x_iterations as the solver makes them."""
    solution = cfgd.minimize(
        problem.objective,
        problem.x0,
        method,
        max_iterations=iterations,
        tolerance=0,
        record={"x": identity},
        **options,
    )
    assert solution.iterations == iterations
    return solution.history["x"]


@pytest.mark.parametrize(("problem", "row", "step", "eta"), quick(WALKS, QUICK))
def test_iterates_are_those_of_a_plain_loop(problem, row, step, eta):
    got = points_of(problem, row.make(step), callback=look_on)
    np.testing.assert_allclose(got, walk(problem, row, eta, ITERATIONS), rtol=1e-10, atol=1e-11)


BLOCKS = {"wide-lag 2": (PROBLEMS["wide"], METHODS["lag 2"])} | {
    f"quadratic-{name}": (BOWL, METHODS[name]) for name in ("lag 1", *CORE)
}


IN_BLOCKS = ["wide-lag 2", "quadratic-adaptive order"]


@pytest.mark.parametrize(("problem", "row"), quick(BLOCKS, IN_BLOCKS))
def test_iterates_are_those_of_a_plain_loop_in_blocks_too(problem, row):
    got = points_of(problem, row.make(cfgd.ExactStep()))
    np.testing.assert_allclose(got, walk(problem, row, None, ITERATIONS), rtol=1e-10, atol=1e-11)


def test_rows_of_the_table_differ():
    """No two methods make the same iterates, so that none can pass for another."""
    ends = {name: walk(BOWL, row, None, 8)[-1] for name, row in METHODS.items()}
    for name, end in ends.items():
        gaps = [np.linalg.norm(end - other) for key, other in ends.items() if key != name]
        assert min(gaps) > 1e-3, name


ONE_AS_ANOTHER = {
    "gamma 0 makes the adaptive terminal gradient descent": lagged(2, 0.0, METHODS["lag 2"].past),
    "gamma 0 makes the non-adaptive version gradient descent": Row(
        lambda step: cfgd.NonAdaptive(C, gamma=0.0, step=step)
    ),
    "beta that cancels alpha does so too": Row(
        lambda step: cfgd.NonAdaptive(C, 0.5, beta=1 / 3, step=step)
    ),
}


@pytest.mark.parametrize("row", ONE_AS_ANOTHER.values(), ids=ONE_AS_ANOTHER)
@pytest.mark.parametrize(("step", "eta"), quick(STEPS, ["exact"]))
def test_gradient_descent_as_a_special_case(row, step, eta):
    want = walk(BOWL, METHODS["gradient descent"], eta, ITERATIONS)
    got = points_of(BOWL, row.make(step), callback=look_on)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)


def test_a_point_is_past_enough_for_lag_1():
    row = METHODS["lag 1"]
    got = points_of(BOWL, cfgd.AdaptiveTerminal(gamma=-0.25, past=row.past[0]))
    np.testing.assert_allclose(got, walk(BOWL, row, None, ITERATIONS), rtol=1e-10)


def test_a_number_is_a_terminal():
    row = Row(None, constant(0.4), terminal=np.full(3, 0.7))
    got = points_of(BOWL, cfgd.NonAdaptive(0.7, 0.3, gamma=0.4))
    np.testing.assert_allclose(got, walk(BOWL, row, None, ITERATIONS), rtol=1e-10)


def test_a_step_for_each_coordinate():
    eta = np.array([0.1, 0.2, 0.4])
    for problem in (BOWL, PROBLEMS["wide"]):
        got = points_of(problem, cfgd.GradientDescent(cfgd.FixedStep(eta)), callback=look_on)
        want = walk(problem, METHODS["gradient descent"], eta, ITERATIONS)
        np.testing.assert_allclose(got, want, rtol=1e-10)


# ---------------------------------------------------------------- functions that are no quadratics


def exact(x, d, slope, last):
    """The Newton length along d, halved until the value decreases enough."""
    eta = slope / abs(d @ wave_hessian(x) @ d)
    while wave_value(x - eta * d) > wave_value(x) - 1e-4 * eta * slope:
        eta /= 2
    return eta


def exact_on_what_d_descends(x, d, slope, last):
    """With a fixed terminal d is the gradient of f + gamma/2 |x - c|^2_D, to second order."""
    H = wave_hessian(x)
    return d @ d / abs(d @ (H + 0.4 * np.diag(np.diag(H))) @ d)


CANDIDATES = [t * 10.0**-power for power in range(1, 9) for t in (1, 0.75, 0.5, 0.25)]


def grid_on(value):
    return lambda x, d, slope, last: min(CANDIDATES, key=lambda eta: value(x - eta * d))


def armijo_on(value):
    """From twice the last step down, by halves."""

    def choose(x, d, slope, last):
        eta = 1.0 if last is None else 2 * last
        while value(x - eta * d) > value(x) - 1e-4 * eta * slope:
            eta /= 2
        return eta

    return choose


SMOOTH_WALKS = {
    "gradient descent, exact": ("gradient descent", cfgd.ExactStep(), exact),
    "adaptive terminal, exact": ("adaptive terminal", cfgd.ExactStep(), exact),
    "non-adaptive, exact": ("non-adaptive", cfgd.ExactStep(), exact_on_what_d_descends),
    "adaptive terminal, fixed": ("adaptive terminal", cfgd.FixedStep(0.07), lambda *_: 0.07),
    "adaptive terminal, grid": ("adaptive terminal", cfgd.GridStep(), grid_on(wave_value)),
    "adaptive terminal, armijo": ("adaptive terminal", cfgd.ArmijoStep(), armijo_on(wave_value)),
}


SEARCHES = {"grid": (cfgd.GridStep(), grid_on), "armijo": (cfgd.ArmijoStep(), armijo_on)}


SEARCHED = {
    f"{step}-{problem}": (*SEARCHES[step], PROBLEMS[problem])
    for step in SEARCHES
    for problem in ("quadratic", "wide")
}


@pytest.mark.parametrize(
    ("step", "choose", "problem"), quick(SEARCHED, ["grid-quadratic", "armijo-wide"])
)
def test_searches_on_a_quadratic(step, choose, problem):
    """There values along the line follow from slope and curvature."""
    row = METHODS["lag 1"]
    got = points_of(problem, row.make(step), 8, callback=look_on)
    want = walk(problem, row, choose(problem.value), 8)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)


def smooth_points(method, iterations=12):
    solution = cfgd.minimize(
        wave,
        WAVE_X0,
        method,
        max_iterations=iterations,
        tolerance=0,
        record={"x": identity},
    )
    return solution.history["x"]


WALKED = [
    "adaptive terminal, exact",
    "non-adaptive, exact",
    "adaptive terminal, grid",
    "adaptive terminal, armijo",
]


@pytest.mark.parametrize(("name", "step", "choose"), quick(SMOOTH_WALKS, WALKED))
def test_iterates_on_a_function(name, step, choose):
    row = SMOOTH_METHODS[name]
    want, _ = smooth_walk(row, choose, WAVE_X0, 12)
    np.testing.assert_allclose(smooth_points(row.make(step)), want, rtol=1e-10, atol=1e-11)


def steps_taken(points, row):
    """(x, d, <g, d>, eta) of each iteration, eta read off the points."""
    lookup = itertools.pairwise(points)

    def read(x, d, slope, last):
        here, there = next(lookup)
        return (here - there) @ d / (d @ d)

    return smooth_walk(row, read, points[0], len(points) - 1)[1]


def test_grid_step_takes_the_best_of_32():
    row = SMOOTH_METHODS["adaptive terminal"]
    assert len(set(CANDIDATES)) == 32
    for x, d, _, eta in steps_taken(smooth_points(row.make(cfgd.GridStep())), row):
        best = min(CANDIDATES, key=lambda t: wave_value(x - t * d))
        np.testing.assert_allclose(eta, best, rtol=1e-8)


def test_grid_step_has_all_32():
    """On x^2 / (2 eta) the best step is eta: it leads to 0 at once."""
    for eta in CANDIDATES:
        f = cfgd.Quadratic([[1 / eta]], [0.0])
        method = cfgd.GradientDescent(cfgd.GridStep())
        end = cfgd.minimize(f, [2.0], method, max_iterations=1, callback=look_on)
        np.testing.assert_allclose(end.x, [0.0], atol=1e-14)


def test_armijo_condition_holds():
    row, fraction, shrink = SMOOTH_METHODS["adaptive terminal"], 0.3, 0.6
    step = cfgd.ArmijoStep(initial=2.0, shrink=shrink, fraction=fraction)
    steps = steps_taken(smooth_points(row.make(step)), row)
    shortened = 0
    for x, d, slope, eta in steps:
        assert wave_value(x - eta * d) <= wave_value(x) - fraction * eta * slope
        longer = eta / shrink
        # never shorter than it need be: the next longer one fails, or was not among those tried
        fails = wave_value(x - longer * d) > wave_value(x) - fraction * longer * slope
        shortened += fails
    assert shortened >= len(steps) // 2


def valley(x):
    return jnp.sqrt(1 + x[0] ** 2) + jnp.sqrt(1 + 3 * (x[1] - 0.5) ** 2)


def test_exact_step_is_safeguarded_by_backtracking():
    """The formula alone jumps from 3 to -27: there d'Hd is small."""
    solution = cfgd.minimize(
        valley, np.array([3.0, -2.0]), cfgd.AdaptiveTerminal(gamma=-0.1, nodes=4), tolerance=1e-6
    )
    assert 3 - 3 * (1 + 3.0**2) == -27  # Newton on sqrt(1 + x^2) at 3: g/h = x (1 + x^2)
    assert np.all(np.diff(solution.history["value"]) < 0)
    assert solution.status is Status.converged
    np.testing.assert_allclose(solution.x, [0.0, 0.5], atol=1e-5)


def test_exact_step_descends_where_the_curvature_is_negative():
    """cos at 0.4: the formula alone climbs to the maximum at 0."""
    x0 = np.array([0.4, 0.05])
    g, H = np.array([-np.sin(x0[0]), 2 * x0[1]]), np.diag([-np.cos(x0[0]), 2])
    assert g @ H @ g < -0.1
    solution = cfgd.minimize(lambda x: jnp.cos(x[0]) + x[1] ** 2, x0, cfgd.GradientDescent())
    assert np.all(np.diff(solution.history["value"]) <= 0)
    np.testing.assert_allclose(solution.x, [np.pi, 0.0], atol=1e-7)


RESETTING = {"grid": cfgd.GridStep(), "armijo": cfgd.ArmijoStep(), "exact": cfgd.ExactStep()}


@pytest.mark.parametrize("step", quick(RESETTING, ["grid", "exact"]))
def test_a_direction_without_descent_is_replaced_by_the_gradient(step):
    """gamma = -1 from past = 0 on a separable quadratic: d is the gradient there, 0."""
    f, x0 = FIGURE1.objective, np.array([0.4, -1.0])
    method = cfgd.AdaptiveTerminal(gamma=-1.0, past=np.zeros((1, 2)), step=step)
    solution = cfgd.minimize(
        f, x0, method, max_iterations=200, record={"x": identity}, callback=look_on
    )
    assert solution.resets >= 1
    first = solution.history["x"][1] - x0
    g = FIGURE1.A @ x0
    assert first @ g < 0
    np.testing.assert_allclose(first[0] * g[1], first[1] * g[0], rtol=1e-12)  # along -g
    assert solution.value < 1e-3 * FIGURE1.value(x0)


def test_a_fixed_step_is_left_as_the_theorems_have_it():
    """d = 0 at past = 0: x stays for one iteration, no reset."""
    method = cfgd.AdaptiveTerminal(gamma=-1.0, past=np.zeros((1, 2)), step=cfgd.FixedStep(0.02))
    solution = cfgd.minimize(
        FIGURE1.objective,
        FIGURE1.x0,
        method,
        max_iterations=5,
        record={"x": identity},
        callback=look_on,
    )
    row = lagged(1, -1.0, np.zeros((1, 2)))
    np.testing.assert_allclose(solution.history["x"], walk(FIGURE1, row, 0.02, 5), rtol=1e-12)
    np.testing.assert_array_equal(solution.history["x"][1], FIGURE1.x0)
    assert solution.resets == 0


# ---------------------------------------------------------------- figure 1


def errors_on_figure1(method, iterations):
    solution = cfgd.minimize(
        FIGURE1.objective,
        FIGURE1.x0,
        method,
        max_iterations=iterations,
        tolerance=0,
        record={"x": identity},
        callback=look_on,
    )
    return solution, np.linalg.norm(solution.history["x"], axis=1)


def figure1(past):
    return cfgd.AdaptiveTerminal(gamma=-1.0, past=[past])


def test_figure1():
    _, errors = errors_on_figure1(figure1((-1.0, -1.0)), 4)
    assert errors[4] <= 1e-12
    assert errors[3] > 1
    _, errors = errors_on_figure1(cfgd.GradientDescent(), 4)
    assert errors[4] > 1


ITERATIONS_TO_1E_12 = {(-1.0, -1.0): 4, (-1.0, -1.01): 20, (-2.0, -1.0): 43, (0.3, -0.7): 83}


@pytest.mark.parametrize(
    ("past", "iterations"), ITERATIONS_TO_1E_12.items(), ids=map(str, ITERATIONS_TO_1E_12)
)
def test_figure1_depends_on_its_past(past, iterations):
    _, errors = errors_on_figure1(figure1(past), iterations + 1)
    assert np.argmax(errors <= 1e-12) == iterations


def test_figure1_from_a_past_at_the_minimiser():
    """d = 0 while the gradient is not: the paper's iteration would never move."""
    solution, errors = errors_on_figure1(figure1((0.0, 0.0)), 200)
    assert errors.min() <= 1e-12
    assert solution.resets > 0


def test_the_first_step_of_figure1_is_negative():
    solution, _ = errors_on_figure1(figure1((-1.0, -1.0)), 4)
    x0, x1 = solution.history["x"][:2]
    d = FIGURE1.A @ np.array([-1.0, -1.0])  # gamma = -1, separable: the gradient at the terminal
    eta = (x0 - x1) @ d / (d @ d)
    np.testing.assert_allclose(x0 - x1, eta * d, rtol=1e-12)
    np.testing.assert_allclose(eta, FIGURE1.x0 @ FIGURE1.A @ d / (d @ FIGURE1.A @ d), rtol=1e-12)
    assert eta < 0


def test_erratum_1():
    """With the square root of a_jj, as printed, the loss is still 1.5 after four iterations."""
    row, root = lagged(1, -1.0, np.array([[-1.0, -1.0]])), np.sqrt(np.diag(FIGURE1.A))
    printed = walk(FIGURE1, row, None, 4, diagonal=root)[-1]
    assert 1.4 < FIGURE1.value(printed) < 1.6
    assert FIGURE1.value(walk(FIGURE1, row, None, 4)[-1]) < 1e-24


# ---------------------------------------------------------------- section 4.1 and the theorems

GAMMAS = (0.15, 10.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def random_data():
    """d = m = 100, entries of W from N(0, 1/m), x0 standard normal."""
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.1, size=(100, 100))
    return least_squares(X, rng.normal(size=100), rng.normal(size=100))


@pytest.mark.parametrize("gamma", few(GAMMAS, 2))
@pytest.mark.parametrize("step", ["exact", "fixed"])
def test_non_adaptive_converges_to_the_tikhonov_solution(random_data, gamma, step):
    ones = np.ones(100)
    largest = np.linalg.eigvalsh(cfgd.theory.tilde_A(random_data.A, gamma))[-1]
    rule = cfgd.ExactStep() if step == "exact" else cfgd.FixedStep(1 / largest)
    solution = cfgd.minimize(
        random_data.objective,
        random_data.x0,
        cfgd.NonAdaptive(ones, gamma=gamma, step=rule),
        tolerance=1e-11,
    )
    want = cfgd.theory.tikhonov_solution(random_data.A, random_data.b, ones, gamma)
    assert solution.status is Status.converged
    assert np.linalg.norm(solution.x - want) <= 1e-8
    # and this is no minimiser of f
    assert solution.gradient_norm > 1e-2


def literal_walk(problem, gamma, c, iterations):
    """The non-adaptive version with the paper's <g, d> / d'Ad."""
    x, D, points = problem.x0, np.diag(problem.A), [problem.x0]
    for _ in range(iterations):
        g = problem.A @ x + problem.b
        d = g + gamma * D * (x - c)
        x = x - g @ d / (d @ problem.A @ d) * d
        points.append(x)
    return np.array(points)


def test_the_literal_line_search_misses_the_tikhonov_solution():
    want = cfgd.theory.tikhonov_solution(BOWL.A, BOWL.b, C, 0.5)
    literal = np.linalg.norm(literal_walk(BOWL, 0.5, C, 2000) - want, axis=1)
    assert literal.min() > 1e-3
    ours = cfgd.minimize(
        BOWL.objective,
        BOWL.x0,
        cfgd.NonAdaptive(C, gamma=0.5),
        tolerance=1e-10,
        record={"x": identity},
    )
    assert ours.iterations < 200
    assert np.linalg.norm(ours.x - want) <= 1e-8


@pytest.mark.parametrize("seed", few(range(5)))
def test_adaptive_terminal_on_the_ill_conditioned_construction(seed):
    """gamma = -0.25 and lag 1 reach 1e-10 within 4e4 iterations."""
    problem, past, minimiser = ill_conditioned(seed)
    solution = cfgd.minimize(
        problem.objective,
        problem.x0,
        cfgd.AdaptiveTerminal(gamma=-0.25, past=past),
        max_iterations=40_000,
        tolerance=0,
        every=100,
        record={"x": identity},
    )
    errors = np.linalg.norm(solution.history["x"] - minimiser, axis=1)
    assert errors[0] > 1
    assert errors.min() <= 1e-10
    assert np.linalg.norm(solution.x - minimiser) <= 1e-10


def test_adaptive_order_stays_within_its_bound():
    """gamma falls by 0.4 from stage to stage; each ends within the bound of theorem 5."""
    gammas = [0.6 * 0.4**s for s in range(12)] + [0.0]
    stages = [(40, gamma) for gamma in gammas[:-1]] + [(300, 0.0)]
    # the theorem's step is eta_s / sigma_max(A + gamma_s D); one eta for all stages is smaller
    largest = [np.linalg.eigvalsh(cfgd.theory.tilde_A(A, gamma))[-1] for gamma in gammas]
    eta = 1 / max(largest)
    method = cfgd.AdaptiveOrder(
        [cfgd.Stage(n, gamma=gamma) for n, gamma in stages], C, step=cfgd.FixedStep(eta)
    )
    solution = cfgd.minimize(BOWL.objective, BOWL.x0, method, tolerance=0, record={"x": identity})
    bounds = cfgd.theory.adaptive_order_bound(
        BOWL.A, BOWL.b, C, BOWL.x0, stages, [eta * high for high in largest]
    )
    ends = np.cumsum([n for n, _ in stages])
    errors = np.linalg.norm(solution.history["x"][ends] - BOWL.minimiser, axis=1)
    assert np.all(errors <= bounds * (1 + 1e-12))
    assert errors[-1] <= 1e-8
    assert np.all(np.diff(errors) < 0)
    assert solution.status is Status.stages_done
    np.testing.assert_allclose(solution.x, BOWL.minimiser, atol=1e-8)


def test_a_stage_ends_by_its_length_and_not_by_its_direction():
    """The first stage reaches its own limit, where d = 0 but f is not least: the run goes on."""
    stages = [cfgd.Stage(300, gamma=1.0), cfgd.Stage(300, gamma=0.0)]
    method = cfgd.AdaptiveOrder(stages, C)
    solution = cfgd.minimize(BOWL.objective, BOWL.x0, method)
    assert solution.iterations > 300
    assert solution.status is Status.converged
    np.testing.assert_allclose(solution.x, BOWL.minimiser, atol=1e-6)


def test_the_table_of_stages_is_what_the_method_holds():
    method = METHODS["adaptive order"].make(cfgd.ExactStep())
    assert method.last_iteration == sum(n for n, _, _ in STAGES)
