"""`minimize` of a torch model on all of its data: results, options and errors."""

import re

import numpy as np
import pytest

import cfgd

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cfgd[torch]'")

from cfgd.integrations.torch import full_batch, minimize  # noqa: E402

random = np.random.default_rng(5)
X = random.normal(size=(30, 3)) * [1.0, 5.0, 0.2]
Y = X @ [[2.0, -1.0], [0.5, 0.0], [-3.0, 4.0]] + [0.3, -0.7] + 0.1 * random.normal(size=(30, 2))
DATA = torch.tensor(X), torch.tensor(Y)


def line():
    torch.manual_seed(3)
    return torch.nn.Linear(3, 2).double()


def network(width=6, dtype=torch.float64):
    torch.manual_seed(1)
    layers = torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)
    return torch.nn.Sequential(*layers).to(dtype)


def absolute(outputs, targets):
    return torch.sqrt((outputs - targets) ** 2 + 1e-3).mean()


@pytest.mark.parametrize(
    "loss",
    [torch.nn.MSELoss(), torch.nn.functional.mse_loss, torch.nn.MSELoss(reduction="sum")],
    ids=["module", "function", "sum"],
)
def test_linear_model_is_least_squares(loss):
    model = line()
    solution = minimize(model, loss, DATA)
    assert solution.success
    exact = np.linalg.lstsq(np.c_[X, np.ones(30)], Y, rcond=None)[0]
    np.testing.assert_allclose(model.weight.detach().T, exact[:3], rtol=1e-7)
    np.testing.assert_allclose(model.bias.detach(), exact[3], rtol=1e-7)
    assert solution.value == pytest.approx(loss(model(DATA[0]), DATA[1]).item(), rel=1e-12)


@pytest.mark.slow
def test_another_loss_agrees_with_the_same_function_in_jax():
    import jax.numpy as jnp

    model = line()
    x0 = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy().copy()

    def f(v):
        outputs = jnp.asarray(X) @ v[:6].reshape(2, 3).T + v[6:]
        return jnp.mean(jnp.sqrt((outputs - Y) ** 2 + 1e-3))

    ours, core = minimize(model, absolute, DATA), cfgd.minimize(f, x0)
    assert ours.success
    assert core.success
    assert ours.value == pytest.approx(core.value, rel=1e-9)
    np.testing.assert_allclose(ours.x, core.x, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(
        torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy(), ours.x
    )


@pytest.mark.parametrize("fits", [True, False])
def test_jacobian_is_computed_if_it_is_small_enough(fits, monkeypatch):
    entries = 30 * 2 * 8
    monkeypatch.setattr(full_batch, "MAX_JACOBIAN_ENTRIES", entries if fits else entries - 1)
    solution = minimize(line(), torch.nn.MSELoss(), DATA)
    assert solution.success
    assert ("Levenberg-Marquardt" in solution.how) == fits


@torch.no_grad()
def test_gradients_are_enabled_for_the_run():
    assert minimize(line(), torch.nn.MSELoss(), DATA).success


def test_frozen_parameters_and_precision_do_not_change():
    model = network(dtype=torch.float32)
    model[0].bias.requires_grad_(False)
    before = model[0].bias.clone()
    z = torch.linspace(-1, 1, 25)[:, None]
    solution = minimize(model, torch.nn.MSELoss(), (z, torch.sin(2 * z)), max_iterations=40)
    assert solution.x.size == 6 + 6 + 1
    torch.testing.assert_close(model[0].bias, before, rtol=0, atol=0)
    assert model[0].weight.dtype == torch.float32
    assert all(p.grad is None for p in model.parameters())
    assert ((model(z) - torch.sin(2 * z)) ** 2).mean().item() < 1e-2


def test_several_inputs_and_options():
    class Product(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))

        def forward(self, a, b):
            return self.w[0] * a + self.w[1] * a * b

    a, b = torch.tensor(X[:, 0]), torch.tensor(X[:, 1])
    model, calls = Product(), []
    solution = minimize(
        model, torch.nn.MSELoss(), ((a, b), 3 * a - 0.5 * a * b), callback=lambda _: calls.append(1)
    )
    assert solution.success
    assert calls
    np.testing.assert_allclose(solution.x, [3, -0.5], rtol=1e-7)


def test_a_penalty_on_the_parameters_is_part_of_the_loss():
    model = line()

    def penalised(outputs, targets):
        return ((outputs - targets) ** 2).sum() + 0.5 * model.weight.square().sum()

    assert minimize(model, penalised, DATA, tolerance=1e-10).success
    A = np.c_[X, np.ones(30)]
    ridge = np.linalg.solve(A.T @ A + np.diag([0.5, 0.5, 0.5, 0]), A.T @ Y)
    np.testing.assert_allclose(model.weight.detach().T, ridge[:3], rtol=1e-6)


class Poisson(torch.nn.Module):
    """-u'' of a trial function u that vanishes at 0 and 1, by autograd inside `forward`."""

    def __init__(self):
        super().__init__()
        self.net = network(8)

    def u(self, x):
        return x * (1 - x) * self.net(x)

    def forward(self, x):
        u = self.u(x)
        slope = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
        return -torch.autograd.grad(slope, x, torch.ones_like(u), create_graph=True)[0]


POINTS = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None].requires_grad_()
FORCE = np.pi**2 * torch.sin(np.pi * POINTS.detach())


def error(model):
    return (model.u(POINTS).detach() - torch.sin(np.pi * POINTS.detach())).abs().max().item()


def test_autograd_inside_forward_and_the_jacobian():
    model = Poisson()
    problem = full_batch.ModelLoss.of(model, torch.nn.MSELoss(), (POINTS, FORCE))
    x0 = problem.initial_point()
    J, r = problem.jacobian(1.0)(x0), problem.residuals(1.0)
    step = 1e-6 * np.eye(x0.size)
    differences = [(r(x0 + e) - r(x0 - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(J, np.transpose(differences), rtol=1e-5, atol=1e-7)
    problem.set_parameters(x0)
    solution = minimize(model, torch.nn.MSELoss(), (POINTS, FORCE), max_iterations=60)
    assert "Levenberg-Marquardt" in solution.how
    assert error(model) < 1e-5


@pytest.mark.parametrize("style", ["LBFGS", "returns the loss"])
def test_closures(style):
    model = Poisson()
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = torch.mean((model(POINTS) - FORCE) ** 2)
        if style == "LBFGS":
            loss.backward()
        return loss

    seen = []
    first = closure().item()
    before = error(model)
    solution = minimize(
        model, closure, max_iterations=60, callback=lambda _: seen.append(closure().item())
    )
    assert "L-BFGS" in solution.how
    assert solution.value == pytest.approx(closure().item(), rel=1e-12)
    np.testing.assert_allclose(solution.history["value"][:-1], [first, *seen], rtol=1e-12)
    assert error(model) < before / 50
    kept = [torch.ones_like(p) for p in model.parameters()]
    for p, gradient in zip(model.parameters(), kept, strict=True):
        p.grad = gradient
    minimize(model, closure, max_iterations=1)
    assert all(p.grad is g for p, g in zip(model.parameters(), kept, strict=True))
    assert all((g == 1).all() for g in kept)


def test_parameters_beside_a_model():
    model, rate = line(), torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
    x, y = DATA

    def closure():
        return torch.sum((rate * x[:, :1] + model(x) - y) ** 2) + rate**2

    solution = minimize([*model.parameters(), rate], closure, tolerance=1e-10)
    assert solution.x.size == 9
    assert rate.item() == pytest.approx(0, abs=1e-6)  # the model explains x as well, for nothing


def test_the_model_is_at_the_best_point_after_an_error():
    model, values = line(), []

    def closure():
        if len(values) > 12:
            raise RuntimeError("enough")
        values.append(torch.mean((model(DATA[0]) - DATA[1]) ** 2))
        return values[-1]

    with pytest.raises(RuntimeError, match="enough") as caught:
        minimize(model, closure)
    found = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    np.testing.assert_array_equal(found, caught.value.solution.x)
    assert caught.value.solution.value == min(value.item() for value in values)


def frozen():
    return line().requires_grad_(False)


def mixed():
    model = network()
    model[0].float()
    return model


def noisy():
    return torch.nn.Sequential(line(), torch.nn.Dropout(0.5))


MSE = torch.nn.MSELoss()
MODEL = line()
INVALID = {
    "no model": (np.sin, MSE, DATA, "`minimize(model=...)` must be a torch.nn.Module, got ufunc."),
    "no loss": (MODEL, 3, DATA, "(loss=...)` must be a function of outputs and targets, got 3."),
    "one tensor": (MODEL, MSE, DATA[0], "must be `(inputs, targets)`, the inputs a tensor or a "),
    "three parts": (MODEL, MSE, (*DATA, 1), "or a tuple of tensors, got 3 parts."),
    "frozen": (frozen(), MSE, DATA, "have parameters that require a gradient, got none."),
    "mixed": (mixed(), MSE, DATA, "its parameters in one precision and on one device, got ["),
    "noise": (noisy(), absolute, DATA, "must give the same numbers every time: `model.eval()`"),
    "many numbers": (
        MODEL, torch.nn.MSELoss(reduction="none"), DATA,
        "`minimize(loss=...)` must return a tensor of one number, got (30, 2).",
    ),
    "a number": (MODEL, lambda o, t: 1.0, DATA, "return a tensor of one number, got float."),
    "a constant": (MODEL, lambda o, t: t.sum(), DATA, "depend on the parameters of the model"),
    "no data": (MODEL, MSE, None, "must be `(inputs, targets)` for a loss of torch.nn, got None."),
    "no parameters": (3, lambda: 0, None, "torch.nn.Module or an iterable of its parameters, got"),
    "no closure": (MODEL, 3, None, "`minimize(loss=...)` must be a closure, got 3."),
    "shapes": (MODEL, MSE, (DATA[0], DATA[1][:, :1]), "the shape of the model's output, (30, 2)"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("case", INVALID)
def test_invalid_arguments_raise(case):
    model, loss, data, message = INVALID[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        minimize(model, loss, data)


def test_error_in_the_model_propagates():
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        minimize(line(), MSE, (DATA[0][:, :2], DATA[1]))
