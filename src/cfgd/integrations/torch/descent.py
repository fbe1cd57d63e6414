"""Caputo fractional gradient descent."""

from __future__ import annotations

from typing import Any

from cfgd.integrations.torch.arithmetic import Arithmetic, Tensors
from cfgd.integrations.torch.base import Fractional


class CFGD(Fractional):
    r"""Fractional gradient descent with the terminal `lag` steps behind, on the local model.

    $$ x_{k+1} = x_k - \mathrm{lr}\,(g + \gamma D (x_k - c_k)), \qquad c_k = x_{k - lag} $$

    `gamma`, or `beta` with `alpha`: gamma = beta - (1-alpha)/(2-alpha); -0.25 if neither is given.
    Before the first `lag` steps c = x_0, so that the first step is a gradient step.

    `curvature` is where D, the diagonal of the Hessian, comes from: "hutchinson" (the
    running mean of v * Hv for random signs v, `probes` of them every `every` steps; a share `keep`
    of the mean stays), "exact" (for small models), a number, or a list with a tensor for each
    parameter. Those that are measured need `observe(loss)` before `loss.backward()`.

    `weight_decay` adds weight_decay/2 |x|^2 to the loss, and so to g and to D. The state has
    lag + 1 copies of the parameters.

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

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        *,
        alpha: float = 0.5,
        beta: float | None = None,
        gamma: float | None = None,
        lag: int = 1,
        curvature: Any = "hutchinson",
        every: int = 10,
        probes: int = 1,
        keep: float = 0.9,
        seed: int = 0,
        weight_decay: float = 0.0,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        options = {
            **{"lr": lr, "alpha": alpha, "beta": beta, "gamma": gamma, "lag": lag},
            **{"curvature": curvature, "every": every, "probes": probes, "keep": keep},
            **{"seed": seed, "weight_decay": weight_decay, "maximize": maximize},
            **{"foreach": foreach, "capturable": capturable, "differentiable": differentiable},
        }
        super().__init__(params, options)

    def start(self, p: Any) -> dict[str, Any]:
        return {}

    def move(
        self, many: Arithmetic, x: Tensors, d: Tensors, states: Tensors, group: dict[str, Any]
    ) -> None:
        many.add_(x, d, -float(group["lr"]))
