"""An independent look at a point: exact derivatives, rounding errors, descents in NumPy.

Nothing here calls the library. Values, gradients and Hessians are those of the plain function in
float64, by JAX. Descents are Newton steps with the absolute values of the eigenvalues (Nocedal and
Wright, section 3.4), in coordinates scaled by their own curvature; every step must lower f at each
of four points along it, so that a descent stays in its basin.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np
import scipy.optimize

from judge.problem import Problem

# Distances at which rays from a point are evaluated, in units of `Problem.size`.
DISTANCES = np.logspace(-8, 0, 33)
# Up to this distance a ray must have fallen to count against a point: what lies behind a plateau is
# another basin.
NEAR = 0.05
# Distances at which the end of a plateau is looked for.
FAR_DISTANCES = np.logspace(-2, 3, 161)
# Newton steps of a descent.
STEPS = 100


class Descent(NamedTuple):
    """Where a descent ended, and by how much f fell."""

    x: np.ndarray
    value: float


@functools.cache
def _derivatives(plain):
    """Return compiled functions: the value, values of many points, and all derivatives."""

    def everything(x, *data):
        value, gradient = jax.value_and_grad(plain)(x, *data)
        return value, gradient, jax.hessian(plain)(x, *data)

    def values(points, *data):
        return jax.vmap(lambda x: plain(x, *data))(points)

    return jax.jit(values), jax.jit(everything)


class Reference:
    """The plain function of a problem, with what float64 can tell about it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._values, self._everything = _derivatives(problem.plain)
        self._data = tuple(np.asarray(entry, np.float64) for entry in problem.data)

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return f at each row; rows are repeated to one of two numbers, to compile twice."""
        n = len(points)
        padded = np.resize(points, (64 if n <= 64 else -(-n // 2048) * 2048, points.shape[1]))
        with jax.enable_x64(True), np.errstate(all="ignore"):
            return np.asarray(self._values(padded, *self._data))[:n]

    def value(self, x: np.ndarray) -> float:
        return float(self.values(x[None])[0])

    def derivatives(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return value, gradient and Hessian."""
        with jax.enable_x64(True), np.errstate(all="ignore"):
            value, gradient, hessian = self._everything(x, *self._data)
        return float(value), np.asarray(gradient), np.asarray(hessian)

    def rounding(self, x: np.ndarray, eps: float = 2.0**-52) -> float:
        """Return the error of f at x: of its last bits, and of those of x."""
        d = x.size
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (16, d))
        around = self.values(np.vstack([x, x * (1 + 2 * eps * signs)]))
        change = np.nanmax(abs(around[1:] - around[0]), initial=0.0)
        return 4 * (eps * abs(around[0]) + change) + self.problem.noise

    def scaled_curvature(self, hessian: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return unit, eigenvalues and eigenvectors of the Hessian with a diagonal of 1."""
        diagonal = abs(hessian.diagonal())
        # a coordinate whose curvature is nothing against that of others is scaled by its size
        typical = diagonal * self.problem.size**2
        is_flat = ~(typical > 1e-14 * typical.max(initial=0.0))
        unit = np.where(is_flat, self.problem.size, 1 / np.sqrt(np.where(is_flat, 1, diagonal)))
        if typical.max(initial=0.0) > 0:
            unit = np.where(is_flat, self.problem.size / np.sqrt(typical.max()), unit)
        eigenvalues, vectors = np.linalg.eigh(hessian * unit * unit[:, None])
        return unit, eigenvalues, vectors

    def descend(self, x: np.ndarray) -> Descent:
        """Return the end of a descent from x."""
        value, gradient, hessian = self.derivatives(x)
        start = value
        for _ in range(STEPS):
            if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
                break
            unit, eigenvalues, vectors = self.scaled_curvature(hessian)
            slopes = vectors.T @ (unit * gradient)
            largest = abs(eigenvalues).max()
            if not largest > 0:
                directions = [-gradient * self.problem.size**2]
            else:
                floor = np.maximum(abs(eigenvalues), 1e-14 * largest)
                directions = [-unit * (vectors @ (slopes / floor))]
                if eigenvalues[0] < 0:
                    down = unit * vectors[:, 0]
                    directions += [down, -down]
            trial = min(
                (self._along(x, value, step) for step in directions), key=lambda end: end.value
            )
            if not trial.value < value:
                break
            fell = value - trial.value
            x = trial.x
            value, gradient, hessian = self.derivatives(x)
            # a fall by the scale of the values is proof enough
            if not fell > 1e-3 * self.rounding(x) or value < start - self.problem.scale:
                break
        return Descent(x, value)

    def _along(self, x: np.ndarray, value: float, step: np.ndarray) -> Descent:
        """Return the lowest point of a step and its halves for which f falls all the way."""
        longest = np.max(abs(step) / (self.problem.size + abs(x)))
        if not (longest > 0 and np.isfinite(longest)):
            return Descent(x, value)
        step = step / max(longest, 1.0)
        fractions = 2.0 ** -np.arange(60.0)
        values = self.values(x + fractions[:, None] * step)  # at t, t/2, t/4, ...
        is_lower = values < value
        best, error = Descent(x, value), self.rounding(x)
        near = fractions * min(longest, 1.0) <= max(NEAR, fractions[-1])
        if longest > NEAR and not (values[near] < value - error).any():
            return best  # a plateau: what lies behind it is another basin
        # f falls from x to fraction k if it does from each shorter one to the next
        for k in np.flatnonzero(is_lower):
            path = np.append(value, values[k:][::-1])
            if np.all(np.diff(path) <= error) and values[k] < best.value:
                best = Descent(x + fractions[k] * step, float(values[k]))
        return best

    def rays(
        self, x: np.ndarray, distances: np.ndarray = DISTANCES, near: float = NEAR
    ) -> list[Descent]:
        """Return the lowest points of rays along which f does not rise, and falls up to `near`.

        Rays go along the axes of the curvature, the coordinates, the gradient and at random.
        """
        d, size, value = x.size, self.problem.size, self.value(x)
        _, gradient, hessian = self.derivatives(x)
        directions = [np.diag(size)]
        if np.isfinite(hessian).all():
            unit, _, vectors = self.scaled_curvature(hessian)
            directions.append((unit[:, None] * vectors).T)
        if np.isfinite(gradient).all():
            directions.append((gradient * size**2)[None])
        directions.append(np.random.default_rng(1).normal(size=(d, d)) * size)
        rows = np.vstack(directions)
        lengths = np.max(abs(rows) / size, 1)
        rows = rows[lengths > 0] / lengths[lengths > 0, None]
        rows = np.vstack([rows, -rows])
        points = x + distances[None, :, None] * rows[:, None]
        values = self.values(points.reshape(-1, d)).reshape(len(rows), -1)
        error = self.rounding(x)
        found = []
        for line, along in zip(points, values, strict=True):
            falls = np.diff(np.append(value, along)) <= error
            n = len(along) if falls.all() else int(np.argmin(falls))
            near = int(np.searchsorted(distances, near, side="right"))
            if n > 0 and along[: min(n, near)].min(initial=np.inf) < value - 4 * error:
                k = int(np.argmin(along[:n]))
                found.append(Descent(line[k], float(along[k])))
        return sorted(found, key=lambda end: end.value)

    def ends_of_plateau(self, x: np.ndarray) -> list[Descent]:
        """Return lower points behind a plateau: f is the same to rounding, and then falls."""
        return self.rays(np.asarray(x, np.float64), FAR_DISTANCES, FAR_DISTANCES[-1])

    def lower(self, x: np.ndarray) -> Descent:
        """Return the lowest point that descents from x reach."""
        x = np.asarray(x, np.float64)
        ends = [Descent(x, self.value(x))]
        if not self.problem.is_smooth:
            ends += [self._simplex(x, part) for part in (1e-2, 1e-5)]
            return min(ends, key=lambda end: end.value)
        ends.append(self.descend(x))
        for ray in self.rays(x)[:2]:
            ends.append(self.descend(ray.x))
        return min(ends, key=lambda end: end.value)

    def _simplex(self, x: np.ndarray, part: float) -> Descent:
        """Return what Nelder and Mead's method finds from a small simplex around x."""

        def f(z):
            value = self.value(x + part * self.problem.size * z)
            return value if np.isfinite(value) else np.inf

        simplex = np.vstack([np.zeros(x.size), np.eye(x.size)])
        found = scipy.optimize.minimize(
            f, simplex[0], method="Nelder-Mead",
            options={"initial_simplex": simplex, "maxiter": 400, "xatol": 0, "fatol": 0},
        )  # fmt: skip
        return Descent(x + part * self.problem.size * found.x, float(found.fun))
