"""The diagonal D of the Hessian from the graph of a loss: by probes, or exactly."""

from __future__ import annotations

import random
from typing import Any

import torch

from cfgd.integrations.torch.arithmetic import Tensors


def gradients(loss: Any, params: Tensors) -> Tensors:
    """With a graph of their own; None where the loss does not depend on a parameter."""
    return list(torch.autograd.grad(loss, params, create_graph=True, allow_unused=True))


def hutchinson(slopes: Tensors, params: Tensors, probes: int, seed: str) -> Tensors:
    """The mean of v * Hv over `probes` random signs v: unbiased, as E[v_i v_j] = 0 for i != j.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> hutchinson(gradients((x**3).sum(), [x]), [x], probes=1, seed="0")
    [tensor([ 6., 12.])]
    """
    curved = [i for i, g in enumerate(slopes) if g is not None and g.requires_grad]
    found: dict[int, Any] = {}
    draw = _Signs(seed)
    for _ in range(probes if curved else 0):
        signs = [draw(params[i]) for i in curved]
        products = torch.autograd.grad(
            [slopes[i] for i in curved],
            [params[i] for i in curved],
            signs,
            retain_graph=True,  # the user's own backward() comes later
            allow_unused=True,
        )
        for i, v, Hv in zip(curved, signs, products, strict=True):
            if Hv is not None:
                one = v.mul_(Hv)
                found[i] = found[i].add_(one) if i in found else one
    return [
        found[i].div_(probes) if i in found else torch.zeros_like(p) for i, p in enumerate(params)
    ]


class _Signs:
    """Random signs that depend on a seed alone: a resumed run draws what the first would have.

    torch's global generator is not touched, so that measuring does not change a dropout.
    """

    def __init__(self, seed: str) -> None:
        self.seed = random.Random(seed).getrandbits(63)
        self.generators: dict[Any, Any] = {}

    def __call__(self, p: Any) -> Any:
        if p.device not in self.generators:
            self.generators[p.device] = torch.Generator(p.device).manual_seed(self.seed)
        generator = self.generators[p.device]
        words = (p.numel() + 7) // 8
        # eight signs of a word, a byte each: a quarter of the time of a number for each sign
        drawn = torch.randint(-(2**63), 2**63 - 1, (words,), generator=generator, device=p.device)
        bits = drawn.view(torch.int8)[: p.numel()].bitwise_and_(1)
        return bits.to(p.dtype).mul_(2).sub_(1).reshape(p.shape)


def exact(slopes: Tensors, params: Tensors) -> Tensors:
    """Entry after entry, each by a product with the Hessian.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> exact(gradients((x**3).sum() + x[0] * x[1], [x]), [x])
    [tensor([ 6., 12.])]
    """
    found = []
    for g, p in zip(slopes, params, strict=True):
        diagonal = torch.zeros(p.numel(), dtype=p.dtype, device=p.device)
        if g is not None and g.requires_grad:
            for j, entry in enumerate(g.reshape(-1)):
                (row,) = torch.autograd.grad(entry, p, retain_graph=True, allow_unused=True)
                if row is not None:
                    diagonal[j] = row.reshape(-1)[j]
        found.append(diagonal.reshape(p.shape))
    return found
