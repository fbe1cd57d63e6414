"""A family of initialisations for the networks of section 4.3, since the paper states none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# standard deviations of the hidden layer (weights and biases) and of the output layer
HIDDEN = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
OUTPUT = (1.0, 0.14)


class NetworkStart(NamedTuple):
    """An initialisation: `draw(network, seed)` returns x0; `words` describes it."""

    words: str
    draw: Callable[[Any, int], np.ndarray]


def name_of(hidden: float, output: float) -> str:
    """Return the name of a normal initialisation in `FAMILY`."""
    return f"{hidden:g}/{output:g}"


def normal(hidden: float, output: float) -> NetworkStart:
    """Return the normal initialisation with these standard deviations of the two layers."""
    words = f"normal, of deviation {hidden:g} in the hidden layer and {output:g} in the output one"
    return NetworkStart(words, lambda network, seed: network.init(seed, (hidden, output)))


def pytorch(network: Any, seed: int) -> np.ndarray:
    """Draw uniformly from [-1/sqrt(k), 1/sqrt(k)], k being the inputs of a unit (1 if hidden)."""
    draw = np.random.default_rng(seed).uniform(-1, 1, network.dimension)
    draw[network.hidden :] /= np.sqrt(network.width)
    return draw


def xavier(network: Any, seed: int) -> np.ndarray:
    """Draw normal weights of variance 2 / (inputs + outputs of a layer) and zero biases."""
    inputs = network.z.shape[1] - 1
    draw = np.random.default_rng(seed).normal(size=network.dimension)
    draw[inputs * network.width : network.hidden] = 0
    draw[: network.hidden] *= np.sqrt(2 / (inputs + network.width))
    draw[network.hidden :] *= np.sqrt(2 / (network.width + 1))
    return draw


FAMILY: dict[str, NetworkStart] = {
    **{name_of(h, o): normal(h, o) for o in OUTPUT for h in HIDDEN},
    "PyTorch": NetworkStart("uniform, as PyTorch's Linear layers start", pytorch),
    "Xavier": NetworkStart("normal, by Xavier's rule, without biases", xavier),
}
