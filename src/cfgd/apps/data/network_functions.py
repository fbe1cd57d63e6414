"""The functions h1, h2 and h3 that the networks of section 4.3 learn, their orders and starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SAMPLES, WIDTH = 100, 50  # training points, and hidden units of the network

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "h1": lambda z: np.sin(5 * np.pi * z),
    "h2": lambda z: np.sin(2 * np.pi * z) * np.exp(-(z**2)),
    "h3": lambda z: (z > 0) + 0.2 * np.sin(2 * np.pi * z),
}
FORMULAS = {"h1": "sin(5πz)", "h2": "sin(2πz) exp(-z²)", "h3": "1[z > 0] + 0.2 sin(2πz)"}
ALPHAS = {"h1": 0.7, "h2": 0.4, "h3": 0.4}


class Start(NamedTuple):
    """A random initialisation: `scale` for `ShallowNetwork.init`, a short name, a description."""

    scale: Any
    short: str
    words: str


# The paper does not state its initialisation, and the outcome depends on it. These are two of the
# family in `network_starts`, for experiments that need only a few.
STARTS = {
    "N(0, 1)": Start(1.0, "N(0,1)", "all parameters standard normal"),
    "N(0, 25), N(0, 0.02)": Start(
        (5.0, 0.02**0.5),
        "N(0,25)",
        "variance 25 for the hidden layer, 0.02 for the output weights",
    ),
}
