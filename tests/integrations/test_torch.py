"""The PyTorch optimizers: the formula, the core's iterates, groups, state and AMP."""

import copy
import functools
import io
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cfgd

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cfgd[torch]'")

from cfgd.integrations.torch import CFGD, CFAdam, CFAdamW  # noqa: E402

OPTIMIZERS = {"CFGD": CFGD, "CFAdam": CFAdam, "CFAdamW": CFAdamW}

random = np.random.default_rng(3)
ROOT = random.normal(size=(6, 6))
A, B = ROOT @ ROOT.T + np.diag([9.0, 1.0, 4.0, 0.5, 2.0, 1.0]), random.normal(size=6)
X0 = random.normal(size=6) * 3


def quadratic(x):
    A_, b = (torch.as_tensor(part, dtype=x.dtype) for part in (A, B))
    return x @ A_ @ x / 2 + b @ x


def iterates(optimizer, x, steps, loss_of=quadratic):
    """Return the iterates, including the start."""
    points = [x.detach().clone()]
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(x)
        optimizer.observe(loss)
        loss.backward()
        optimizer.step()
        points.append(x.detach().clone())
    return torch.stack(points).numpy()


def parameter(x0=X0, dtype=torch.float64):
    return torch.nn.Parameter(torch.tensor(x0, dtype=dtype))


def reference_iterates(kind, x0, steps, lr, gamma, lag, *, D, gradient, decay=0.0, coupled=True):
    """Return the iterates of the formulas in NumPy, with all points in a list."""
    points, m, v = [np.array(x0, float)], 0.0, 0.0
    for k in range(steps):
        x, c = points[k], points[max(k - lag, 0)]
        g, L = gradient(x), D(x)
        if coupled:
            g, L = g + decay * x, L + decay
        d = g + gamma * L * (x - c)
        if kind == "adam":
            m, v = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d**2
            scale = np.sqrt(v / (1 - 0.999 ** (k + 1))) + 1e-8
            d = m / (1 - 0.9 ** (k + 1)) / scale
        points.append((x if coupled else (1 - lr * decay) * x) - lr * d)
    return np.array(points)


def gradient(x):
    return A @ x + B


FOREACH = pytest.mark.parametrize("foreach", [True, False], ids=["foreach", "single"])


@FOREACH
@pytest.mark.parametrize("gamma", [-0.4, 0.3])
@pytest.mark.parametrize("lag", [1, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_iterates_equal_the_formula_in_numpy(name, lag, gamma, foreach):
    x, decay = parameter(), 0.2
    options = {"gamma": gamma, "lag": lag, "weight_decay": decay, "foreach": foreach}
    options |= {"curvature": "exact", "every": 1}
    ours = iterates(OPTIMIZERS[name]([x], lr=0.02, **options), x, 40)
    kind, coupled = ("gd" if name == "CFGD" else "adam"), name != "CFAdamW"
    D = {"D": lambda x: np.diag(A), "gradient": gradient, "decay": decay, "coupled": coupled}
    theirs = reference_iterates(kind, X0, 40, 0.02, gamma, lag, **D)
    moved = np.sign(ours[1:] - ours[:-1])
    assert (moved > 0).any() and (moved < 0).any()  # both signs of x - c  # noqa: PT018
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def quartic(x):
    scale = torch.arange(1.0, 7.0, dtype=x.dtype)
    return (scale * x**4).sum() / 40 + x[0] * x[1] * x[2] / 10 + quadratic(x)


def quartic_gradient(x):
    g = np.arange(1.0, 7.0) * x**3 / 10 + gradient(x)
    g[:3] += np.array([x[1] * x[2], x[0] * x[2], x[0] * x[1]]) / 10
    return g


def test_curvature_that_is_not_constant():
    D = {"D": lambda x: 0.3 * np.arange(1.0, 7.0) * x**2 + np.diag(A), "gradient": quartic_gradient}
    x = parameter(X0 / 2)
    optimizer = CFGD([x], lr=0.02, gamma=-0.5, curvature="exact", every=1, lag=2)
    ours = iterates(optimizer, x, 30, quartic)
    theirs = reference_iterates("gd", X0 / 2, 30, 0.02, -0.5, 2, **D)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@functools.cache
def core_iterates(gamma, lag, eta, steps):
    method = cfgd.AdaptiveTerminal(gamma=gamma, lag=lag, step=cfgd.FixedStep(eta))
    ends = cfgd.minimize(
        cfgd.Quadratic(A, B),
        X0,
        method,
        max_iterations=steps,
        tolerance=1e-300,
        record={f"x{j}": lambda x, j=j: x[j] for j in range(6)},
    )
    return np.stack([ends.history[f"x{j}"] for j in range(6)], 1)


@pytest.mark.slow
@FOREACH
@pytest.mark.parametrize(("gamma", "lag"), [(-0.5, 1), (0.4, 1), (-0.3, 3)])
def test_iterates_are_those_of_the_core(gamma, lag, foreach):
    theirs = core_iterates(gamma, lag, 0.03, 200)
    for given in ("exact", [torch.tensor(np.diag(A).copy())]):
        x = parameter()
        options = {"gamma": gamma, "lag": lag, "curvature": given, "every": 7, "foreach": foreach}
        ours = iterates(CFGD([x], lr=0.03, **options), x, 200)
        assert len(theirs) == 201
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_single_precision_stays_close_to_the_core():
    """200 steps stay within 2e-7 of the largest entry of the core in double precision."""
    theirs = core_iterates(-0.5, 1, 0.03, 200)
    x = parameter(dtype=torch.float32)
    options = {"gamma": -0.5, "curvature": "exact", "every": 50}
    ours = iterates(CFGD([x], lr=0.03, **options), x, 200)
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() < 2e-7 * np.abs(theirs).max()


def test_alpha_and_beta_determine_gamma():
    x, y = parameter(), parameter()
    gamma = 0.1 - (1 - 0.3) / (2 - 0.3)
    one = iterates(CFGD([x], lr=0.02, alpha=0.3, beta=0.1, curvature="exact", every=1), x, 20)
    other = iterates(CFGD([y], lr=0.02, gamma=gamma, curvature="exact", every=1), y, 20)
    np.testing.assert_allclose(one, other, rtol=1e-13)


@FOREACH
@pytest.mark.parametrize(
    ("ours", "theirs", "decay"),
    [(CFGD, "SGD", 0.1), (CFAdam, "Adam", 0.1), (CFAdamW, "AdamW", 0.1), (CFAdam, "Adam", 0.0)],
)
def test_zero_gamma_equals_torchs_optimizer(ours, theirs, decay, foreach):
    """CFGD bit for bit; CFAdam applies the bias corrections in another order."""
    x, y = parameter(), parameter()
    options = {"lr": 0.03, "weight_decay": decay, "foreach": foreach}
    theirs = getattr(torch.optim, theirs)([y], **options)
    theirs.observe = lambda loss: None
    points = iterates(ours([x], gamma=0.0, curvature=1.0, **options), x, 50)
    close = 0 if ours is CFGD else 1e-13
    np.testing.assert_allclose(points, iterates(theirs, y, 50), rtol=close, atol=close)


@FOREACH
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_maximize_equals_minimising_the_negative(name, foreach):
    x, y = parameter(), parameter()
    options = {"lr": 0.02, "weight_decay": 0.1, "gamma": -0.4, "foreach": foreach, "every": 2}
    up = OPTIMIZERS[name]([x], maximize=True, **options)
    down = OPTIMIZERS[name]([y], **options)
    one = iterates(up, x, 20, lambda x: -quartic(x))
    np.testing.assert_allclose(one, iterates(down, y, 20, quartic), rtol=1e-12)


def test_weight_decay_equals_a_penalty_in_the_loss():
    x, y = parameter(), parameter()
    options = {"lr": 0.02, "gamma": -0.4, "curvature": "exact", "every": 1}
    one = iterates(CFGD([x], weight_decay=0.7, **options), x, 30)
    other = iterates(CFGD([y], **options), y, 30, lambda x: quadratic(x) + 0.35 * x @ x)
    np.testing.assert_allclose(one, other, rtol=1e-12)


def network(seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    return torch.nn.Sequential(*layers).to(dtype)


def batches(count, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        z = torch.randn(16, 5, generator=generator, dtype=dtype)
        yield z, torch.sin(z[:, :2]) * 2


def train(model, optimizer, data, scheduler=None):
    for z, y in data:
        optimizer.zero_grad()
        loss = ((model(z) - y) ** 2).mean()
        optimizer.observe(loss)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return loss.item()


def numbers(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@FOREACH
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_saved_run_resumes_bit_for_bit(name, foreach):
    """Through a file that is read with weights_only, between two measurements."""

    def made():
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters(), lr=0.05, lag=2, every=3, foreach=foreach)
        return model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)

    data = list(batches(20))
    model, optimizer, scheduler = made()
    train(model, optimizer, data[:10], scheduler)
    file = io.BytesIO()
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    torch.save({key: part.state_dict() for key, part in parts.items()}, file)
    train(model, optimizer, data[10:], scheduler)

    torch.manual_seed(99)  # torch's global generator must not be used
    again = dict(zip(parts, made(), strict=True))
    file.seek(0)
    for key, state in torch.load(file, weights_only=True).items():
        again[key].load_state_dict(state)
    train(again["model"], again["optimizer"], data[10:], again["scheduler"])
    assert torch.equal(numbers(again["model"]), numbers(model))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_closure(name):
    x, y = parameter(), parameter()
    options = {"lr": 0.02, "gamma": -0.4, "every": 3}
    plain = iterates(OPTIMIZERS[name]([x], **options), x, 10)
    optimizer = OPTIMIZERS[name]([y], **options)

    def closure():
        optimizer.zero_grad()
        loss = quadratic(y)
        optimizer.observe(loss)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(10)]
    np.testing.assert_array_equal(y.detach().numpy(), plain[-1])
    assert losses[0] == quadratic(parameter()).item()


def test_options_of_groups():
    x, y = parameter(), parameter()
    groups = [{"params": [x], "lag": 2, "beta": 0.1}, {"params": [y], "gamma": -0.6}]
    optimizer = CFGD(groups, lr=0.02, gamma=0.3, curvature="exact", every=1)
    assert [group["gamma"] for group in optimizer.param_groups] == [None, -0.6]
    iterates(optimizer, x, 10, lambda x: quadratic(x) + quadratic(y))
    assert len(optimizer.state[x]["past"]) == 2
    options = {"lr": 0.02, "curvature": "exact", "every": 1}
    for of, more in ((x, {"lag": 2, "beta": 0.1}), (y, {"gamma": -0.6})):
        single = parameter()
        theirs = iterates(CFGD([single], **options, **more), single, 10)
        np.testing.assert_allclose(of.detach().numpy(), theirs[-1], rtol=1e-12)


def test_group_that_is_added_later():
    x, y = parameter(), parameter()
    optimizer = CFGD([x], lr=0.02, gamma=-0.4)
    iterates(optimizer, x, 5)
    optimizer.add_param_group({"params": [y], "lr": 0.01})
    iterates(optimizer, x, 5, lambda x: quadratic(x) + quadratic(y))
    assert optimizer.state[y]["step"] == 5
    assert optimizer.state[x]["step"] == 10


def test_invalid_group_is_not_added():
    optimizer = CFGD([parameter()])
    with pytest.raises(ValueError, match="lag"):
        optimizer.add_param_group({"params": [parameter()], "lag": 0})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_grad_scaler(name):
    """The scaler unscales the gradients, and skips the step if they overflow."""
    model, plain = network(), network()
    optimizer = OPTIMIZERS[name](model.parameters(), lr=0.05, every=2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for i, (z, y) in enumerate(batches(6)):
        optimizer.zero_grad()
        loss = ((model(z) - y) ** 2).mean()
        optimizer.observe(loss)
        scaler.scale(loss).backward()
        before = numbers(model)
        if i == 5:
            model[0].weight.grad[0, 0] = math.inf
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        scaler.step(optimizer)
        scaler.update()
    assert torch.equal(before, numbers(model))
    assert scaler.get_scale() == 512.0
    train(plain, OPTIMIZERS[name](plain.parameters(), lr=0.05, every=2), list(batches(5)))
    torch.testing.assert_close(numbers(model), numbers(plain))


def test_clipped_gradient_enters_the_formula():
    x = parameter()
    optimizer = CFGD([x], lr=0.1, gamma=-0.4, curvature=2.0)
    points = [X0]
    for _ in range(3):
        optimizer.zero_grad()
        quadratic(x).backward()
        torch.nn.utils.clip_grad_norm_([x], 0.5)
        optimizer.step()
        now, before = points[-1], points[max(len(points) - 2, 0)]
        g = gradient(now)
        g = g * min(1.0, 0.5 / (np.linalg.norm(g) + 1e-6))
        points.append(now - 0.1 * (g - 0.8 * (now - before)))
        np.testing.assert_allclose(x.detach().numpy(), points[-1], rtol=1e-12)


@pytest.mark.parametrize(("name", "copies"), [("CFGD", 1), ("CFAdam", 3), ("CFAdamW", 3)])
@pytest.mark.parametrize("lag", [1, 4])
def test_state_size_in_copies_of_the_parameters(name, copies, lag):
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters(), lag=lag)
    train(model, optimizer, batches(12))

    def size(value):
        if isinstance(value, torch.Tensor):
            return value.numel()
        return sum(map(size, value)) if isinstance(value, list) else 0

    total = sum(size(v) for state in optimizer.state.values() for v in state.values())
    assert total == (lag + copies) * numbers(model).numel()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_foreach_equals_the_loop_bit_for_bit(name):
    ends = []
    for foreach in (True, False, None):
        model = network()
        options = {"lr": 0.05, "lag": 2, "every": 3, "weight_decay": 0.1, "foreach": foreach}
        train(model, OPTIMIZERS[name](model.parameters(), **options), batches(12))
        ends.append(numbers(model))
    assert torch.equal(ends[0], ends[1])
    assert torch.equal(ends[0], ends[2])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_deep_copy_is_independent(name):
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters(), lr=0.05, every=2)
    train(model, optimizer, batches(5))
    twin, copied = copy.deepcopy((model, optimizer))
    train(model, optimizer, batches(5))
    assert not torch.equal(numbers(model), numbers(twin))
    train(twin, copied, batches(5))
    assert torch.equal(numbers(model), numbers(twin))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_torch_compile_does_not_change_a_step(name):
    ends = []
    for compiled in (False, True):
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters(), lr=0.05, lag=2, every=3, foreach=False)
        if compiled:
            optimizer.step = torch.compile(optimizer.step, backend="eager")
        train(model, optimizer, batches(12))
        ends.append(numbers(model))
    assert torch.equal(*ends)


@pytest.mark.slow
def test_jax_is_not_imported():
    code = (
        "import sys, torch\n"
        "from cfgd.integrations.torch import CFAdam\n"
        "x = torch.nn.Parameter(torch.ones(3))\n"
        "optimizer = CFAdam([x], curvature='exact')\n"
        "loss = (x**2).sum(); optimizer.observe(loss); loss.backward(); optimizer.step()\n"
        "print(*[name for name in ('jax', 'jaxlib', 'equinox') if name in sys.modules])"
    )
    source = str(Path(cfgd.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        **{"capture_output": True, "text": True, "check": True, "cwd": "/"},
        env={"PYTHONPATH": source, "PATH": "", "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout.strip() == ""
