"""Adam on the fractional direction."""

from __future__ import annotations

from typing import Any

import torch

from cfgd.integrations.torch import check
from cfgd.integrations.torch.arithmetic import Arithmetic, Tensors
from cfgd.integrations.torch.base import Fractional


class CFAdam(Fractional):
    r"""Adam with the fractional direction d = g + gamma D (x - c) in the place of the gradient.

    $$ m \leftarrow b_1 m + (1 - b_1) d, \quad v \leftarrow b_2 v + (1 - b_2) d^2, \quad
       x \leftarrow x - \mathrm{lr}\, \frac{m / (1 - b_1^k)}{\sqrt{v / (1 - b_2^k)} + \epsilon} $$

    with (b_1, b_2) = `betas`. The other options are those of `CFGD`; gamma = 0 is torch's Adam. The
    state has lag + 3 copies of the parameters.

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
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
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
            **{"lr": lr, "betas": betas, "eps": eps},
            **{"alpha": alpha, "beta": beta, "gamma": gamma, "lag": lag},
            **{"curvature": curvature, "every": every, "probes": probes, "keep": keep},
            **{"seed": seed, "weight_decay": weight_decay, "maximize": maximize},
            **{"foreach": foreach, "capturable": capturable, "differentiable": differentiable},
        }
        super().__init__(params, options)

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        check.betas(type(self).__name__, group)

    def start(self, p: Any) -> dict[str, Any]:
        return {
            name: torch.zeros_like(p, requires_grad=False) for name in ("exp_avg", "exp_avg_sq")
        }

    def move(
        self, many: Arithmetic, x: Tensors, d: Tensors, states: Tensors, group: dict[str, Any]
    ) -> None:
        lr, (b1, b2) = float(group["lr"]), map(float, group["betas"])
        if self.decoupled and group["weight_decay"] != 0:
            many.scale_(x, 1 - lr * group["weight_decay"])
        mean = [state["exp_avg"] for state in states]
        square = [state["exp_avg_sq"] for state in states]
        many.lerp_(mean, d, 1 - b1)
        many.scale_(square, b2)
        many.addcmul_(square, d, d, 1 - b2)
        # the corrections of both means in one number for each tensor: a pass less than torch's Adam
        steps = [state["step"] for state in states]
        shares = [(1 - b2**k) ** 0.5 for k in steps]
        roots = d  # which is not needed any more: memory is dearer than a pass
        many.root_(roots, square, [group["eps"] * share for share in shares])
        etas = [-lr * share / (1 - b1**k) for share, k in zip(shares, steps, strict=True)]
        many.addcdiv_(x, mean, roots, etas)


class CFAdamW(CFAdam):
    """`CFAdam` with decoupled weight decay: x <- (1 - lr weight_decay) x before the step.

    The decay is no part of the loss, so that neither g nor D knows of it.

    >>> import torch
    >>> from cfgd.integrations.torch import CFAdamW
    >>> x = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = CFAdamW([x], lr=0.1, weight_decay=0.5, curvature=0.0)
    >>> x.grad = torch.zeros(1)
    >>> optimizer.step()
    >>> print(round(x.item(), 6))
    0.95
    """

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        weight_decay: float = 1e-2,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay=weight_decay, **options)
