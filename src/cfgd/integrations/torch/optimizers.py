"""The optimizers `CFGD`, `CFAdam` and `CFAdamW`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from cfgd.integrations.torch.arithmetic import Arithmetic, Tensors
from cfgd.integrations.torch.base import CaputoOptimizer
from cfgd.integrations.torch.options import Group, check_betas


class CFGD(CaputoOptimizer):
    r"""Fractional gradient descent on the local model, with the terminal `lag` steps back.

    $$ x_{k+1} = x_k - \mathrm{lr}\,(g + \gamma D (x_k - c_k)), \qquad c_k = x_{k - lag} $$

    In the first `lag` steps c = x_0, so that the first step is a gradient step. The state has
    lag + 1 copies of the parameters.

    Parameters
    ----------
    params, lr, maximize, foreach
        As in `torch.optim.SGD`.
    alpha, beta, gamma : float
        Either `gamma`, or `beta` with the order `alpha`: gamma = beta - (1-alpha)/(2-alpha). If
        neither is given, gamma = -0.25.
    lag : int, default 1
        Number of steps that the terminal lies back.
    curvature : {"hutchinson", "exact"}, float or list of tensors, default "hutchinson"
        D, the diagonal of the Hessian: "hutchinson", the running mean of v * Hv for random signs v;
        "exact", for small models; a number; or a tensor for each parameter. The first two are
        measured and need `observe(loss)` before `loss.backward()`.
    every : int, default 10
        Number of steps between two measurements.
    probes : int, default 1
        Number of random vectors v in a measurement.
    keep : float, default 0.9
        Decay of the running mean, in [0, 1).
    seed : int, default 0
        Seed of the random signs.
    weight_decay : float, default 0.0
        Adds weight_decay/2 |x|^2 to the loss, and thus to g and to D.
    capturable, differentiable : bool, default False
        Not supported: must be False.

    Examples
    --------
    >>> import torch
    >>> from cfgd.integrations.torch import CFGD
    >>> x = torch.nn.Parameter(torch.tensor([1.0, -10.0]))
    >>> optimizer = CFGD([x], lr=0.08, gamma=-0.25, curvature="exact")
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     loss = 10 * x[0] ** 2 + x[1] ** 2
    ...     optimizer.observe(loss)
    ...     loss.backward()
    ...     optimizer.step()
    >>> print(bool(loss < 1e-6))
    True
    """

    def _update(
        self, ops: Arithmetic, x: Tensors, d: Tensors, states: Tensors, group: Group
    ) -> None:
        ops.add_(x, d, -float(group["lr"]))


class CFAdam(CaputoOptimizer):
    r"""Adam with the fractional direction d = g + gamma D (x - c) in place of the gradient.

    $$ m \leftarrow b_1 m + (1 - b_1) d, \quad v \leftarrow b_2 v + (1 - b_2) d^2, \quad
       x \leftarrow x - \mathrm{lr}\, \frac{m / (1 - b_1^k)}{\sqrt{v / (1 - b_2^k)} + \epsilon} $$

    With gamma = 0 it is `torch.optim.Adam`. The state has lag + 3 copies of the parameters.

    Parameters
    ----------
    params, lr, betas, eps
        As in `torch.optim.Adam`; (b_1, b_2) = `betas`.
    **options
        The keyword options of `CFGD`.

    Examples
    --------
    >>> import torch
    >>> from cfgd.integrations.torch import CFAdam
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = CFAdam(model.parameters(), lr=0.1, gamma=-0.5)
    >>> z = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> for _ in range(200):
    ...     optimizer.zero_grad()
    ...     loss = ((model(z) - z.sum(1, keepdim=True)) ** 2).mean()
    ...     optimizer.observe(loss)
    ...     loss.backward()
    ...     optimizer.step()
    >>> print(bool(loss < 1e-3))
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        **options: Any,
    ) -> None:
        self._own_defaults = {"betas": betas, "eps": eps}
        super().__init__(params, lr, **options)

    def _check_group(self, group: Group) -> None:
        super()._check_group(group)
        check_betas(type(self).__name__, group)

    def _initial_state(self, p: Any) -> dict[str, Any]:
        return {
            name: torch.zeros_like(p, requires_grad=False) for name in ("exp_avg", "exp_avg_sq")
        }

    def _update(
        self, ops: Arithmetic, x: Tensors, d: Tensors, states: Tensors, group: Group
    ) -> None:
        lr, (b1, b2) = float(group["lr"]), map(float, group["betas"])
        if self._decoupled_weight_decay and group["weight_decay"] != 0:
            ops.mul_(x, 1 - lr * group["weight_decay"])
        exp_avg = [state["exp_avg"] for state in states]
        exp_avg_sq = [state["exp_avg_sq"] for state in states]
        ops.lerp_(exp_avg, d, 1 - b1)
        ops.mul_(exp_avg_sq, b2)
        ops.addcmul_(exp_avg_sq, d, d, 1 - b2)
        # Both bias corrections are in the step size and in eps: one pass less than torch's Adam.
        steps = [state["step"] for state in states]
        corrections = [(1 - b2**k) ** 0.5 for k in steps]
        denominator = d  # d is no longer needed, and its memory is reused
        ops.sqrt_add_(denominator, exp_avg_sq, [group["eps"] * c for c in corrections])
        step_sizes = [-lr * c / (1 - b1**k) for c, k in zip(corrections, steps, strict=True)]
        ops.addcdiv_(x, exp_avg, denominator, step_sizes)


class CFAdamW(CFAdam):
    """`CFAdam` with decoupled weight decay: x <- (1 - lr weight_decay) x before the step.

    The decay is not part of the loss, and thus neither of g nor of D. The parameters are those of
    `CFAdam`.

    Parameters
    ----------
    params, lr, betas, eps
        As in `CFAdam`.
    weight_decay : float, default 0.01
        The rate of the decay.
    **options
        The keyword options of `CFGD`.

    Examples
    --------
    >>> import torch
    >>> from cfgd.integrations.torch import CFAdamW
    >>> x = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = CFAdamW([x], lr=0.1, weight_decay=0.5, curvature=0.0)
    >>> x.grad = torch.zeros(1)
    >>> optimizer.step()
    >>> print(round(x.item(), 6))
    0.95
    """

    _decoupled_weight_decay = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        weight_decay: float = 1e-2,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay=weight_decay, **options)
