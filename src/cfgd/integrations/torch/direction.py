"""The fractional direction of the local model, d = g + gamma D (x - c), without JAX.

The formulas repeat the core's: `gamma_of` is `gamma` of `methods.paper.direction.memory_of`, and
`direction` is `methods.paper.direction.direction` on a `cfgd.Local`. The tests compare the iterates
with those of `cfgd.AdaptiveTerminal`.
"""

from __future__ import annotations

from cfgd.integrations.torch.arithmetic import Arithmetic, Tensors


def gamma_of(alpha: float, beta: float) -> float:
    """Return gamma = beta - (1 - alpha) / (2 - alpha).

    >>> print(gamma_of(0.5, 0.0))
    -0.3333333333333333
    """
    return beta - (1 - alpha) / (2 - alpha)


def direction(
    ops: Arithmetic,
    x: Tensors,
    gradient: Tensors,
    terminal: Tensors,
    curvature: Tensors | float,
    *,
    gamma: float,
    weight_decay: float,
    maximize: bool,
) -> Tensors:
    """Return d = g + gamma D (x - c), and overwrite the terminal c by x for a later step.

    The weight decay is part of the loss, weight_decay/2 |x|^2, and contributes to the curvature:
    d = g + weight_decay x + gamma (D + weight_decay) (x - c). With `maximize` the loss is the
    negative of the given one.
    """
    difference = terminal  # c - x in place: another list of tensors would cost more than a pass
    ops.sub_(difference, x)
    if isinstance(curvature, list):
        d = ops.addcmul(gradient, curvature, difference, -gamma)
    else:
        d = ops.add(gradient, difference, -gamma * curvature)
    if maximize:
        ops.neg_(d)
    if weight_decay != 0:
        ops.add_(d, x, weight_decay)
        ops.add_(d, difference, -gamma * weight_decay)
    ops.copy_(terminal, x)
    return d
