"""The one formula, on the local model of the loss: d = g + gamma D (x - c)."""

from __future__ import annotations

from cfgd.integrations.torch.arithmetic import Arithmetic, Tensors


def order(alpha: float, beta: float) -> float:
    """gamma = beta - (1 - alpha) / (2 - alpha): all that a local model sees of order and smoothing.

    >>> print(order(0.5, 0.0))
    -0.3333333333333333
    """
    return beta - (1 - alpha) / (2 - alpha)


def direction(
    many: Arithmetic,
    x: Tensors,
    gradient: Tensors,
    terminal: Tensors,
    curvature: Tensors | float,
    *,
    gamma: float,
    decay: float,
    maximize: bool,
) -> Tensors:
    """d = g + gamma D (x - c); x is remembered in c's place, where the terminal of a later step is.

    A weight decay is a part of the loss, decay/2 |x|^2, and has a curvature too:
    d = g + decay x + gamma (D + decay) (x - c). The loss of `maximize` is minus the given one.
    """
    behind = terminal
    many.sub_(behind, x)  # c - x in its own place: one more list of tensors costs more than a pass
    if isinstance(curvature, list):
        d = many.addcmul(gradient, curvature, behind, -gamma)
    else:
        d = many.add(gradient, behind, -gamma * curvature)
    if maximize:
        many.neg_(d)
    if decay != 0:
        many.add_(d, x, decay)
        many.add_(d, behind, -gamma * decay)
    many.copy_(terminal, x)
    return d
