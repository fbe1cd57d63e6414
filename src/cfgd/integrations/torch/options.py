"""The options of a parameter group, which are checked once, when the group is added."""

from __future__ import annotations

from typing import Any

import torch

from cfgd.integrations.torch import checks
from cfgd.integrations.torch.direction import gamma_of

Group = dict[str, Any]

# values of `curvature` for which D is measured
MEASURED = ("hutchinson", "exact")
# options of torch's optimizers that must be False, and why
UNSUPPORTED = {
    "capturable": "the index of the terminal is counted on the host",
    "differentiable": "steps are in place",
}


def check_options(owner: str, group: Group) -> None:
    """Check the options that all optimizers share, but for `curvature`."""
    _check_lr(owner, group["lr"])
    if (group["beta"] is None) == (group["gamma"] is None):
        got = "neither" if group["beta"] is None else "both"
        raise ValueError(f"`{owner}` takes exactly one of `beta` and `gamma`, got {got}.")
    checks.number(owner, "alpha", group["alpha"], "lie in (0, 1)", lambda v: 0 < v < 1)
    field = "gamma" if group["beta"] is None else "beta"
    checks.number(owner, field, group[field], "be a finite number", lambda v: True)
    for field, least in (("lag", 1), ("every", 1), ("probes", 1), ("seed", 0)):
        checks.integer(owner, field, group[field], least)
    checks.number(owner, "keep", group["keep"], "lie in [0, 1)", lambda v: 0 <= v < 1)
    checks.number(owner, "weight_decay", group["weight_decay"], "be at least 0", lambda v: v >= 0)
    checks.flag(owner, "maximize", group["maximize"])
    if group["foreach"] not in (None, True, False):
        checks.fail(owner, "foreach", "be True, False or None", repr(group["foreach"]))
    for field, reason in UNSUPPORTED.items():
        checks.flag(owner, field, group[field])
        if group[field]:
            checks.fail(owner, field, f"be False, because {reason}", True)
    for p in group["params"]:
        if not p.is_floating_point():
            checks.fail(owner, "params", "be tensors of real floating-point numbers", p.dtype)


def check_betas(owner: str, group: Group) -> None:
    """Check the options of Adam."""
    betas = group["betas"]
    if not isinstance(betas, list | tuple) or len(betas) != 2:
        checks.fail(owner, "betas", "be two numbers", repr(betas))
    for i, value in enumerate(betas):
        checks.number(owner, f"betas[{i}]", value, "lie in [0, 1)", lambda v: 0 <= v < 1)
    checks.number(owner, "eps", group["eps"], "be at least 0", lambda v: v >= 0)


def checked_curvature(owner: str, given: Any, params: list[Any]) -> Any:
    """Return `curvature` as a name, a float, or a tensor like each parameter."""
    wanted = (
        "be 'hutchinson', 'exact', a finite number or a list with a tensor for each parameter, "
        "of its shape"
    )
    if isinstance(given, str):
        if given not in MEASURED:
            checks.fail(owner, "curvature", wanted, repr(given))
        return given
    if not isinstance(given, list | tuple):
        checks.number(owner, "curvature", given, wanted, lambda v: True)
        return float(given)
    if len(given) != len(params):
        checks.fail(owner, "curvature", wanted, f"{len(given)} for {len(params)} parameters")
    for i, (D, p) in enumerate(zip(given, params, strict=True)):
        if not isinstance(D, torch.Tensor):
            checks.fail(owner, "curvature", wanted, f"a {type(D).__name__} at index {i}")
        if D.shape != p.shape:
            got = f"shape {tuple(D.shape)} for a parameter of {tuple(p.shape)} at index {i}"
            checks.fail(owner, "curvature", wanted, got)
    return [D.detach().to(p) for D, p in zip(given, params, strict=True)]


def gamma_of_group(group: Group) -> float:
    """Return `gamma`, or the one that follows from `alpha` and `beta`."""
    if group["gamma"] is not None:
        return float(group["gamma"])
    return float(gamma_of(group["alpha"], group["beta"]))


def _check_lr(owner: str, lr: Any) -> None:
    if isinstance(lr, torch.Tensor):
        if lr.numel() != 1:
            wanted = "be a number (a Tensor lr must be 1-element)"
            checks.fail(owner, "lr", wanted, f"shape {tuple(lr.shape)}")
        lr = lr.item()
    checks.number(owner, "lr", lr, "be at least 0", lambda v: v >= 0)
