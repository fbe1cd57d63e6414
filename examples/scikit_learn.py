"""Fit scikit-learn estimators: logistic regression on unscaled data, and a ridge path."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import cross_val_score

from cfgd.integrations.sklearn import CaputoClassifier, CaputoRidge

X, y = load_breast_cancer(return_X_y=True)  # features from 1e-3 to 1e3, not standardised
model = CaputoClassifier(l2=1.0).fit(X, y)
print(f"{model.status_} after {model.n_iter_} iterations, accuracy {model.score(X, y):.3f}")
print("five folds:", cross_val_score(model, X, y, cv=5).round(3))

X, y = load_diabetes(return_X_y=True)
gammas = np.logspace(-4, 2, 7)
path = CaputoRidge().path(X, y, gammas)
for gamma, w in zip(gammas, path, strict=True):
    print(f"gamma {gamma:8.0e}   largest coefficient {np.abs(w).max():8.2f}")
