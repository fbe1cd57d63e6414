r"""PyTorch optimizers along the fractional direction of the local model of a loss.

$$ d = g + \gamma D (x - c), \qquad c = x_{k - lag} $$

with the gradient g, the diagonal D of the Hessian and a terminal c that lies `lag` steps back.
`CFGD` takes d where SGD takes g, `CFAdam` and `CFAdamW` where Adam and AdamW do. A training loop
has one more line, which measures the curvature every `every` steps and does nothing in between:

    optimizer.zero_grad()
    loss = loss_fn(model(batch))
    optimizer.observe(loss)      # D of this batch, from the same graph
    loss.backward()
    optimizer.step()

A closure for `step(closure)` has the same line at the same position. With a GradScaler, observe the
unscaled loss before `scaler.scale(loss).backward()`. A clipped gradient is the g of the formula,
and D is not clipped. If `curvature` is given, `observe` is not needed.

*Minibatches.* g and Hv belong to the same loss, and so to the same batch. The terminal is a point:
the state stores earlier parameters, not earlier gradients. d is the direction of the current
batch's local model, with the parameters of `lag` steps ago as the terminal; it contains no gradient
of an earlier batch (apart from Adam's means of d). Between measurements D belongs to earlier
batches: it is a running mean, because one probe of one batch is noisy. If several losses are
observed before one step, their curvatures add up, as their gradients do.

*A negative gamma*, as the default, continues in the direction of the last steps, and more so for a
larger curvature: the momentum is lr |gamma| D, which must stay below 1 on a separable quadratic.

*Full batch.* `minimize(model, loss, data)` fits a model with the core's `Auto`. It is the only
function of this package that imports JAX.

With several processes give `curvature`, because each process would measure its own. A model that
was compiled by torch has no second derivatives: give `curvature`, or compile after training. The
optimizer's step is never compiled.
"""

from cfgd._core.extras import import_extra

import_extra("torch", "`cfgd.integrations.torch`", "torch")

from cfgd.integrations.torch.full_batch import minimize as minimize  # noqa: E402
from cfgd.integrations.torch.optimizers import (  # noqa: E402
    CFGD as CFGD,
    CFAdam as CFAdam,
    CFAdamW as CFAdamW,
)

__all__ = ["CFGD", "CFAdam", "CFAdamW", "minimize"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__
