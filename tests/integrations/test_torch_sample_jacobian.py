"""The Jacobian of a torch model by samples equals that of the batch, or is not taken."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cfgd[torch]'")

import cfgd.integrations.torch as cfgd_torch  # noqa: E402
from cfgd.integrations.torch.full_batch import ModelLoss  # noqa: E402
from cfgd.integrations.torch.sample_jacobian import SampleJacobian  # noqa: E402

RANDOM = torch.Generator().manual_seed(5)


def numbers(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=RANDOM, dtype=dtype)


def network(inputs=3, outputs=1, dtype=torch.float64):
    layers = (torch.nn.Linear(inputs, 5), torch.nn.Tanh(), torch.nn.Linear(5, outputs))
    model = torch.nn.Sequential(*layers).to(dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(numbers(*p.shape, dtype=dtype))
    return model


class TwoInputs(torch.nn.Module):
    """Two inputs, a parameter that is not trained, one without effect, one that is used twice."""

    def __init__(self):
        super().__init__()
        self.inner = network(2, 2)
        self.again = torch.nn.Linear(2, 2).double()
        self.again.weight = self.inner[2].weight = torch.nn.Parameter(numbers(2, 5))
        self.fixed = torch.nn.Parameter(numbers(2), requires_grad=False)
        self.unused = torch.nn.Parameter(numbers(2))

    def forward(self, x, z):
        return (self.inner(x) * z + self.fixed) @ self.again.weight


class WithBatchNorm(torch.nn.Module):
    def __init__(self, *, training):
        super().__init__()
        self.body = network(3, 2)
        self.norm = torch.nn.BatchNorm1d(2, track_running_stats=not training).double()
        self.train(training)

    def forward(self, x):
        return self.norm(self.body(x))


class MeansOfTheBatch(torch.nn.Module):
    """Samples depend on one another, and a batch of one is allowed."""

    def __init__(self):
        super().__init__()
        self.body = network(3, 2)

    def forward(self, x):
        outputs = self.body(x)
        return outputs - 0.1 * outputs.mean(0)


def by_differences(problem, x, step=1e-6):
    """Return the Jacobian of the residuals by central differences."""
    residuals = problem.residuals(0.5)
    columns = []
    for direction in np.eye(x.size) * step:
        columns.append((residuals(x + direction) - residuals(x - direction)) / (2 * step))
    return np.array(columns).T


CASES = {
    "network": (network, (7, 3), (7, 1)),
    "several outputs": (lambda: network(3, 4), (6, 3), (6, 4)),
    "two inputs": (TwoInputs, ((5, 2), (5, 2)), (5, 5)),
    "evaluated batch normalisation": (lambda: WithBatchNorm(training=False), (6, 3), (6, 2)),
    "batch normalisation in training": (lambda: WithBatchNorm(training=True), (6, 3), (6, 2)),
    "means of the batch": (MeansOfTheBatch, (6, 3), (6, 2)),
}
DEPENDENT = {"batch normalisation in training", "means of the batch"}


def problem_of(name):
    make, shapes, targets = CASES[name]
    shapes = shapes if isinstance(shapes[0], tuple) else (shapes,)
    data = (tuple(numbers(*shape) for shape in shapes), numbers(*targets))
    return ModelLoss.of(make(), torch.nn.MSELoss(reduction="sum"), data)


@pytest.mark.parametrize("name", CASES)
def test_jacobian_equals_differences(name):
    problem = problem_of(name)
    x = problem.initial_point()
    expected = by_differences(problem, x)
    jacobian = problem.jacobian(0.5)
    np.testing.assert_allclose(jacobian(x), expected, atol=1e-7 * np.abs(expected).max())
    moved = x + 0.3
    expected = by_differences(problem, moved)
    np.testing.assert_allclose(jacobian(moved), expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", CASES)
def test_samples_that_depend_on_one_another_are_recognised(name):
    problem = problem_of(name)
    output = problem.model(*problem.inputs)
    rows = SampleJacobian(problem.model, problem.inputs, output)(output)
    assert (rows is None) == (name in DEPENDENT)


def test_jacobian_in_several_calls(monkeypatch):
    problem = problem_of("several outputs")
    x = problem.initial_point()
    at_once = problem.jacobian(0.5)(x)
    monkeypatch.setattr("cfgd.integrations.torch.sample_jacobian.CALL_ENTRIES", 1)
    np.testing.assert_allclose(problem.jacobian(0.5)(x), at_once, 1e-14, 1e-15)


def test_inputs_without_a_common_axis_are_not_taken_by_samples():
    output = torch.zeros(4, 2)
    assert SampleJacobian.applies((torch.zeros(4, 3),), output)
    assert not SampleJacobian.applies((torch.zeros(4, 3), torch.zeros(3)), output)
    assert not SampleJacobian.applies((torch.zeros(4, 3), 2.0), output)
    assert not SampleJacobian.applies((torch.zeros(4, 3),), torch.tensor(1.0))


def test_single_precision_has_the_jacobian_of_double():
    model = network()
    data = (numbers(7, 3), numbers(7, 1))
    double = ModelLoss.of(model, torch.nn.MSELoss(), data)
    x = double.initial_point()
    expected = double.jacobian(1 / 7)(x)
    single = ModelLoss.of(
        network(dtype=torch.float32), torch.nn.MSELoss(), tuple(part.float() for part in data)
    )
    found = single.jacobian(1 / 7)(x.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_fit_with_batch_normalisation_in_training_converges():
    model = WithBatchNorm(training=True)
    x = numbers(30, 3)
    targets = torch.stack([x[:, 0] - x[:, 1], torch.sin(x[:, 2])], 1)
    start = torch.nn.functional.mse_loss(model(x), targets).item()
    solution = cfgd_torch.minimize(model, torch.nn.MSELoss(), (x, targets), max_iterations=40)
    assert solution.value < 0.05 * start
    end = torch.nn.functional.mse_loss(model(x), targets).item()
    assert end == pytest.approx(float(solution.value))
