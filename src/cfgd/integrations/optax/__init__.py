"""The fractional direction as gradient transformations of optax.

`scale_by_caputo` replaces the gradient g by g + gamma D (x - c) with c = x_{k - lag}, and composes
with other transformations. `cfgd` is gradient descent along this direction, `cfadam` Adam, and
`cfadamw` Adam with decoupled weight decay.

>>> import jax, jax.numpy as jnp, optax
>>> from cfgd.integrations.optax import cfadam
>>> loss = lambda p: jnp.sum((p["a"] - 3.0) ** 2) + (p["b"] + 1.0) ** 2
>>> params = {"a": jnp.zeros(2), "b": jnp.zeros(())}
>>> optimizer = cfadam(0.1)
>>> @jax.jit
... def step(params, state):
...     grads = jax.grad(loss)(params)
...     updates, state = optimizer.update(grads, state, params, value_fn=loss)
...     return optax.apply_updates(params, updates), state
>>> state = optimizer.init(params)
>>> for _ in range(300):
...     params, state = step(params, state)
>>> print(params["a"].round(3), params["b"].round(3))
[3. 3.] -1.0

With minibatches `value_fn` is the loss of the batch that the gradient belongs to, so that g and the
curvature are those of one function. The state stores earlier parameters, not earlier gradients, so
x - c does not depend on the batches in between: d is the fractional direction of the current
batch's loss between two iterates. Only D is a mean over the batches at which it was measured.

docs/training.md reports whether the direction helps and how to choose gamma and lag, as measured by
`cfgd bench --training`.
"""

from cfgd._core.extras import import_extra

import_extra("optax", "`cfgd.integrations.optax`", "optax")

from cfgd.integrations.optax.aliases import (  # noqa: E402
    cfadam as cfadam,
    cfadamw as cfadamw,
    cfgd as cfgd,
)
from cfgd.integrations.optax.curvature import (  # noqa: E402
    Exact as Exact,
    GaussNewton as GaussNewton,
    Given as Given,
    Hutchinson as Hutchinson,
    Quadrature as Quadrature,
)
from cfgd.integrations.optax.rules import (  # noqa: E402
    RuleState as RuleState,
    from_rule as from_rule,
)
from cfgd.integrations.optax.transform import (  # noqa: E402
    CaputoState as CaputoState,
    scale_by_caputo as scale_by_caputo,
)

__all__ = [
    "CaputoState",
    "Exact",
    "GaussNewton",
    "Given",
    "Hutchinson",
    "Quadrature",
    "RuleState",
    "cfadam",
    "cfadamw",
    "cfgd",
    "from_rule",
    "scale_by_caputo",
]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__
