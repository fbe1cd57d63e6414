"""scikit-learn's digits with a small dense and a small convolutional network."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd.apps.bench.training.problem import (
    TrainingProblem,
    cross_entropy,
    dense,
    dense_init,
    error_rate,
)

TRAIN = 1437  # of 1797: four fifths
CHANNELS = (8, 16)


@functools.cache
def _data() -> tuple[Any, Any, Any, Any]:
    """Return grey values in [0, 1] and labels, split by a permutation of seed 0."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = (X[order] / 16).astype(np.float32), y[order].astype(np.int32)
    return X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:]


def digits(steps: int) -> TrainingProblem:
    X, y, X_test, y_test = _data()
    return TrainingProblem(
        "digits",
        "scikit-learn's digits, 1437 training and 360 test images, dense network 64-32-10",
        lambda key: dense_init(key, (64, 32, 10)),
        lambda params, x, y: cross_entropy(dense(params, x), y),
        lambda params: error_rate(dense(params, X_test), y_test),
        X,
        y,
        batch=64,
        steps=steps,
    )


def convolution(steps: int) -> TrainingProblem:
    X, y, X_test, y_test = _data()
    patches = _input_patches(X_test)
    return TrainingProblem(
        "convolution",
        "scikit-learn's digits, network of two 3 x 3 convolutions with 8 (stride 2) and 16 "
        "channels and a dense layer",
        _init,
        lambda params, x, y: cross_entropy(_network(params, x), y),
        lambda params: error_rate(_network(params, patches), y_test),
        _input_patches(X),
        y,
        batch=32,
        steps=steps,
    )


def _init(key: Any) -> dict[str, Any]:
    first, second = CHANNELS
    keys = jax.random.split(key, 3)
    return {
        "first": dense_init(keys[0], (9, first)),
        "second": dense_init(keys[1], (9 * first, second)),
        "dense": dense_init(keys[2], (4 * second, 10)),
    }


def _input_patches(X: Any) -> Any:
    """Return the patches of the first convolution, computed once: 3 x 3 values at 4 x 4 places."""
    padded = np.pad(X.reshape(-1, 8, 8, 1), ((0, 0), (1, 0), (1, 0), (0, 0)))
    return np.asarray(_patches(padded, 2))


def _network(params: dict[str, Any], patches: Any) -> Any:
    x = jnp.tanh(dense(params["first"], patches))
    x = jnp.tanh(dense(params["second"], _patches(x, 1)))
    return dense(params["dense"], x.reshape(len(x), -1))


def _patches(x: Any, stride: int) -> Any:
    """Return each 3 x 3 neighbourhood as a vector: a convolution becomes a matrix product.

    XLA's convolutions with a different kernel for each seed are slow on CPUs.
    """
    n = x.shape[1] - 2
    shifted = [x[:, i : i + n : stride, j : j + n : stride] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, axis=-1)
