"""scikit-learn estimators whose fits are cfgd's: change one import."""

from cfgd.integrations.extras import needed

needed("sklearn", "sklearn")

from cfgd.integrations.sklearn.classifier import CaputoClassifier as CaputoClassifier  # noqa: E402
from cfgd.integrations.sklearn.network import CaputoNetwork as CaputoNetwork  # noqa: E402
from cfgd.integrations.sklearn.regressor import CaputoRegressor as CaputoRegressor  # noqa: E402
from cfgd.integrations.sklearn.ridge import CaputoRidge as CaputoRidge  # noqa: E402

__all__ = ["CaputoClassifier", "CaputoNetwork", "CaputoRegressor", "CaputoRidge"]
