"""Arguments of SciPy's and lmfit's functions that have another name here, or no meaning."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cfgd._core.unknown_arguments import refuse_unknown

# The argument, and what to write instead.
INSTEAD = {
    "maxfev": "`max_iterations=` limits the iterations",
    "max_nfev": "`max_iterations=` limits the iterations",
    "ftol": "`tolerance=` is the one for convergence, relative to the gradient at the start",
    "xtol": "`tolerance=` is the one for convergence, relative to the gradient at the start",
    "gtol": "`gradient_tolerance=` is the one for the norm of the gradient",
    "jac": "leave it out: JAX differentiates the model",
    "Dfun": "leave it out: JAX differentiates the model",
    "diff_step": "leave it out: JAX differentiates the model, without finite differences",
    "epsfcn": "leave it out: JAX differentiates the model, without finite differences",
    "x_scale": "leave it out: the units of the parameters have no influence here",
    "full_output": "leave it out: the returned `Fit` holds everything, also `fit.solution`",
    "check_finite": "missing y (NaN) are left out by `missing='drop'`",
    "nan_policy": "missing y (NaN) are left out by `missing='drop'`",
    "f_scale": "the scale of a robust loss is `scale=`",
    "verbose": "`progress=True` shows the progress",
    "xdata": "the second argument is `x`",
    "ydata": "the third argument is `y`",
    "params": "the parameters are `p0=`, a `cfgd.Parameters`",
    "args": "let the model capture its data, or pass them in x, which may be a dict or tuple",
    "kwargs": "let the model capture its data, or pass them in x, which may be a dict or tuple",
}


def refuse_foreign(
    owner: str, options: dict[str, Any], loss: object, known: Collection[str]
) -> None:
    """Raise for an argument that is not `known`: for one of SciPy or lmfit with its name here."""
    refuse_unknown(owner, options, set(known) - set(INSTEAD), INSTEAD)
    if isinstance(options.get("method"), str):
        raise TypeError(
            f"`{owner}(method={options['method']!r})` names a method of another library: leave it "
            "out, or give a method of cfgd such as `cfgd.Auto()`."
        )
    if isinstance(loss, str) and loss == "linear":
        raise ValueError(f"`{owner}(loss='linear')` is called `loss='squared'` here, the default.")
