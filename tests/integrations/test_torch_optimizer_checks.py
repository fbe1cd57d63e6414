"""PyTorch's checks of optimizers (test/test_optim.py), for cfgd's, with torch's `OptimizerInfo`.

torch's wheel contains `OptimizerInfo` but not the tests, so the tests are repeated here under the
same names. These do not apply:

| torch's check | why not |
|---|---|
| complex, complex_2d | complex parameters raise |
| rosenbrock_sparse | sparse gradients raise |
| fused_*, peak_memory_foreach, foreach_large_tensor, defaults_changed_to_foreach | CUDA kernels |
| *_multigpu, state_dict_with_cuda_params, cpu_load_state_dict | devices |
| mixed_device_dtype | devices; dtypes are mixed in `test_mixed_dtype` |
| can_load_older_state_dict, load_nontensor_step, adamw_serialization | there is no older version |
| second_order_optims_return_consistent_types | for L-BFGS |
| step_iteration | for capturable; `step` is an integer |
| TestDifferentiableOptimizer | differentiable raises |
"""

import copy
import io
import pickle

import pytest

REASON = "torch's OptimizerInfo needs PyTorch and expecttest: pip install both"
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("expecttest", reason=REASON)

from torch.nn import Parameter  # noqa: E402
from torch.optim import lr_scheduler  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402
from torch.testing._internal.common_optimizers import (  # noqa: E402
    ErrorOptimizerInput,
    OptimizerErrorEnum,
    OptimizerInfo,
    OptimizerInput,
    _get_optim_inputs_including_global_cliquey_kwargs,
    get_error_inputs_for_all_optims,
)

from cfgd.integrations.torch import CFGD, CFAdam, CFAdamW  # noqa: E402

pytestmark = [pytest.mark.usefixtures("unchecked"), pytest.mark.slow]


def inputs(**more):
    """Return options as a function of the device; torch adds the flag foreach."""
    each = {
        "default": {},
        "lag": {"lag": 3, "gamma": -0.4},
        "beta": {"alpha": 0.7, "beta": 0.1},
        "exact": {"curvature": "exact", "every": 2},
        "given": {"curvature": 0.5},
        "weight_decay": {"weight_decay": 0.1},
        "maximize": {"maximize": True},
        "tensor lr": {"lr": torch.tensor(0.01)},
    }
    options = [OptimizerInput(None, {"lr": 0.01} | more | kw, desc) for desc, kw in each.items()]
    return lambda device, dtype=None: options


def errors(device, dtype):
    invalid = {"lr": -1.0, "weight_decay": -1.0, "lag": 0, "alpha": 0.0, "curvature": "none"}
    return get_error_inputs_for_all_optims(device, dtype) + [
        ErrorOptimizerInput(
            OptimizerInput(None, {field: value}, field), error_type=ValueError, error_regex=field
        )
        for field, value in invalid.items()
    ]


SCHEDULERS = (
    lambda opt: lr_scheduler.StepLR(opt, step_size=10, gamma=0.9),
    lambda opt: lr_scheduler.ExponentialLR(opt, 0.99),
    lambda opt: lr_scheduler.LinearLR(opt, start_factor=0.4, total_iters=4),
    lambda opt: lr_scheduler.CosineAnnealingLR(opt, 30),
    lambda opt: lr_scheduler.ReduceLROnPlateau(opt),
)
INFOS = [
    OptimizerInfo(
        cls,
        optim_inputs_func=inputs(**more),
        scheduler_inputs=SCHEDULERS,
        supported_impls=("foreach",),
        not_og_supported_flags=(),
        supports_complex=False,
        optim_error_inputs_func=errors,
    )
    for cls, more in ((CFGD, {}), (CFAdam, {}), (CFAdamW, {"betas": (0.8, 0.99)}))
]
CASES = [
    pytest.param(info, each.kwargs, id=f"{info.name} {each.desc}")
    for info in INFOS
    for each in _get_optim_inputs_including_global_cliquey_kwargs("cpu", torch.float32, info)
    if info.optim_cls is not CFAdamW or each.desc in ("default", "lag", "weight_decay")
]  # CFAdamW inherits from CFAdam, which runs all cases
each_case = pytest.mark.parametrize(("info", "options"), CASES)
each_info = pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)


def leaves(*shapes, dtype=torch.float64, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [Parameter(torch.randn(shape, generator=draw, dtype=dtype)) for shape in shapes]


def loss_of(params):
    """Return a sum of nonlinear terms for parameters of any shapes."""
    return sum(((p.double() * (i + 1)).square() + (p.double() - 0.3) ** 4).sum()
               for i, p in enumerate(params))  # fmt: skip


def steps(optimizer, params, count):
    sign = -1 if optimizer.defaults["maximize"] else 1

    def closure():
        optimizer.zero_grad()
        loss = sign * loss_of(params)
        if loss.requires_grad:
            optimizer.observe(loss)
            loss.backward()
        return loss

    return [optimizer.step(closure).item() * sign for _ in range(count)]


def make(info, options, params):
    return info.optim_cls(params, **copy.deepcopy(options))


def same(one, other):
    return all(torch.equal(p, q) for p, q in zip(one, other, strict=True))


def test_optim_infos_do_not_specify_global_cliquey_kwargs():
    flags = {"foreach", "fused", "differentiable"}
    assert not any(flags & set(one.kwargs) for i in INFOS for one in i.optim_inputs_func("cpu"))


@each_info
def test_errors(info):
    for error in info.optim_error_inputs_func("cpu", torch.float32):
        given = error.optimizer_error_input
        assert error.error_on is OptimizerErrorEnum.CONSTRUCTION_ERROR
        params = leaves((2, 3)) if given.params is None else given.params
        caught = pytest.warns if issubclass(error.error_type, Warning) else pytest.raises
        with caught(error.error_type, match=error.error_regex):
            info.optim_cls(params, **given.kwargs)


@each_case
def test_goes_right_direction(info, options):
    """Parameters: matrix, vector, scalar, empty, and a matrix that is not contiguous."""
    params = [*leaves((4, 3), (3,), (), (0,)), Parameter(torch.randn(3, 4).double().t())]
    assert not params[-1].is_contiguous()
    values = steps(make(info, options, params), params, 15)
    assert values[-1] < values[0]
    assert all(p.isfinite().all() for p in params)


@pytest.mark.parametrize("place", range(len(SCHEDULERS)))
@each_info
def test_with_lrsched_goes_right_direction(info, place):
    params = leaves((4, 3), (3,))
    optimizer = info.optim_cls(params, lr=0.02)
    scheduler = info.scheduler_inputs[place](optimizer)
    first = last = None
    for _ in range(30):
        (last,) = steps(optimizer, params, 1)
        first = last if first is None else first
        on_plateau = isinstance(scheduler, lr_scheduler.ReduceLROnPlateau)
        scheduler.step(last) if on_plateau else scheduler.step()
    assert last < first


@each_info
def test_param_group_with_lrscheduler_goes_right_direction(info):
    params = leaves((4, 3), (3,))
    optimizer = info.optim_cls([{"params": [params[0]], "lr": 0.03}, {"params": params[1:]}], 0.01)
    scheduler = lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    values = []
    for _ in range(9):
        values += steps(optimizer, params, 1)
        scheduler.step()
    assert values[-1] < values[0]
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([0.03 / 8, 0.01 / 8])


@pytest.mark.parametrize("make", [lr_scheduler.OneCycleLR, lr_scheduler.CyclicLR])
def test_schedulers_that_change_betas(make):
    params = leaves((4, 3))
    optimizer = CFAdam(params, lr=0.01)
    more = {"total_steps": 20} if make is lr_scheduler.OneCycleLR else {"base_lr": 0.001}
    scheduler = make(optimizer, max_lr=0.05, cycle_momentum=True, **more)
    for _ in range(10):
        steps(optimizer, params, 1)
        scheduler.step()
    assert optimizer.param_groups[0]["betas"][0] != 0.9


@each_info
def test_tensor_lr(info):
    one, other = leaves((4, 3)), leaves((4, 3))
    steps(info.optim_cls(one, lr=torch.tensor(0.01, dtype=torch.float64)), one, 5)
    steps(info.optim_cls(other, lr=0.01), other, 5)
    assert same(one, other)


@each_case
def test_step_is_noop_when_params_have_no_grad(info, options):
    params = leaves((4, 3), (3,))
    before = [p.detach().clone() for p in params]
    optimizer = make(info, options, params)
    optimizer.step()
    assert same(params, before)
    assert not optimizer.state


@each_case
def test_step_is_noop_for_zero_grads(info, options):
    options = options | {"weight_decay": 0.0}  # a decay moves parameters without a gradient
    params = leaves((4, 3), (3,))
    before = [p.detach().clone() for p in params]
    optimizer = make(info, options, params)
    for _ in range(3):
        optimizer.zero_grad()
        loss = 0 * loss_of(params)
        optimizer.observe(loss)
        loss.backward()
        optimizer.step()
    assert same(params, before)


@each_case
def test_grads_are_never_inplaced_into(info, options):
    params = leaves((4, 3), (3,))
    optimizer = make(info, options, params)
    for _ in range(4):
        optimizer.zero_grad()
        loss = loss_of(params)
        optimizer.observe(loss)
        loss.backward()
        versions = [p.grad._version for p in params]
        optimizer.step()
        assert [p.grad._version for p in params] == versions


@each_case
def test_optimizer_can_be_printed(info, options):
    assert info.name in repr(make(info, options, leaves((2,))))


@each_case
def test_state_dict_deterministic(info, options):
    named = "lag" in options
    params = leaves((4, 3), (3,), ())
    given = [(f"p{i}", p) for i, p in enumerate(params)] if named else params
    optimizer = make(info, options, given)
    steps(optimizer, params, 5)
    twins = [Parameter(p.detach().clone()) for p in params]
    again = make(info, {}, [(f"q{i}", p) for i, p in enumerate(twins)] if named else twins)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    again.defaults["maximize"] = optimizer.defaults["maximize"]  # for the sign in `steps`
    for _ in range(4):
        steps(optimizer, params, 1)
        steps(again, twins, 1)
        assert same(params, twins)


@each_case
def test_save_load_equality_with_weights_only(info, options):
    params = leaves((4, 3), (3,))
    optimizer = make(info, options, params)
    steps(optimizer, params, 5)
    saved, file = optimizer.state_dict(), io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)
    assert read["param_groups"] == saved["param_groups"]
    for key, state in saved["state"].items():
        torch.testing.assert_close(read["state"][key], state, rtol=0, atol=0)


@each_info
def test_can_load_from_to_named_state_dict(info):
    params, twins = leaves((4, 3)), leaves((4, 3))
    named = info.optim_cls([("w", params[0])], lr=0.01)
    plain = info.optim_cls(twins, lr=0.01)
    steps(named, params, 3)
    plain.load_state_dict(named.state_dict())
    named.load_state_dict(plain.state_dict())
    assert named.param_groups[0]["param_names"] == ["w"]
    steps(named, params, 1)


@each_case
def test_deepcopy_copies_all_public_attrs(info, options):
    params = leaves((4, 3), (3,))
    optimizer = make(info, options, params)
    steps(optimizer, params, 5)
    public = {k for k in dir(optimizer) if not k.startswith("_")}
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert {k for k in dir(twin) if not k.startswith("_")} == public
        twins = twin.param_groups[0]["params"]
        assert same(twins, params)
    mine = [p.detach().clone() for p in params]
    steps(twin, twins, 1)
    assert same(params, mine)
    steps(optimizer, params, 1)
    assert same(params, twins)


@each_case
def test_non_empty_state(info, options):
    params = leaves((4, 3))
    optimizer = make(info, options, params)
    steps(optimizer, params, 1)
    assert all(optimizer.state[p] for p in params)


@each_case
def test_foreach_matches_forloop(info, options):
    ends = []
    for foreach in (True, False):
        params = leaves((4, 3), (3,), (), (0,), (2, 1, 2))
        steps(make(info, options | {"foreach": foreach}, params), params, 9)
        ends.append(params)
    assert same(*ends)


@each_case
def test_mixed_dtype(info, options):
    def mixed():
        types = torch.float64, torch.float32, torch.bfloat16, torch.float64
        return [leaves((3, 2), dtype=dtype)[0] for dtype in types]

    ends = []
    for foreach in (True, False):
        params = mixed()
        values = steps(make(info, options | {"foreach": foreach}, params), params, 9)
        ends.append(params)
    assert same(*ends)
    assert values[-1] < values[0]
    assert [p.dtype for p in params] == [p.dtype for p in mixed()]


@each_info
def test_set_default_dtype_works_with_foreach(info):
    before = torch.get_default_dtype()
    params = leaves((4, 3), dtype=torch.float32)
    optimizer = info.optim_cls(params, foreach=True)
    try:
        torch.set_default_dtype(torch.float64)
        steps(optimizer, params, 3)
    finally:
        torch.set_default_dtype(before)
    state = optimizer.state[params[0]]
    assert {t.dtype for t in [*state["past"], state["curvature"]]} == {torch.float32}


@each_info
def test_param_groups_lr(info):
    """A group with lr = 0 does not move, and a group may be empty."""
    x, y = leaves((4,), (4,))
    groups = [{"params": [x], "lr": 0.0}, {"params": [y]}, {"params": []}]
    before = x.detach().clone()
    values = steps(info.optim_cls(groups, lr=0.01), [x, y], 10)
    assert torch.equal(x, before)
    assert values[-1] < values[0]


@each_info
def test_param_groups_weight_decay(info):
    x, y = leaves((4,), (4,), seed=2)
    with torch.no_grad():
        y.copy_(x)
    optimizer = info.optim_cls(
        [{"params": [x], "weight_decay": 0.9}, {"params": [y]}], lr=0.05, weight_decay=0.0
    )
    for _ in range(40):
        optimizer.zero_grad()
        loss = ((x - 1) ** 2).sum() + ((y - 1) ** 2).sum()
        optimizer.observe(loss)
        loss.backward()
        optimizer.step()
    assert x.norm() < y.norm()


@each_info
def test_zero_grad(info):
    params = leaves((4, 3))
    optimizer = info.optim_cls(params)
    loss_of(params).backward()
    optimizer.zero_grad(set_to_none=False)
    assert (params[0].grad == 0).all()
    optimizer.zero_grad()
    assert params[0].grad is None


@each_info
def test_step_and_state_dict_hooks(info):
    params, events = leaves((4, 3)), []
    optimizer = info.optim_cls(params)
    note = lambda name: lambda *args: events.append(name)  # noqa: E731
    optimizer.register_step_pre_hook(note("before"))
    optimizer.register_step_post_hook(note("after"))
    optimizer.register_state_dict_pre_hook(note("saving"))
    optimizer.register_state_dict_post_hook(note("saved"))
    optimizer.register_load_state_dict_pre_hook(note("loading"))
    optimizer.register_load_state_dict_post_hook(note("loaded"))
    handle = register_optimizer_step_post_hook(note("all"))
    try:
        steps(optimizer, params, 1)
    finally:
        handle.remove()
    optimizer.load_state_dict(optimizer.state_dict())
    assert sorted(events[:3]) == ["after", "all", "before"]
    assert events[3:] == ["saving", "saved", "loading", "loaded"]
