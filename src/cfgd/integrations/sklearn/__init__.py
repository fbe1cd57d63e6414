"""scikit-learn estimators that are fitted by cfgd's methods.

>>> from sklearn.datasets import load_iris
>>> from cfgd.integrations.sklearn import CaputoClassifier
>>> X, y = load_iris(return_X_y=True)
>>> print(round(CaputoClassifier().fit(X, y).score(X, y), 2))
0.97
"""

from cfgd._core.extras import import_extra

import_extra("sklearn", "`cfgd.integrations.sklearn`", "sklearn")

from cfgd.integrations.sklearn.classifier import CaputoClassifier as CaputoClassifier  # noqa: E402
from cfgd.integrations.sklearn.network import CaputoNetwork as CaputoNetwork  # noqa: E402
from cfgd.integrations.sklearn.regressor import CaputoRegressor as CaputoRegressor  # noqa: E402
from cfgd.integrations.sklearn.ridge import CaputoRidge as CaputoRidge  # noqa: E402

__all__ = ["CaputoClassifier", "CaputoNetwork", "CaputoRegressor", "CaputoRidge"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__
