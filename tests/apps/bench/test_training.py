"""Problems, optimizers, costs and training of `cfgd bench --training`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from cfgd.apps.bench.training import boundary_layer, catalogue, characters, images, moons
from cfgd.apps.bench.training.optimizers import (
    BASES,
    DEFAULT,
    MAKERS,
    RATES,
    Optimizer,
    adahessian,
    optimizers,
)
from cfgd.apps.bench.training.trainer import CHECKPOINTS, Trainer
from cfgd.integrations.optax.transform import GAMMA, ONE

pytestmark = pytest.mark.slow


def test_learning_rates_are_one_logarithmic_grid():
    assert RATES[0] == 1e-3
    assert RATES[-1] == 10
    np.testing.assert_allclose(np.diff(np.log10(RATES)), 0.5)


def test_optimizers_of_optax_come_first_and_names_are_distinct():
    names = [one.name for one in optimizers(quick=False)]
    others = ["SGD", "heavy ball", "Nesterov", "Adam", "AdamW", "AdaHessian-like"]
    assert names[:6] == others
    assert {one.kind for one in optimizers(quick=False)[6:]} == {"cfgd", "cfadam", "cfadamw"}
    assert "cfadam (-0.25, 5)" in names
    assert len(set(names)) == len(names)
    assert {one.name for one in optimizers(quick=True)} < set(names)


def test_default_gamma_and_lag_are_those_of_the_integration():
    assert (GAMMA, int(ONE)) == DEFAULT
    assert any((one.gamma, one.lag) == DEFAULT for one in optimizers(quick=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", BASES)
def test_cost_counts_a_hessian_product_at_every_tenth_step(kind):
    """The diagonal changes with each product, because the curvature differs at every point."""
    optimizer = MAKERS[kind](0.01, -0.25, 1)
    x, products, steps = jnp.array([1.0, 2.0]), 0, 20

    def value(x):
        return jnp.sum(x**4)

    state = optimizer.init(x)
    for _ in range(steps):
        before = state[0].curvature
        updates, state = optimizer.update(jax.grad(value)(x), state, x, value_fn=value)
        products += bool(jnp.any(state[0].curvature != before))
        x = optax.apply_updates(x, updates)
    assert Optimizer(kind, -0.25, 1).cost == (steps + 2 * products) / steps == 1.2


def test_costs_of_the_other_optimizers():
    assert {kind: Optimizer(kind).cost for kind in MAKERS if kind not in BASES} == {
        "SGD": 1,
        "heavy ball": 1,
        "Nesterov": 1,
        "Adam": 1,
        "AdamW": 1,
        "AdaHessian-like": 3,
    }
    # equal gradients end at a checkpoint
    assert all((CHECKPOINTS / one.cost) % 1 < 1e-9 for one in optimizers(quick=False))


def test_first_step_of_adahessian_is_a_newton_step_if_the_hessian_is_diagonal():
    curvature, goal = jnp.array([3.0, 0.5]), jnp.array([1.0, -2.0])

    def value(x):
        return jnp.sum(curvature * (x - goal) ** 2) / 2

    optimizer, x = adahessian(1.0), jnp.array([4.0, 4.0])
    state = optimizer.init(x)
    updates, state = optimizer.update(jax.grad(value)(x), state, x, value_fn=value)
    np.testing.assert_allclose(x + updates, goal, rtol=1e-4)
    # the second step: with constant D the second moment is D^2, and m a mean of two gradients
    y = x + 0.5 * updates
    updates, _ = optimizer.update(jax.grad(value)(y), state, y, value_fn=value)
    g, h = curvature * (x - goal), curvature * (y - goal)
    np.testing.assert_allclose(updates, -(0.09 * g + 0.1 * h) / 0.19 / curvature, rtol=1e-4)


@pytest.fixture(scope="module")
def trainer():
    return Trainer(moons.moons(120), 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_every_optimizer_learns_two_moons(trainer, kind):
    """A straight line has the loss 0.27, guessing log 2."""
    rates = {"SGD": 0.32, "cfgd": 0.32, "heavy ball": 0.1, "Nesterov": 0.1, "AdaHessian-like": 0.1}
    optimizer = Optimizer(kind, *DEFAULT) if kind in BASES else Optimizer(kind)
    curves = trainer.curves(optimizer, [rates.get(kind, 0.03)])
    assert curves.losses.shape == curves.errors.shape == (1, 2, CHECKPOINTS)
    assert np.all(curves.losses[0, :, -1] < 0.3)
    assert np.all(curves.losses[0, :, -1] < curves.losses[0, :, 0])
    assert np.all(curves.errors[0, :, -1] < 0.16)
    assert curves.seconds >= 0


@pytest.mark.usefixtures("unchecked")
def test_optimizers_that_differ_in_gamma_share_a_time(trainer):
    some = [Optimizer("SGD"), Optimizer("cfgd", -0.25, 1), Optimizer("cfgd", 1.0, 1)]
    _, ours, again = trainer.seconds(some)
    assert ours == again


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_gamma_zero_equals_the_base_optimizer(trainer):
    for kind, base in BASES.items():
        ours = trainer.curves(Optimizer(kind), [0.03])
        theirs = trainer.curves(Optimizer(base), [0.03])
        np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-3)


@pytest.mark.slow
def test_new_learning_rate_or_gamma_does_not_recompile():
    traces = []
    problem = moons.moons(CHECKPOINTS)

    def loss(params, x, y):
        traces.append(x.shape)
        return problem.loss(params, x, y)

    trainer = Trainer(problem._replace(loss=loss), 1)
    trainer.curves(Optimizer("cfgd", -0.25, 1), [0.1])
    first = len(traces)
    trainer.curves(Optimizer("cfgd", 1.0, 1), [0.2, 0.3])
    assert len(traces) == first > 0


def test_diverged_run_has_infinite_loss(trainer):
    curves = trainer.curves(Optimizer("SGD"), [np.inf])
    assert np.all(curves.losses[:, :, -1] == np.inf)
    assert np.all(curves.errors[:, :, -1] == np.inf)


@pytest.mark.slow
def test_seeds_differ_and_are_reproducible(trainer):
    one = trainer.curves(Optimizer("SGD"), [0.1])
    again = Trainer(moons.moons(120), 1).curves(Optimizer("SGD"), [0.1])
    np.testing.assert_allclose(again.losses[:, 0], one.losses[:, 0], rtol=1e-5)
    assert abs(one.losses[0, 0, -1] - one.losses[0, 1, -1]) > 1e-4


def test_epoch_has_every_row_once():
    trainer = Trainer(moons.moons(CHECKPOINTS), 2)  # 500 rows in batches of 50
    for rows in trainer.batches:
        assert sorted(rows[:10].ravel()) == list(range(500))
    assert np.any(trainer.batches[0] != trainer.batches[1])


def test_exact_solution_satisfies_the_equation():
    """Checked by finite differences in float64, and at both ends."""
    with jax.enable_x64(True):
        x, h = np.linspace(0.05, 0.95, 19), 1e-4
        below, at, above = (np.asarray(boundary_layer.exact(x + s)) for s in (-h, 0.0, h))
        found = -boundary_layer.EPS * (below - 2 * at + above) / h**2 + (above - below) / (2 * h)
        np.testing.assert_allclose(found, 1, atol=1e-4)
        np.testing.assert_allclose(boundary_layer.exact(np.array([0.0, 1.0])), 0, atol=1e-15)
        # the residual of the loss is that of the equation
        left = [boundary_layer.residual(boundary_layer.exact, jnp.asarray(t)) for t in x]
        np.testing.assert_allclose(left, 0, atol=1e-12)
        np.testing.assert_allclose(boundary_layer.residual(lambda t: t**2, jnp.asarray(0.3)), -0.5)


@pytest.mark.slow
def test_error_of_the_boundary_layer_is_relative():
    with jax.enable_x64(True):
        problem = boundary_layer.boundary_layer(CHECKPOINTS)
        params = jax.tree.map(jnp.zeros_like, problem.init(jax.random.key(0)))
        assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float64")}
        np.testing.assert_allclose(problem.error(params), 1)
        # u = 0 has the residual -1
        np.testing.assert_allclose(problem.loss(params, problem.inputs, problem.targets), 1)


def test_convolution_equals_that_of_xla():
    x = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
    W = np.random.default_rng(1).normal(size=(9, 5)).astype(np.float32)
    ours = images._input_patches(x) @ W
    theirs = jax.lax.conv_general_dilated(
        x.reshape(-1, 8, 8, 1),
        W.reshape(3, 3, 1, 5),
        (2, 2),
        ((1, 0), (1, 0)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_inputs_are_the_characters_before_the_target():
    problem = characters.characters(CHECKPOINTS)
    letters = sorted(set(characters.TEXT))
    for row in (0, 100):
        window = "".join(letters[code] for code in problem.inputs[row])
        assert characters.TEXT[row:].startswith(window + letters[problem.targets[row]])
    assert len(problem.targets) < 0.81 * len(characters.TEXT)


def test_digits_have_a_fixed_split():
    X, y, X_test, y_test = images._data()
    assert len(X) == len(y) == images.TRAIN
    assert len(X_test) == len(y_test) == 360
    assert set(y) == set(y_test) == set(range(10))


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue.PROBLEMS)
def test_problem_has_a_loss_and_an_error(name):
    (problem,) = catalogue.select_problems([name], quick=True)
    assert problem.steps % CHECKPOINTS == 0
    assert catalogue.PROBLEMS[name][1] % CHECKPOINTS == 0
    with jax.enable_x64(problem.double):
        params = problem.init(jax.random.key(0))
        loss = problem.loss(
            params, problem.inputs[: problem.batch], problem.targets[: problem.batch]
        )
        assert loss.shape == ()
        assert 0 < loss < 10
        assert 0.2 < problem.error(params) <= 2
        wide = {leaf.dtype for leaf in jax.tree.leaves(params)}
        assert wide == {jnp.dtype("float64" if problem.double else "float32")}
