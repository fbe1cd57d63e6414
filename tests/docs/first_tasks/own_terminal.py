"""Run the paper's method on one's own function with an own terminal, from docs/extending.md."""

import jax.numpy as jnp
import numpy as np

import cfgd


class Every(cfgd.terminal.Terminal):
    """c_k: the point of the last iteration whose number is a multiple of `period`."""

    period: int

    def init(self, x0):
        return x0

    def next(self, memory, x, k):
        memory = jnp.where(k % self.period == 0, x, memory)
        return memory, memory


def valley(x):  # its minimiser: (2, -1), where both cosh are 1
    return jnp.cosh(x[0] - 2) + 10 * jnp.cosh(x[1] + x[0] - 1)


order = cfgd.order.Constant(0.5, gamma=-0.25)
method = cfgd.Fractional(Every(3), order, cfgd.ArmijoStep())
solution = cfgd.minimize(valley, np.array([0.0, 0.5]), method, tolerance=1e-6)
assert solution, solution.message
assert np.allclose(solution.x, [2.0, -1.0], atol=1e-5)
assert abs(solution.value - 11.0) < 1e-9

# the direction, against the average of slopes that defines it, here that of 3 U^2
x, c, alpha = np.array([1.0]), np.array([0.0]), 0.5
d = cfgd.fractional_gradient(lambda x: x[0] ** 3, x, c, alpha=alpha, beta=0.0)
moment = 2 / ((1 + 1 - alpha) * (1 + 2 - alpha))  # the mean of U^2 for U of Beta(1, 1 - alpha)
assert np.allclose(d, 3 * moment, rtol=1e-12)
