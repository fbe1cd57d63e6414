"""A problem for each of Auto's solvers, with two starts."""

import jax.numpy as jnp
import numpy as np

import cfgd

random = np.random.default_rng(11)
X = random.normal(size=(60, 5)) * np.geomspace(1, 30, 5)
Y = X @ [1, -0.3, 0.02, 0.1, 0] + random.normal(size=60)
WIDE = random.normal(size=(150, 130)) * np.geomspace(1, 10, 130)
B = random.normal(size=(12, 12))
T = np.linspace(0, 3, 20)
Z = np.linspace(-1, 1, 30)
NETWORK = cfgd.ShallowNetwork(Z, np.sin(3 * Z), 3)
LARGE_NETWORK = cfgd.ShallowNetwork(Z, np.sin(3 * Z), 12)


def valley(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


class Valley(cfgd.Objective):
    """The valley with a known number of coordinates, so that a sweep takes several starts."""

    unit: float
    d: int

    @property
    def shape(self):
        return (self.d,)

    def value(self, x):
        return self.unit * valley(x)


def bowl(x):
    r = x - np.arange(6.0)
    return 0.5 * r @ (np.geomspace(1, 1e3, 6) * r), np.geomspace(1, 1e3, 6) * r


def curve(b):
    return b[0] * jnp.exp(-b[1] * T) + b[2] - 1 / (1 + T)


# name: objective and two starts
CASES = {
    "conjugate gradients": (
        cfgd.Quadratic(B @ B.T / 12 + np.diag(np.geomspace(1e-4, 1, 12)), random.normal(size=12)),
        np.stack([np.ones(12), np.arange(12.0)]),
    ),
    "conjugate gradients in the residual form": (
        cfgd.LeastSquares(X, Y),
        np.stack([np.zeros(5), np.ones(5)]),
    ),
    "rescaled conjugate gradients": (
        cfgd.LeastSquares(1e-40 * X, 1e-40 * Y),
        np.stack([np.zeros(5), np.ones(5)]),
    ),
    "L-BFGS": (Valley(1.0, 4), np.array([[-0.7, 0.4, 1.3, -0.2], [0.1, 0.0, 0.2, -0.3]])),
    "L-BFGS on an external function": (cfgd.External(bowl), np.stack([np.zeros(6), np.ones(6)])),
    "rescaled L-BFGS": (Valley(1e-70, 2), np.array([[-0.7, 0.4], [0.1, 0.0]])),
    # its squared gradients would underflow
    "rescaled L-BFGS in float32": (
        Valley(1e-13, 2),
        np.array([[-0.7, 0.4], [0.1, 0.0]], np.float32),
    ),
    "Levenberg-Marquardt": (cfgd.Residuals(curve), np.array([[3.0, 0.1, 0.3], [1.0, 2.0, 0.0]])),
    "Levenberg-Marquardt on a linear model": (
        cfgd.LinearModel(X, Y > 0, l2=1e-3),
        np.stack([np.zeros(5), np.full(5, 0.01)]),
    ),
    "L-BFGS, then Levenberg-Marquardt": (
        cfgd.LinearModel(WIDE, WIDE[:, 0] > 0, l2=1e-6),
        np.stack([np.zeros(130), np.full(130, 1e-3)]),
    ),
    "variable projection": (
        LARGE_NETWORK,
        np.stack([LARGE_NETWORK.init(0), LARGE_NETWORK.init(1)]),
    ),
    "Levenberg-Marquardt, then variable projection": (
        NETWORK,
        np.stack([NETWORK.init(0), NETWORK.init(1)]),
    ),
}
# those of which a sweep takes several starts
SWEPT = {name: case for name, case in CASES.items() if case[0].shape is not None}
