"""The diagonal D of the Hessian of a loss: when it is measured, how, and its running mean.

The core's counterparts are `coordinate_curvature` of an objective, for the exact diagonal, and
`cfgd.integrations.optax.Hutchinson`.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from cfgd.integrations.torch.arithmetic import Tensors
from cfgd.integrations.torch.options import MEASURED, Group

# Counters in a group, and hence in its state_dict. `age`: steps since the last measurement;
# `measured`: number of measurements in the mean; `drawn`: number of draws of random signs; `open`:
# whether another loss that is observed before the next step adds to the last measurement.
COUNTERS = {"age": None, "measured": 0, "drawn": 0, "open": False}


def is_measured(group: Group) -> bool:
    """Return whether D is measured, and not given."""
    return isinstance(group["curvature"], str) and group["curvature"] in MEASURED


def is_outdated(group: Group) -> bool:
    """Return whether a step needs a new measurement first."""
    return is_measured(group) and (group["age"] is None or group["age"] >= group["every"])


def is_due(group: Group) -> bool:
    """Return whether a loss that is observed now is measured."""
    return is_outdated(group) or (is_measured(group) and group["open"])


def gradients(loss: Any, params: Tensors) -> Tensors:
    """Return gradients with a graph; None where the loss does not depend on a parameter."""
    return list(torch.autograd.grad(loss, params, create_graph=True, allow_unused=True))


def hutchinson(slopes: Tensors, params: Tensors, probes: int, seed: str) -> Tensors:
    """Return the mean of v * Hv over `probes` vectors v of random signs.

    H is the Jacobian of the gradients `slopes`. The mean is unbiased for the diagonal of H, because
    E[v_i v_j] = 0 for i != j.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> hutchinson(gradients((x**3).sum(), [x]), [x], probes=1, seed="0")
    [tensor([ 6., 12.])]
    """
    curved = [i for i, g in enumerate(slopes) if g is not None and g.requires_grad]
    sums: dict[int, Any] = {}
    draw = _RandomSigns(seed)
    for _ in range(probes if curved else 0):
        signs = [draw(params[i]) for i in curved]
        products = torch.autograd.grad(
            [slopes[i] for i in curved],
            [params[i] for i in curved],
            signs,
            retain_graph=True,  # for the user's later backward()
            allow_unused=True,
        )
        for i, v, Hv in zip(curved, signs, products, strict=True):
            if Hv is not None:
                probe = v.mul_(Hv)
                sums[i] = sums[i].add_(probe) if i in sums else probe
    return [
        sums[i].div_(probes) if i in sums else torch.zeros_like(p) for i, p in enumerate(params)
    ]


class _RandomSigns:
    """Random signs that depend on a seed only, so that a resumed run draws the same ones.

    torch's global generator is not used, so that a measurement does not change a dropout.
    """

    def __init__(self, seed: str) -> None:
        self.seed = random.Random(seed).getrandbits(63)
        self.generators: dict[Any, Any] = {}

    def __call__(self, p: Any) -> Any:
        if p.device not in self.generators:
            self.generators[p.device] = torch.Generator(p.device).manual_seed(self.seed)
        generator = self.generators[p.device]
        # eight signs from each 64-bit word, one per byte: four times as fast as a draw per sign
        n_words = (p.numel() + 7) // 8
        words = torch.randint(-(2**63), 2**63 - 1, (n_words,), generator=generator, device=p.device)
        bits = words.view(torch.int8)[: p.numel()].bitwise_and_(1)
        return bits.to(p.dtype).mul_(2).sub_(1).reshape(p.shape)


def exact(slopes: Tensors, params: Tensors) -> Tensors:
    """Return the exact diagonal for the gradients `slopes`, from one product for each entry.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> exact(gradients((x**3).sum() + x[0] * x[1], [x]), [x])
    [tensor([ 6., 12.])]
    """
    diagonals = []
    for g, p in zip(slopes, params, strict=True):
        diagonal = torch.zeros(p.numel(), dtype=p.dtype, device=p.device)
        if g is not None and g.requires_grad:
            for j, entry in enumerate(g.reshape(-1)):
                (row,) = torch.autograd.grad(entry, p, retain_graph=True, allow_unused=True)
                if row is not None:
                    diagonal[j] = row.reshape(-1)[j]
        diagonals.append(diagonal.reshape(p.shape))
    return diagonals


def update_means(group: Group, means: Tensors, measured: Tensors) -> None:
    """Set D to (1 - w) D + w measured, with w = max(1/n, 1 - keep) for the n-th measurement.

    The weights of all measurements sum to one from the first one on, so that the initial zeros do
    not bias the mean. An exact diagonal replaces the last one. A measurement that is not finite is
    left out. While the group is `open`, another loss of the same step is added instead.
    """
    group["age"] = 0
    if not all(_is_finite(D) for D in measured):
        return
    is_sum = group["open"]
    group["measured"] += 0 if is_sum else 1
    running = max(1 / group["measured"], 1 - group["keep"])
    weight = 1.0 if group["curvature"] == "exact" else running
    for mean, D in zip(means, measured, strict=True):
        if is_sum:
            mean.add_(D, alpha=weight)
        else:
            mean.lerp_(D, weight)
    group["open"] = True


def count_step(group: Group) -> None:
    """Update the counters after a step."""
    if group["age"] is not None:
        group["age"] += 1
    group["open"] = False


def _is_finite(D: Any) -> bool:
    """Return whether all entries are finite; the sum decides first, ten times as fast."""
    return bool(torch.isfinite(D.sum())) or bool(torch.isfinite(D).all())
