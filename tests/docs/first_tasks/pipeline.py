"""Put an estimator into a scikit-learn pipeline, from docs/guides/scikit-learn.md."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfgd.integrations.sklearn import CaputoClassifier

X, y = load_breast_cancer(return_X_y=True)
pipeline = make_pipeline(StandardScaler(), CaputoClassifier(l2=1.0))
pipeline.fit(X, y)

theirs = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10, max_iter=1000)
theirs = make_pipeline(StandardScaler(), theirs).fit(X, y)  # the same model by another solver
assert np.allclose(pipeline.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
assert np.array_equal(cross_val_score(pipeline, X, y), cross_val_score(theirs, X, y))

search = GridSearchCV(pipeline, {"caputoclassifier__l2": [0.1, 1.0, 1000.0]}).fit(X, y)
assert search.best_params_["caputoclassifier__l2"] != 1000.0
assert search.best_score_ > 0.95
