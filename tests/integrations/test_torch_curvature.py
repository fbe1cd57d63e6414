"""The diagonal of the Hessian: unbiased, exact or given, measured when due, of the same batch."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cfgd[torch]'")

from cfgd.integrations.torch import CFGD, CFAdam, CFAdamW  # noqa: E402
from cfgd.integrations.torch.curvature import exact, gradients, hutchinson  # noqa: E402

random = np.random.default_rng(5)
ROOT = random.normal(size=(5, 5))
A = torch.tensor(ROOT + ROOT.T)  # indefinite, with large entries off the diagonal
X0 = torch.tensor(random.normal(size=5))


def model_of(x):
    """Return a loss in which two parameters of different shapes interact."""
    return torch.tanh(x[0] @ x[1]).square().sum() + (x[0] ** 3).sum()


def parameters():
    draw = torch.Generator().manual_seed(0)
    shapes = (3, 2), (2,)
    return [torch.randn(s, generator=draw, dtype=torch.float64).requires_grad_() for s in shapes]


def test_exact_is_the_diagonal_of_torchs_hessian():
    params = parameters()
    found = exact(gradients(model_of(params), params), params)
    blocks = torch.autograd.functional.hessian(lambda *x: model_of(x), tuple(params))
    for i, (p, D) in enumerate(zip(params, found, strict=True)):
        wanted = blocks[i][i].reshape(p.numel(), p.numel()).diagonal().reshape(p.shape)
        torch.testing.assert_close(D, wanted)


def test_a_probe_is_v_times_hv():
    """On a quadratic the result is v * Av for one of all sign vectors v."""
    x = X0.clone().requires_grad_()
    slopes = gradients(x @ A @ x / 2, [x])
    (D,) = hutchinson(slopes, [x], 1, "some seed")
    signs = np.array(np.meshgrid(*[[1, -1]] * 5)).reshape(5, -1).T
    known = [v * (A.numpy() @ v) for v in signs]
    assert min(np.abs(D.numpy() - one).max() for one in known) < 1e-12


def test_probes_are_unbiased():
    """The mean deviates from the diagonal by at most four standard errors."""
    x, n = X0.clone().requires_grad_(), 1000
    slopes = gradients(x @ A @ x / 2, [x])
    (D,) = hutchinson(slopes, [x], n, "0")
    off = (A - torch.diag(A.diagonal())).square().sum(1).sqrt()  # deviation of one probe
    assert ((D - A.diagonal()).abs() < 4 * off / n**0.5).all()
    assert ((D - A.diagonal()).abs() > 1e-9).any()  # the mean is not the exact diagonal


def test_random_signs_are_balanced_and_independent():
    """Also between measurements, groups and seeds."""
    x = torch.ones(10_001, requires_grad=True)
    slopes = [x * x.detach().sum() + x.sum()]  # whose H is ones + n I: Hv = n v + sum(v)
    drawn = [hutchinson(slopes, [x], 1, seed)[0] for seed in ("0 0 0", "0 0 1", "0 1 0", "1 0 0")]
    signs = [torch.sign(one - 10_001) for one in drawn]  # v * sum(v)
    for i, v in enumerate(signs):
        assert set(v.unique().tolist()) == {-1.0, 1.0}
        assert abs(v.mean()) < 0.05
        assert all(abs((v * w).mean()) < 0.05 for w in signs[:i])


def quadratic(x):
    return x @ A @ x / 2


def running_means(optimizer, x, steps, loss_of=quadratic):
    """Return the running mean after each observation."""
    means = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(x)
        optimizer.observe(loss)
        means.append(optimizer.state[x]["curvature"].clone())
        loss.backward()
        optimizer.step()
    return means


def test_curvature_is_measured_every_few_steps():
    x = X0.clone().requires_grad_()
    means = running_means(CFGD([x], lr=1e-3, every=4), x, 12)
    new = [k for k in range(1, 12) if not torch.equal(means[k], means[k - 1])]
    assert new == [4, 8]


def test_running_mean():
    """The weight is 1/n until that is less than 1 - keep."""
    x = X0.clone().requires_grad_()
    means = running_means(CFGD([x], lr=0.0, every=1, keep=0.75, seed=7), x, 9)
    slopes = gradients(quadratic(x), [x])
    mean = torch.zeros(5, dtype=torch.float64)
    for k in range(9):
        (one,) = hutchinson(slopes, [x], 1, f"7 0 {k}")
        w = max(1 / (k + 1), 0.25)
        mean = (1 - w) * mean + w * one
        torch.testing.assert_close(means[k], mean)


def test_accumulated_losses_add_up():
    """Two halves of a batch, each observed, have the curvature of the batch."""
    ends = []
    for halves in (1, 2):
        x = X0.clone().requires_grad_()
        optimizer = CFGD([x], lr=0.01, gamma=-0.5, curvature="exact", every=2)
        for _ in range(5):
            optimizer.zero_grad()
            for _ in range(halves):
                loss = (x**4).sum() / halves
                optimizer.observe(loss)
                loss.backward()
            optimizer.step()
        ends.append((x.detach(), optimizer.state[x]["curvature"]))
    torch.testing.assert_close(ends[0], ends[1])


def test_zero_grad_without_a_step_starts_a_new_measurement():
    x = X0.clone().requires_grad_()
    optimizer = CFGD([x], curvature="exact")
    for _ in range(2):
        optimizer.zero_grad()
        optimizer.observe(quadratic(x))
    torch.testing.assert_close(optimizer.state[x]["curvature"], A.diagonal())


def test_measurements_that_are_not_finite_are_left_out():
    x = X0.clone().requires_grad_()
    optimizer = CFGD([x], lr=0.0, every=1, curvature="exact")
    running_means(optimizer, x, 1)
    (mean,) = running_means(optimizer, x, 1, lambda x: quadratic(x) * torch.inf)
    torch.testing.assert_close(mean, A.diagonal())
    large = torch.full((3,), 3e38, requires_grad=True)  # whose sum overflows, and no entry does
    optimizer = CFGD([large], curvature="exact")
    optimizer.observe((large.detach() * large**2).sum() / 2)
    assert (optimizer.state[large]["curvature"] == 3e38).all()


def test_measuring_has_no_side_effects():
    x = X0.clone().requires_grad_()
    optimizer = CFAdam([x])
    loss, before = quadratic(x), torch.random.get_rng_state()
    optimizer.observe(loss)
    assert x.grad is None
    assert torch.equal(torch.random.get_rng_state(), before)
    loss.backward()
    torch.testing.assert_close(x.grad, (A @ x).detach())
    assert optimizer.state[x]["curvature"].requires_grad is False


def test_curvature_scales_with_the_loss_of_the_batch():
    x = X0.clone().requires_grad_()
    optimizer = CFGD([x], lr=0.0, every=1, keep=0.0, curvature="exact")
    for scale in (1.0, 3.0):
        running_means(optimizer, x, 1, lambda x, scale=scale: scale * quadratic(x))
        torch.testing.assert_close(optimizer.state[x]["curvature"], scale * A.diagonal())
        torch.testing.assert_close(x.grad, scale * (A @ x).detach())


def test_groups_share_their_probes():
    x, y = X0.clone().requires_grad_(), X0.clone().requires_grad_()
    z = torch.cat([x, y])
    H = torch.block_diag(A, A) + 1.0
    optimizer = CFGD([{"params": [x]}, {"params": [y], "lr": 0.1}])
    optimizer.observe(z @ H @ z / 2)
    D = torch.cat([optimizer.state[p]["curvature"] for p in (x, y)])
    both = hutchinson(gradients(z @ H @ z / 2, [x, y]), [x, y], 1, "0 0 0")
    torch.testing.assert_close(D, torch.cat(both))


def test_parameters_that_the_loss_does_not_use():
    x, y, frozen = (X0.clone().requires_grad_() for _ in range(3))
    frozen.requires_grad_(False)
    optimizer = CFGD([x, y, frozen], lr=0.1, every=1)
    for linear in (0.0, 1.0):  # a loss without y, and one that is linear in it
        optimizer.zero_grad()
        loss = quadratic(x) + (linear * y.sum() if linear else 0.0)
        optimizer.observe(loss)
        loss.backward()
        optimizer.step()
    assert (optimizer.state[y]["curvature"] == 0).all()
    torch.testing.assert_close(y.detach(), X0 - 0.1)
    torch.testing.assert_close(frozen, X0)


@pytest.mark.parametrize("cls", [CFGD, CFAdam, CFAdamW])
def test_given_number_equals_a_constant_tensor(cls):
    ends = []
    for given in (2.0, [torch.full((5,), 2.0)], 2):
        x = X0.clone().requires_grad_()
        optimizer = cls([x], lr=0.05, gamma=-0.7, curvature=given)
        for _ in range(10):
            optimizer.zero_grad()
            quadratic(x).backward()
            optimizer.step()
        ends.append(x.detach())
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-14, atol=1e-14)
    assert torch.equal(ends[0], ends[2])


def test_step_without_a_measurement_raises():
    x = X0.clone().requires_grad_()
    optimizer = CFGD([x], every=2)
    message = (
        "`CFGD.step` must follow `optimizer.observe(loss)`, called before each "
        "`loss.backward()`, or `curvature` be given, got no curvature of the last 2 steps."
    )
    quadratic(x).backward()
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}$"):
        optimizer.step()
    optimizer.observe(quadratic(x))
    optimizer.step()
    optimizer.step()
    with pytest.raises(RuntimeError, match="must follow"):  # a later measurement is missing
        optimizer.step()


def leaf(*shape, dtype=None):
    return torch.nn.Parameter(torch.ones(shape, dtype=dtype))


KINDS = (
    "be 'hutchinson', 'exact', a finite number or a list with a tensor for each parameter, "
    "of its shape"
)
INVALID = {
    "lr": ({"lr": -1.0}, "`CFAdam(lr=...)` must be at least 0, got -1.0."),
    "alpha": ({"alpha": 1.0}, "`CFAdam(alpha=...)` must lie in (0, 1), got 1.0."),
    "both": (
        {"beta": 0.1, "gamma": 0.1},
        "`CFAdam` takes exactly one of `beta` and `gamma`, got both.",
    ),
    "gamma": (
        {"gamma": float("nan")},
        "`CFAdam(gamma=...)` must be a finite number, got nan.",
    ),
    "lag": ({"lag": 0}, "`CFAdam(lag=...)` must be an integer of at least 1, got 0."),
    "every": ({"every": 1.5}, "`CFAdam(every=...)` must be an integer of at least 1, got 1.5."),
    "keep": ({"keep": 1.0}, "`CFAdam(keep=...)` must lie in [0, 1), got 1.0."),
    "betas": ({"betas": (0.9, 1.0)}, "`CFAdam(betas[1]=...)` must lie in [0, 1), got 1.0."),
    "eps": ({"eps": -1.0}, "`CFAdam(eps=...)` must be at least 0, got -1.0."),
    "decay": ({"weight_decay": -0.1}, "`CFAdam(weight_decay=...)` must be at least 0, got -0.1."),
    "curvature": ({"curvature": "newton"}, f"`CFAdam(curvature=...)` must {KINDS}, got 'newton'."),
    "too few": (
        {"curvature": [torch.ones(2)] * 2},
        f"`CFAdam(curvature=...)` must {KINDS}, got 2 for 1 parameters.",
    ),
    "shape": (
        {"curvature": [torch.ones(3)]},
        f"`CFAdam(curvature=...)` must {KINDS}, got shape (3,) for a parameter of (2,) at index 0.",
    ),
    "capturable": (
        {"capturable": True},
        "`CFAdam(capturable=...)` must be False, because the index of the terminal is counted on "
        "the host, got True.",
    ),
    "differentiable": (
        {"differentiable": True},
        "`CFAdam(differentiable=...)` must be False, because steps are in place, got True.",
    ),
    "foreach": ({"foreach": 2}, "`CFAdam(foreach=...)` must be True, False or None, got 2."),
    "maximize": ({"maximize": 1}, "`CFAdam(maximize=...)` must be True or False, got 1."),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("case", INVALID)
def test_invalid_options_raise(case):
    options, message = INVALID[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CFAdam([leaf(2)], **options)


def test_complex_parameters_raise():
    message = "`CFGD(params=...)` must be tensors of real floating-point numbers, got torch.complex"
    with pytest.raises(ValueError, match=re.escape(message)):
        CFGD([leaf(2, dtype=torch.complex64)])


LOSSES = {
    "number": (1.0, "1.0"),
    "detached": (torch.ones(()), "shape () without a graph"),
    "vector": (leaf(2) * 2, "shape (2,)"),
}


@pytest.mark.parametrize("case", LOSSES)
def test_invalid_loss_raises(case):
    loss, got = LOSSES[case]
    message = (
        "`CFGD.observe(loss=...)` must be a tensor of one number with a graph, before its "
        f"backward(), got {got}."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CFGD([leaf(2)]).observe(loss)


def test_observe_in_one_of_several_processes_raises(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    x = leaf(2)
    message = (
        "`CFGD.observe(loss=...)` must be the loss of all processes: with several, give "
        "`curvature` instead, got that of one of 2."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CFGD([x]).observe((x**2).sum())


def test_exact_for_a_large_model_raises():
    x = leaf(150, 150)
    message = (
        "`CFGD(curvature=...)` must be 'hutchinson' for more than 20000 numbers, got 'exact' for "
        "22500."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CFGD([x], curvature="exact").observe((x**2).sum())


@pytest.mark.parametrize("cls", [CFGD, CFAdam, CFAdamW])
def test_sparse_gradients_raise(cls):
    table = torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    message = f"`{cls.__name__}` must be given dense gradients, got a sparse one."
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}$"):
        cls(table.parameters(), curvature=1.0).step()
