r"""PyTorch optimizers along the fractional direction of the local model of a loss.

$$ d = g + \gamma D (x - c), \qquad c = x_{k - lag} $$

with the gradient g, the diagonal D of the Hessian and a terminal c that lies `lag` steps back.
`CFGD` takes d where SGD takes g, `CFAdam` and `CFAdamW` where Adam and AdamW do. A training loop
has one more line, which measures the curvature every `every` steps and does nothing in between:

    optimizer.zero_grad()
    loss = loss_of(model(batch))
    optimizer.observe(loss)      # D of this very batch and graph
    loss.backward()
    optimizer.step()

A closure for `step(closure)` has the same line in the same place. With a GradScaler the loss is
observed as it is, before `scaler.scale(loss).backward()`; a clipped gradient is the g of the
formula, and D is as measured. Where `curvature` is given there is nothing to observe.

*Minibatches.* g and Hv are of the same batch, because both are of the same loss. The terminal is a
point: the memory is of parameters, not of gradients. d is the direction of this batch's local
model, whose memory starts where the parameters stood `lag` steps ago, whatever batch was looked at
then; no gradient of an earlier batch is in it (Adam's means of d apart). Between measurements D is
that of earlier batches: a running mean, as one probe of one batch is noisy. Losses of several
batches before one step, each observed, have their curvatures added up as their gradients are.

*A negative gamma*, as the default, goes on in the direction of the last steps, the more so the
larger the curvature: momentum lr |gamma| D, which on a separable quadratic must stay below 1.

*All of the data at once*: `minimize(model, loss, data)` hands a model to the core's `Auto`, which
is the one thing here that imports JAX.

JAX is not imported otherwise. With several processes give `curvature`: each would measure its own.
A model that torch has compiled has no second derivatives, as torch says itself: give `curvature`,
or compile later. A step is never compiled.
"""

from cfgd._core.extras import needed

needed("torch", "`cfgd.integrations.torch`", "torch")

from cfgd.integrations.torch.adam import CFAdam as CFAdam, CFAdamW as CFAdamW  # noqa: E402
from cfgd.integrations.torch.descent import CFGD as CFGD  # noqa: E402
from cfgd.integrations.torch.full_batch import minimize as minimize  # noqa: E402

__all__ = ["CFGD", "CFAdam", "CFAdamW", "minimize"]
