"""Fits of curves and of linear models."""

import numpy as np

import cfgd
from cfgd.apps.data.nist import regressions


class Nist:
    """The 27 certified regressions from both starts, as `Residuals`."""

    timeout = 600

    def setup_cache(self):
        runs = []
        for regression in regressions().values():
            for start in regression.starts:
                solution = cfgd.minimize(cfgd.Residuals(regression.residuals), start)
                runs.append((regression.digits(solution.x), solution.iterations))
        return runs

    def track_starts_with_six_digits(self, runs):
        return sum(digits >= 6 for digits, _ in runs)

    def track_iterations(self, runs):
        return sum(iterations for _, iterations in runs)


class WarmFit:
    """A fit of two exponentials and a constant to 200 points, after the first."""

    def setup(self):
        random, x = np.random.default_rng(0), np.linspace(0, 4, 200)
        self.truth = np.array([2.0, 1.0, 1.0, 3.0, 0.5])
        self.x, self.y = x, self._model(self.truth, x) + 0.01 * random.normal(size=200)
        self.objective = cfgd.Residuals(lambda p: self._model(p, self.x) - self.y)
        self.time_fit()

    def time_fit(self):
        cfgd.minimize(self.objective, 1.5 * self.truth)

    @staticmethod
    def _model(p, x):
        from jax.numpy import exp

        return p[0] * exp(-p[1] * x) + p[2] * exp(-p[3] * x) + p[4]


class ManyFits:
    """A thousand Gaussians of 100 points in one batch, with standard errors."""

    def setup(self):
        random, self.x = np.random.default_rng(0), np.linspace(-3, 3, 100)
        a = np.stack([random.uniform(1, 2, 1000), random.uniform(-1, 1, 1000)], axis=1)
        clean = a[:, :1] * np.exp(-((self.x - a[:, 1:]) ** 2))
        self.Y = clean + 0.02 * random.normal(size=clean.shape)
        self.time_thousand_fits()

    def time_thousand_fits(self):
        cfgd.curve_fit_many(self._model, self.x, self.Y, p0=[1.0, 0.0, 1.0])

    @staticmethod
    def _model(x, height, centre, width):
        from jax.numpy import exp

        return height * exp(-(((x - centre) / width) ** 2))


class SmallLinearModels:
    """The scikit-learn estimators on data of its own."""

    def setup(self):
        from sklearn.datasets import load_breast_cancer, load_diabetes
        from sklearn.preprocessing import StandardScaler

        X, self.labels = load_breast_cancer(return_X_y=True)
        self.X = StandardScaler().fit_transform(X)
        self.diabetes = load_diabetes(return_X_y=True)
        self.time_classifier()
        self.time_regressor()

    def time_classifier(self):
        from cfgd.integrations.sklearn import CaputoClassifier

        CaputoClassifier(l2=1.0).fit(self.X, self.labels)

    def time_regressor(self):
        from cfgd.integrations.sklearn import CaputoRegressor

        CaputoRegressor().fit(*self.diabetes)
