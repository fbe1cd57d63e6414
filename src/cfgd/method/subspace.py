"""The best step of the span of a few steps and the scaled gradient, from gradients already seen."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cfgd.algebra import inner
from cfgd.types import Count, Flag, Scalar, Vector, Vectors

Matrix: TypeAlias = Float[Array, "n n"]

# squared part of a unit direction that must be new
SPAN_TOLERANCE = 1e-10
# parts of the largest curvature that count as zero: of steps made, and of differences of gradients
CURVATURE_TOLERANCE = 1e-10
# how much longer a step becomes where the last one met no curvature
GROWTH = 4.0


class Memory(eqx.Module):
    """Steps, latest first, with the changes of the gradient along them; rows of zeros are empty."""

    steps: Vectors
    changes: Vectors

    def then(self, step: Vector, change: Vector) -> Memory:
        """With one more step, without the oldest one."""
        return Memory(
            jnp.concatenate([step[None], self.steps[:-1]]),
            jnp.concatenate([change[None], self.changes[:-1]]),
        )

    def at(self, j: Count, step: Vector, change: Vector) -> Memory:
        return Memory(self.steps.at[j].set(step), self.changes.at[j].set(change))


class Direction(NamedTuple):
    """p, to be walked against, and what the model knows of it."""

    p: Vector
    slope: Scalar  # <g, p>
    eta: Scalar  # of the scaled gradient in p
    gamma: Scalar
    largest: Scalar  # curvature in the memory


def best_direction(memory: Memory, g: Vector, P: Vector, damping: Scalar) -> Direction:
    """Minimise the quadratic model over the steps of the memory and u = P^-1 g.

    In the norm of P, directions that depend on others are dropped. The model of the steps, and
    what couples them to u, are gradients already seen. Nobody has seen the curvature of what is
    new in u: see `_new_curvature`. Where the model is not convex, L-BFGS from the same memory.
    """
    u = g / P
    basis, scale, to_span, among, kept, _ = _model(memory, u, P)
    slopes = to_span @ (basis @ g)
    coupling = to_span[-1] @ (basis @ (scale[:-1, None] * memory.changes).T) @ to_span[:-1, :-1].T
    largest = jnp.linalg.norm(jnp.where(kept, among, 0))
    identity = jnp.eye(len(among), dtype=g.dtype)
    least = CURVATURE_TOLERANCE * largest
    factor = jnp.linalg.cholesky(among + (least + damping) * identity, symmetrize_input=False)
    half = jax.scipy.linalg.solve_triangular(factor, identity, lower=True)
    inverse = half.T @ half
    sigma = _new_curvature(memory, P, largest) + damping
    new = (slopes[-1] - coupling @ inverse @ slopes[:-1]) / sigma
    best = jnp.append(inverse @ (slopes[:-1] - new * coupling), new)
    weights = scale * (best @ to_span)
    p = weights[:-1] @ memory.steps + weights[-1] * u
    gamma = jnp.where(weights[-1] != 0, weights[0] / weights[-1], 0)

    def fine(p: Vector) -> Flag:
        slope = inner(g, p)
        return (slope > 0) & jnp.isfinite(slope)

    convex = fine(p)
    p = jax.lax.cond(convex, lambda: p, lambda: _two_loops(memory, g, P))
    p = jnp.where(fine(p), p, u)
    eta = jnp.where(convex, weights[-1], 1)
    return Direction(p, inner(g, p), eta, jnp.where(convex, gamma, 0), largest)


class Model(NamedTuple):
    """The quadratic model on the unit basis of the steps and u, in the norm of P."""

    basis: Float[Array, "n d"]
    scale: Float[Array, " n"]  # what made the steps and u unit vectors
    to_span: Matrix  # what makes the basis orthonormal
    among: Float[Array, "m m"]  # the model of the steps; the identity for those that were dropped
    kept: Bool[Array, " m"]
    unequal: Scalar  # how far it was from symmetric: what rounding makes of it


def _model(memory: Memory, u: Vector, P: Vector) -> Model:
    basis = jnp.concatenate([memory.steps, u[None]])
    norms = jnp.sqrt(jnp.sum(basis * P * basis, 1))
    there = norms > 0
    scale = jnp.where(there, 1 / jnp.where(there, norms, 1), 0)
    basis, images = scale[:, None] * basis, scale[:-1, None] * memory.changes
    to_span, kept = orthonormal((basis * P) @ basis.T)
    old, back = kept[:-1], to_span[:-1, :-1]
    among = back @ (basis[:-1] @ images.T) @ back.T
    unequal = jnp.linalg.norm(among - among.T)
    among = jnp.where(old[:, None] & old, (among + among.T) / 2, jnp.eye(len(old), dtype=u.dtype))
    return Model(basis, scale, to_span, among, old, unequal)


def orthonormal(gram: Matrix) -> tuple[Matrix, Bool[Array, " n"]]:
    """Coefficients of an orthonormal basis, in the given order, and which rows it keeps.

    The order matters: the latest steps are the ones to trust.
    """
    identity = jnp.eye(len(gram), dtype=gram.dtype)

    def row(j: Count, T: Matrix) -> Matrix:
        rest = identity[j] - (T @ gram[j]) @ T
        rest = rest - (T @ (gram @ rest)) @ T  # once is not enough
        size = inner(rest, gram @ rest)
        new = size > SPAN_TOLERANCE
        return T.at[j].set(jnp.where(new, rest / jnp.sqrt(jnp.where(new, size, 1)), 0))

    # rolled: unrolled it would take half of the time that Auto compiles for
    T = jax.lax.fori_loop(0, len(gram), row, jnp.zeros_like(gram))
    return T, jnp.diagonal(T) > 0


def _new_curvature(memory: Memory, P: Vector, largest: Scalar) -> Scalar:
    """y'P^-1 y / y's of the last step s and its change of the gradient y, as L-BFGS takes it."""
    s, y = memory.steps[0], memory.changes[0]
    along = inner(s, y)
    # without a step P is the curvature
    otherwise = jnp.where(inner(s, s) > 0, largest, 1)
    return jnp.where(along > 0, inner(y, y / P) / jnp.where(along > 0, along, 1), otherwise)


def _two_loops(memory: Memory, g: Vector, P: Vector) -> Vector:
    """L-BFGS's direction: only pairs along which the gradient grew count."""
    along = jnp.sum(memory.steps * memory.changes, 1)
    sizes = jnp.sqrt(jnp.sum(memory.steps**2, 1)) * jnp.sqrt(jnp.sum(memory.changes**2, 1))
    usable = along > 1e-12 * sizes
    rho = jnp.where(usable, 1 / jnp.where(usable, along, 1), 0)
    pairs = memory.steps, memory.changes, rho

    def newest_first(q: Vector, pair: Any) -> tuple[Vector, Scalar]:
        s, y, rho = pair
        share = rho * inner(s, q)
        return q - share * y, share

    def oldest_first(r: Vector, pair: Any) -> tuple[Vector, None]:
        (s, y, rho), share = pair
        return r + (share - rho * inner(y, r)) * s, None

    q, shares = jax.lax.scan(newest_first, g, pairs)
    first = jnp.argmax(usable)
    y = memory.changes[first]
    r = q / P * jnp.where(usable[first], along[first] / inner(y, y / P), 1)
    r, _ = jax.lax.scan(oldest_first, r, (pairs, shares), reverse=True)
    # along the last step the gradient did not grow: go further
    last = jnp.sqrt(inner(memory.steps[0] * P, memory.steps[0]))
    size = jnp.sqrt(inner(r * P, r))
    further = ~usable[0] & (last > 0)
    return jnp.where(further, r * (jnp.maximum(size, GROWTH * last) / size), r)


class Looked(NamedTuple):
    """What the curvature around a point promises, the memory being of probes around it."""

    p: Vector  # the step of the model, curvatures counting by their size
    slope: Scalar  # <g, p>
    decrease: Scalar  # that the model promises at most
    length: Scalar  # of the step that it promises, in the norm of P
    least: Scalar  # curvature, as a part of the largest one; negative at a saddle
    downwards: Vector  # the direction of the least curvature, of length one in the norm of P


def looked_direction(
    memory: Memory, g: Vector, P: Vector, size: Scalar, noise: Any, far: Bool[Array, " d"]
) -> Looked:
    """Newton's step in the span of the probes.

    Curvatures below `noise`, as a part of the largest one, are not known: the step takes them for
    that, the promise for zero to rounding, unless the gradient is zero to rounding along them.
    Where such a direction moves coordinates that went `far`, it leads to infinity, and promises
    that.
    """
    basis, scale, to_span, among, _, unequal = _model(memory, g / P, P)
    back, eps = to_span[:-1, :-1], jnp.finfo(g.dtype).eps
    curvatures, axes = jnp.linalg.eigh(among, symmetrize_input=False)
    sizes = jnp.abs(curvatures)
    largest = jnp.max(sizes)
    slopes = axes.T @ (back @ (basis[:-1] @ g))
    noise = jnp.maximum(noise, 4 * unequal / largest)
    known = sizes > noise * largest
    none = ~known & (jnp.abs(slopes) <= 4 * eps * largest * size)
    best = slopes / jnp.where(known, sizes, noise * largest)
    most = jnp.where(none, 0, slopes / jnp.where(known, sizes, eps * largest))

    ways = (axes.T @ back * scale[:-1]) @ memory.steps  # of each curvature, a unit vector
    p, downwards = best @ ways, ways[0]
    downwards = jnp.where(inner(downwards, g) < 0, -downwards, downwards)
    least = jnp.where(known[0], curvatures[0] / largest, 0)
    endless = jnp.any(~known & (jnp.where(far, P * ways**2, 0).sum(1) > 0.1))
    length = jnp.where(endless, jnp.inf, jnp.sqrt(inner(most, most)))
    decrease = jnp.where(jnp.isfinite(length), inner(slopes, most) / 2, jnp.inf)
    return Looked(p, inner(g, p), decrease, length, least, downwards)
