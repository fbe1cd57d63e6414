"""Arguments of other minimisers, most of them SciPy's, that have another name here."""

from __future__ import annotations

EXTERNAL = "leave it out: JAX differentiates f; for functions of NumPy give `cfgd.External(f, jac)`"

# The argument, and what to write instead.
INSTEAD = {
    "fun": "the first argument is `objective`",
    "maxiter": "`max_iterations=` limits the iterations",
    "max_iter": "`max_iterations=` limits the iterations",
    "maxfun": "`max_iterations=` limits the iterations",
    "maxfev": "`max_iterations=` limits the iterations",
    "tol": "`tolerance=` is relative to the gradient at the start, `gradient_tolerance=` absolute",
    "ftol": "`tolerance=` is relative to the gradient at the start, `gradient_tolerance=` absolute",
    "xtol": "`tolerance=` is relative to the gradient at the start, `gradient_tolerance=` absolute",
    "gtol": "`gradient_tolerance=` is the one for the norm of the gradient",
    "jac": EXTERNAL,
    "grad": EXTERNAL,
    "hess": EXTERNAL,
    "hessp": EXTERNAL,
    "constraints": "only `bounds=` are available; scipy.optimize has SLSQP and trust-constr",
    "options": "its entries are keywords here, such as `max_iterations=`",
    "disp": "`progress=True` shows the progress",
    "verbose": "`progress=True` shows the progress",
    "has_aux": "`cfgd.argmin` has it; here `record=` adds functions of x to the history",
    "loss": "it belongs to the objective, such as `cfgd.Residuals(fn, loss)`",
}
