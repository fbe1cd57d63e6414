"""The PyTorch optimizers: the formula, the core's iterates, and what surrounds a step."""

import copy
import functools
import io
import math
import subprocess
import sys
import time
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


def walk(optimizer, x, steps, loss_of=quadratic):
    """The iterates, the start included."""
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


def transcribed(kind, x0, steps, lr, gamma, lag, *, D, gradient, decay=0.0, coupled=True):
    """The formulas in NumPy, with all iterates at hand instead of a ring."""
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
def test_the_formula_in_numpy(name, lag, gamma, foreach):
    x, decay = parameter(), 0.2
    options = {"gamma": gamma, "lag": lag, "weight_decay": decay, "foreach": foreach}
    options |= {"curvature": "exact", "every": 1}
    ours = walk(OPTIMIZERS[name]([x], lr=0.02, **options), x, 40)
    kind, coupled = ("gd" if name == "CFGD" else "adam"), name != "CFAdamW"
    D = {"D": lambda x: np.diag(A), "gradient": gradient, "decay": decay, "coupled": coupled}
    theirs = transcribed(kind, X0, 40, 0.02, gamma, lag, **D)
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


def test_the_curvature_is_that_of_the_point():
    """Of a function whose curvature is not constant."""
    D = {"D": lambda x: 0.3 * np.arange(1.0, 7.0) * x**2 + np.diag(A), "gradient": quartic_gradient}
    x = parameter(X0 / 2)
    optimizer = CFGD([x], lr=0.02, gamma=-0.5, curvature="exact", every=1, lag=2)
    ours = walk(optimizer, x, 30, quartic)
    theirs = transcribed("gd", X0 / 2, 30, 0.02, -0.5, 2, **D)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@functools.cache
def cores(gamma, lag, eta, steps):
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


@FOREACH
@pytest.mark.parametrize(("gamma", "lag"), [(-0.5, 1), (0.4, 1), (-0.3, 3)])
def test_iterates_are_those_of_the_core(gamma, lag, foreach):
    theirs = cores(gamma, lag, 0.03, 200)
    for given in ("exact", [torch.tensor(np.diag(A).copy())]):
        x = parameter()
        options = {"gamma": gamma, "lag": lag, "curvature": given, "every": 7, "foreach": foreach}
        ours = walk(CFGD([x], lr=0.03, **options), x, 200)
        assert len(theirs) == 201
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_drift_in_single_precision():
    """Against the core in double precision: 200 steps stay within 2e-7 of the largest entry."""
    theirs = cores(-0.5, 1, 0.03, 200)
    x = parameter(dtype=torch.float32)
    options = {"gamma": -0.5, "curvature": "exact", "every": 50}
    ours = walk(CFGD([x], lr=0.03, **options), x, 200)
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() < 2e-7 * np.abs(theirs).max()


def test_alpha_and_beta_are_gamma():
    x, y = parameter(), parameter()
    gamma = 0.1 - (1 - 0.3) / (2 - 0.3)
    one = walk(CFGD([x], lr=0.02, alpha=0.3, beta=0.1, curvature="exact", every=1), x, 20)
    other = walk(CFGD([y], lr=0.02, gamma=gamma, curvature="exact", every=1), y, 20)
    np.testing.assert_allclose(one, other, rtol=1e-13)


@FOREACH
@pytest.mark.parametrize(
    ("ours", "theirs", "decay"),
    [(CFGD, "SGD", 0.1), (CFAdam, "Adam", 0.1), (CFAdamW, "AdamW", 0.1), (CFAdam, "Adam", 0.0)],
)
def test_without_memory_it_is_torchs_own(ours, theirs, decay, foreach):
    """gamma = 0; CFGD bit for bit, Adam's corrections are made in another order."""
    x, y = parameter(), parameter()
    options = {"lr": 0.03, "weight_decay": decay, "foreach": foreach}
    theirs = getattr(torch.optim, theirs)([y], **options)
    theirs.observe = lambda loss: None
    points = walk(ours([x], gamma=0.0, curvature=1.0, **options), x, 50)
    close = 0 if ours is CFGD else 1e-13
    np.testing.assert_allclose(points, walk(theirs, y, 50), rtol=close, atol=close)


@FOREACH
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_maximize_is_minimising_the_negative(name, foreach):
    x, y = parameter(), parameter()
    options = {"lr": 0.02, "weight_decay": 0.1, "gamma": -0.4, "foreach": foreach, "every": 2}
    up = OPTIMIZERS[name]([x], maximize=True, **options)
    down = OPTIMIZERS[name]([y], **options)
    one = walk(up, x, 20, lambda x: -quartic(x))
    np.testing.assert_allclose(one, walk(down, y, 20, quartic), rtol=1e-12)


def test_weight_decay_is_a_part_of_the_loss():
    """CFGD's decay is what the loss with decay/2 |x|^2 gives, in g and in D."""
    x, y = parameter(), parameter()
    options = {"lr": 0.02, "gamma": -0.4, "curvature": "exact", "every": 1}
    one = walk(CFGD([x], weight_decay=0.7, **options), x, 30)
    other = walk(CFGD([y], **options), y, 30, lambda x: quadratic(x) + 0.35 * x @ x)
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
def test_a_run_resumes_bit_for_bit(name, foreach):
    """Through a file that is read with weights_only, in the middle between two measurements."""

    def made():
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters(), lr=0.05, lag=2, every=3, foreach=foreach)
        return model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)

    data = list(batches(20))
    model, optimizer, scheduler = made()
    train(model, optimizer, data[:10], scheduler)
    kept = io.BytesIO()
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    torch.save({key: part.state_dict() for key, part in parts.items()}, kept)
    train(model, optimizer, data[10:], scheduler)

    torch.manual_seed(99)  # no random number of torch's own is used
    again = dict(zip(parts, made(), strict=True))
    kept.seek(0)
    for key, state in torch.load(kept, weights_only=True).items():
        again[key].load_state_dict(state)
    train(again["model"], again["optimizer"], data[10:], again["scheduler"])
    assert torch.equal(numbers(again["model"]), numbers(model))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_closure(name):
    x, y = parameter(), parameter()
    options = {"lr": 0.02, "gamma": -0.4, "every": 3}
    plain = walk(OPTIMIZERS[name]([x], **options), x, 10)
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


def test_groups_have_their_own_options():
    x, y, alone = parameter(), parameter(), parameter()
    groups = [{"params": [x], "lag": 2, "beta": 0.1}, {"params": [y], "gamma": -0.6}]
    optimizer = CFGD(groups, lr=0.02, gamma=0.3, curvature="exact", every=1)
    assert [group["gamma"] for group in optimizer.param_groups] == [None, -0.6]
    walk(optimizer, x, 10, lambda x: quadratic(x) + quadratic(y))
    assert len(optimizer.state[x]["past"]) == 2
    options = {"lr": 0.02, "curvature": "exact", "every": 1}
    for of, more in ((x, {"lag": 2, "beta": 0.1}), (y, {"gamma": -0.6})):
        alone = parameter()
        theirs = walk(CFGD([alone], **options, **more), alone, 10)
        np.testing.assert_allclose(of.detach().numpy(), theirs[-1], rtol=1e-12)


def test_a_group_that_is_added_later():
    x, y = parameter(), parameter()
    optimizer = CFGD([x], lr=0.02, gamma=-0.4)
    walk(optimizer, x, 5)
    optimizer.add_param_group({"params": [y], "lr": 0.01})
    walk(optimizer, x, 5, lambda x: quadratic(x) + quadratic(y))
    assert optimizer.state[y]["step"] == 5
    assert optimizer.state[x]["step"] == 10


def test_a_group_that_is_refused_is_not_added():
    optimizer = CFGD([parameter()])
    with pytest.raises(ValueError, match="lag"):
        optimizer.add_param_group({"params": [parameter()], "lag": 0})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_scaled_loss(name):
    """GradScaler divides the gradients again, and does not step where they overflow."""
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


def test_a_clipped_gradient_is_the_gradient_of_the_formula():
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
def test_the_state_in_copies_of_the_parameters(name, copies, lag):
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters(), lag=lag)
    train(model, optimizer, batches(12))

    def held(value):
        if isinstance(value, torch.Tensor):
            return value.numel()
        return sum(map(held, value)) if isinstance(value, list) else 0

    kept = sum(held(v) for state in optimizer.state.values() for v in state.values())
    assert kept == (lag + copies) * numbers(model).numel()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_both_paths_are_equal(name):
    """Bit for bit, on a network, with decay, several lags and measured curvature."""
    ends = []
    for foreach in (True, False, None):
        model = network()
        options = {"lr": 0.05, "lag": 2, "every": 3, "weight_decay": 0.1, "foreach": foreach}
        train(model, OPTIMIZERS[name](model.parameters(), **options), batches(12))
        ends.append(numbers(model))
    assert torch.equal(ends[0], ends[1])
    assert torch.equal(ends[0], ends[2])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_deep_copy_goes_its_own_way(name):
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters(), lr=0.05, every=2)
    train(model, optimizer, batches(5))
    twin, copied = copy.deepcopy((model, optimizer))
    train(model, optimizer, batches(5))
    assert not torch.equal(numbers(model), numbers(twin))
    train(twin, copied, batches(5))
    assert torch.equal(numbers(model), numbers(twin))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_compiled_step_is_right(name):
    """Tried with torch.compile: a step is left uncompiled, and is the same."""
    ends = []
    for compiled in (False, True):
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters(), lr=0.05, lag=2, every=3, foreach=False)
        if compiled:
            optimizer.step = torch.compile(optimizer.step, backend="eager")
        train(model, optimizer, batches(12))
        ends.append(numbers(model))
    assert torch.equal(*ends)


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


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("batch", [64, 128])
def test_the_time_of_a_training_step(batch):
    """CFAdam, measuring every ten steps, against torch's Adam: a million parameters, foreach."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(0)
    z, y = torch.randn(2, batch, 256, generator=draw)

    def made(cls, **options):
        sizes = (256, 768), (768, 768), (768, 256)
        first, *rest = [torch.nn.Linear(*size) for size in sizes]
        model = torch.nn.Sequential(first, *[m for one in rest for m in (torch.nn.Tanh(), one)])
        return model, cls(model.parameters(), lr=1e-4, foreach=True, **options)

    def seconds(model, optimizer):
        begin = time.process_time()
        for _ in range(10):
            optimizer.zero_grad()
            loss = ((model(z) - y) ** 2).mean()
            if isinstance(optimizer, CFAdam):
                optimizer.observe(loss)
            loss.backward()
            optimizer.step()
        return time.process_time() - begin

    pairs = made(CFAdam, every=10), made(torch.optim.Adam)
    times = np.array([[seconds(*pair) for pair in pairs] for _ in range(20)])[2:]
    torch.set_num_threads(threads)
    ours, theirs = np.median(times, 0)
    print(f"batch {batch}: {ours / theirs:.2f}")
    assert ours / theirs < 1.6
