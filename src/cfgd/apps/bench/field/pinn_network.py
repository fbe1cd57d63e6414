"""A physics-informed network: tanh layers, residuals of samples, loss and relative error."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Sample = tuple[np.ndarray, ...]  # coordinates of the samples, one array for each
Solution = Callable[..., Any]  # of the parameters and the coordinates of one point


class Term(NamedTuple):
    """A term of the loss: residuals `fn(p, *sample)`, one number for each sample."""

    name: str
    fn: Callable[..., Any]
    samples: Sample
    weight: float = 1.0


@dataclasses.dataclass(frozen=True, eq=False)  # hashable: JAX compiles by identity
class PinnProblem:
    """A differential equation with a network: f(p) = sum over terms of weight mean(r^2) / 2.

    `network(p, *point)` is the solution at one point; p has the weights of `layers`, and then the
    coefficients of the equation that are unknown, which begin at `coefficients`. All methods
    compute in float64.
    """

    name: str
    layers: tuple[int, ...]
    network: Solution
    terms: tuple[Term, ...]
    points: Sample  # the points at which the error is computed
    reference: np.ndarray  # the solution there
    coefficients: tuple[float, ...] = ()

    def x0(self, seed: int) -> np.ndarray:
        """Return weights by Glorot initialisation (Glorot and Bengio, 2010) and zero biases."""
        random, parts = np.random.default_rng(seed), []
        for inputs, outputs in itertools.pairwise(self.layers):
            limit = np.sqrt(6 / (inputs + outputs))
            parts += [random.uniform(-limit, limit, inputs * outputs), np.zeros(outputs)]
        return np.concatenate([*parts, self.coefficients])

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return the samples of all terms."""
        return tuple(term.samples for term in self.terms)

    @property
    def residual_weights(self) -> np.ndarray:
        """Return the weight of each residual: f = sum of weights r^2 / 2."""
        return np.concatenate(
            [
                np.full(len(term.samples[0]), term.weight / len(term.samples[0]))
                for term in self.terms
            ]
        )

    def raw_residuals(self, p: Any, samples: Any) -> Any:
        """Return the residuals of all terms, unweighted (a JAX function)."""
        return jnp.concatenate(
            [
                jax.vmap(term.fn, (None, *[0] * len(sample)))(p, *sample)
                for term, sample in zip(self.terms, samples, strict=True)
            ]
        )

    def loss(self, p: Any, samples: Any, weights: Any) -> Any:
        """Return f (a JAX function)."""
        return jnp.sum(weights * self.raw_residuals(p, samples) ** 2) / 2

    def value_and_gradient(self, p: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self._call(self._compiled[0], p)
        return float(value), np.asarray(gradient)

    def residuals(self, p: np.ndarray) -> np.ndarray:
        """Return r with f = |r|^2 / 2: the residuals times the roots of their weights."""
        return np.asarray(self._call(self._compiled[1], p))

    def residuals_and_jacobian(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return r and its Jacobian, whose rows are the gradients of the samples."""
        r, jacobian = self._call(self._compiled[2], p)
        return np.asarray(r), np.asarray(jacobian)

    def error(self, p: np.ndarray) -> float:
        """Return the relative error |u - reference| / |reference| over the points."""
        with jax.enable_x64(True):
            u = np.asarray(self._compiled[3](p, self.points))
        return float(np.linalg.norm(u - self.reference) / np.linalg.norm(self.reference))

    def _call(self, compiled: Any, p: np.ndarray) -> Any:
        with jax.enable_x64(True):
            return compiled(p, self._data[0], self._data[1])

    @functools.cached_property
    def _data(self) -> tuple[Any, Any]:
        """Return samples and weights on the device, so that no call copies them."""
        with jax.enable_x64(True):
            return jax.tree.map(jnp.asarray, (self.samples, self.residual_weights))

    @functools.cached_property
    def _compiled(self) -> tuple[Any, Any, Any, Any]:
        def weighted(p: Any, samples: Any, weights: Any) -> Any:
            return jnp.sqrt(weights) * self.raw_residuals(p, samples)

        def with_jacobian(p: Any, samples: Any, weights: Any) -> Any:
            rows = [
                jax.vmap(jax.value_and_grad(term.fn), (None, *[0] * len(sample)))(p, *sample)
                for term, sample in zip(self.terms, samples, strict=True)
            ]
            root = jnp.sqrt(weights)
            r = jnp.concatenate([r for r, _ in rows])
            jacobian = jnp.concatenate([jacobian for _, jacobian in rows])
            return root * r, root[:, None] * jacobian

        def solution(p: Any, points: Any) -> Any:
            return jax.vmap(self.network, (None, *[0] * len(points)))(p, *points)

        return (
            jax.jit(jax.value_and_grad(self.loss)),
            jax.jit(weighted),
            jax.jit(with_jacobian),
            jax.jit(solution),
        )


def tanh_network(layers: tuple[int, ...]) -> Callable[[Any, Any], Any]:
    """Return u(p, inputs): tanh layers and a linear output for the inputs of one point."""

    def network(p: Any, inputs: Any) -> Any:
        h, at = inputs, 0
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(layers)):
            weights = p[at : at + fan_in * fan_out].reshape(fan_in, fan_out)
            at += fan_in * fan_out
            h = h @ weights + p[at : at + fan_out]
            at += fan_out
            if i < len(layers) - 2:
                h = jnp.tanh(h)
        return h[0]

    return network


def count_weights(layers: tuple[int, ...]) -> int:
    return sum(a * b + b for a, b in itertools.pairwise(layers))


def derivatives(u: Callable[[Any], Any], x: Any, order: int) -> tuple[Any, ...]:
    """Return u(x), u'(x), ..., up to `order`, by nested Jacobian-vector products.

    Each level differentiates the values and derivatives of the level below together, so that they
    are computed once.
    """
    if order == 0:
        return (u(x),)
    below, above = jax.jvp(lambda x: derivatives(u, x, order - 1), (x,), (jnp.ones_like(x),))
    return (*below, above[-1])
