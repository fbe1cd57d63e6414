"""scikit-learn's two moons with a small dense network."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd.apps.bench.training.problem import TrainingProblem, dense, dense_init

NOISE = 0.2


@functools.cache
def _data(samples: int, seed: int) -> tuple[Any, Any]:
    from sklearn.datasets import make_moons

    X, y = make_moons(samples, noise=NOISE, random_state=seed)
    return X.astype(np.float32), y.astype(np.float32)


def moons(steps: int) -> TrainingProblem:
    """Return the problem: the logistic loss of a network with one output."""
    X, y = _data(500, 0)
    X_test, y_test = _data(1000, 1)

    def loss(params: Any, x: Any, y: Any) -> Any:
        logit = dense(params, x)[:, 0]
        return jnp.mean(jax.nn.softplus(logit) - y * logit)

    return TrainingProblem(
        "moons",
        "scikit-learn's two moons with noise 0.2, 500 training and 1000 test points, dense network "
        "2-16-16-1",
        lambda key: dense_init(key, (2, 16, 16, 1)),
        loss,
        lambda params: jnp.mean((dense(params, X_test)[:, 0] > 0) != (y_test > 0.5)),
        X,
        y,
        batch=50,
        steps=steps,
    )
