"""Methods for `scipy.optimize.minimize`, and a `least_squares` with SciPy's interface.

>>> import scipy.optimize
>>> from cfgd.integrations.scipy import auto
>>> from scipy.optimize import rosen, rosen_der
>>> result = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto)
>>> print(result.x.round(6), result.success)
[1. 1.] True
"""

from cfgd.integrations.scipy.methods import (
    adaptive_order as adaptive_order,
    adaptive_terminal as adaptive_terminal,
    auto as auto,
)
from cfgd.integrations.scipy.residuals import least_squares as least_squares

__all__ = ["adaptive_order", "adaptive_terminal", "auto", "least_squares"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__
