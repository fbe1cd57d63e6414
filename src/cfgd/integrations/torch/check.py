"""Options are looked at once, when a group is added. An error has owner, field, wanted and given.

The library's own `_check` is of JAX, which is not imported here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from cfgd.integrations.torch.direction import order

MEASURED = ("hutchinson", "exact")
REFUSED = {
    "capturable": "the terminal's place is counted on the host",
    "differentiable": "a step is made in place",
}


def fail(owner: str, field: str, wanted: str, got: object) -> NoReturn:
    raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.")


def number(owner: str, field: str, value: Any, wanted: str, holds: Callable[[float], bool]) -> None:
    given = isinstance(value, int | float) and not isinstance(value, bool)
    if not given or not math.isfinite(value) or not holds(value):
        fail(owner, field, wanted, repr(value))


def integer(owner: str, field: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        fail(owner, field, f"be an integer of at least {least}", repr(value))


def options(owner: str, group: dict[str, Any]) -> None:
    """Whatever CFGD and CFAdam share."""
    _lr(owner, group["lr"])
    if (group["beta"] is None) == (group["gamma"] is None):
        got = "neither" if group["beta"] is None else "both"
        raise ValueError(f"`{owner}` takes exactly one of `beta` and `gamma`, got {got}.")
    number(owner, "alpha", group["alpha"], "lie in (0, 1)", lambda v: 0 < v < 1)
    field = "gamma" if group["beta"] is None else "beta"
    number(owner, field, group[field], "be a finite number", lambda v: True)
    for field, least in (("lag", 1), ("every", 1), ("probes", 1), ("seed", 0)):
        integer(owner, field, group[field], least)
    number(owner, "keep", group["keep"], "lie in [0, 1)", lambda v: 0 <= v < 1)
    number(owner, "weight_decay", group["weight_decay"], "be at least 0", lambda v: v >= 0)
    for field in ("maximize", *REFUSED):
        if not isinstance(group[field], bool):
            fail(owner, field, "be True or False", repr(group[field]))
    if group["foreach"] not in (None, True, False):
        fail(owner, "foreach", "be True, False or None", repr(group["foreach"]))
    for field, why in REFUSED.items():
        if group[field]:
            fail(owner, field, f"be False, because {why}", True)
    for p in group["params"]:
        if not p.is_floating_point():
            fail(owner, "params", "be tensors of real floating-point numbers", p.dtype)


def _lr(owner: str, lr: Any) -> None:
    if isinstance(lr, torch.Tensor):
        if lr.numel() != 1:
            wanted = "be a number (a Tensor lr must be 1-element)"
            fail(owner, "lr", wanted, f"shape {tuple(lr.shape)}")
        lr = lr.item()
    number(owner, "lr", lr, "be at least 0", lambda v: v >= 0)


def curvature(owner: str, given: Any, params: list[Any]) -> Any:
    """A word, a number, or a tensor for each parameter, in its type and on its device."""
    wanted = (
        "be 'hutchinson', 'exact', a finite number or a list with a tensor for each parameter, "
        "of its shape"
    )
    if isinstance(given, str):
        if given not in MEASURED:
            fail(owner, "curvature", wanted, repr(given))
        return given
    if not isinstance(given, list | tuple):
        number(owner, "curvature", given, wanted, lambda v: True)
        return float(given)
    if len(given) != len(params):
        fail(owner, "curvature", wanted, f"{len(given)} for {len(params)} parameters")
    for i, (D, p) in enumerate(zip(given, params, strict=True)):
        if not isinstance(D, torch.Tensor):
            fail(owner, "curvature", wanted, f"a {type(D).__name__} at index {i}")
        if D.shape != p.shape:
            got = f"shape {tuple(D.shape)} for a parameter of {tuple(p.shape)} at index {i}"
            fail(owner, "curvature", wanted, got)
    return [D.detach().to(p) for D, p in zip(given, params, strict=True)]


def gamma_of(group: dict[str, Any]) -> float:
    given = group["gamma"]
    return float(order(group["alpha"], group["beta"]) if given is None else given)


def betas(owner: str, group: dict[str, Any]) -> None:
    """What Adam adds."""
    given = group["betas"]
    if not isinstance(given, list | tuple) or len(given) != 2:
        fail(owner, "betas", "be two numbers", repr(given))
    for i, value in enumerate(given):
        number(owner, f"betas[{i}]", value, "lie in [0, 1)", lambda v: 0 <= v < 1)
    number(owner, "eps", group["eps"], "be at least 0", lambda v: v >= 0)
