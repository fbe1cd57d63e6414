"""Diagonals of matrices that are known by their products, for pytrees.

A complex parameter is two real ones: its entry of a diagonal has the curvature along the real part
as its real part, and that along the imaginary part as its imaginary part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Product = Callable[[Any], Any]

# how many coordinates are looked at together
CHUNK = 64


def times(D: Any, s: Any) -> Any:
    """D s for a diagonal D; a real D is that of both parts of a complex s."""
    if jnp.iscomplexobj(D) and jnp.iscomplexobj(s):
        return jax.lax.complex(D.real * s.real, D.imag * s.imag)
    return D * s


def hessian(value: Callable[[Any], Any], x: Any) -> Product:
    """v -> Hv. The gradient is conjugated, because JAX's is f_re - i f_im."""

    def gradient(x: Any) -> Any:
        return jax.tree.map(jnp.conj, jax.grad(value)(x))

    return lambda v: jax.jvp(gradient, (x,), (v,))[1]


def gauss_newton(model: Callable[[Any], Any], loss: Callable[[Any], Any], x: Any) -> Product:
    """v -> J' L'' J v."""

    def product(v: Any) -> Any:
        predictions, forward = jax.linearize(model, x)
        (back,) = jax.linear_transpose(forward, x)(
            jax.jvp(jax.grad(loss), (predictions,), (forward(v),))[1]
        )
        return jax.tree.map(jnp.conj, back)

    return product


def probed(product: Product, x: Any, key: Any, probes: int) -> Any:
    """The mean of v * Bv over random signs v."""

    def one(key: Any) -> Any:
        v = signs(key, x)
        return jax.tree.map(times, v, product(v))

    if probes == 1:
        return one(key)

    def more(i: Any, total: Any) -> Any:
        return jax.tree.map(jnp.add, total, one(jax.random.fold_in(key, i)))

    total = jax.lax.fori_loop(0, probes, more, jax.tree.map(jnp.zeros_like, x))
    return jax.tree.map(lambda total: total / probes, total)


def signs(key: Any, x: Any) -> Any:
    """Random signs in the structure, dtypes and shardings of x."""
    leaves, treedef = jax.tree.flatten(x)
    keys = jax.random.split(key, max(len(leaves), 1))
    return jax.tree.unflatten(
        treedef, [_signs_like(*both) for both in zip(keys, leaves, strict=False)]
    )


def _signs_like(key: Any, leaf: Any) -> Any:
    dtype = leaf.dtype
    if jnp.issubdtype(dtype, jnp.complexfloating):
        v = jax.lax.complex(
            *(_packed(one, leaf.size, leaf.real.dtype) for one in jax.random.split(key))
        )
    else:
        v = _packed(key, leaf.size, dtype)
    v, sharding = v.reshape(leaf.shape), jax.typeof(leaf).sharding
    return v if sharding.mesh.empty else jax.sharding.reshard(v, sharding)


def _packed(key: Any, size: int, dtype: Any) -> Any:
    """A word of random bits is 32 signs: a fourteenth of the time of jax.random.rademacher."""
    words = jax.random.bits(key, (-(-size // 32), 1), jnp.uint32)
    bits = (words >> jnp.arange(32, dtype=jnp.uint32)) & 1
    return 1 - 2 * bits.reshape(-1)[:size].astype(dtype)


def by_coordinates(product: Product, x: Any) -> Any:
    """The entries e_j' B e_j one after the other, in chunks."""
    leaves, treedef = jax.tree.flatten(x)

    def entries(place: int, unit: Any) -> Any:
        leaf = leaves[place]

        def entry(j: Any) -> Any:
            v = [jnp.zeros_like(other) for other in leaves]
            v[place] = v[place].reshape(-1).at[j].set(unit).reshape(leaf.shape)
            out = jax.tree.leaves(product(jax.tree.unflatten(treedef, v)))[place]
            return out.reshape(-1)[j]

        every = jax.lax.map(entry, jnp.arange(leaf.size), batch_size=CHUNK)
        return every.reshape(leaf.shape)

    def diagonal(place: int) -> Any:
        along = entries(place, 1)
        if not jnp.iscomplexobj(leaves[place]):
            return along
        return jax.lax.complex(along.real, entries(place, 1j).imag)

    return jax.tree.unflatten(treedef, [diagonal(place) for place in range(len(leaves))])
