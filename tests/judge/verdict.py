"""Whether the status of a run is true: judged from x, value and status alone.

A statement is `false` if something contradicts it, and `harsh` if it is not wrong but sends the
user away from a good point ("stalled" at a minimum).
"""

from typing import NamedTuple

import numpy as np

from judge.problem import Problem
from judge.reference import Descent, Reference

# A decrease that counts, relative to `Problem.scale`: gradients that fell by the default tolerance
# of 1e-8 at a minimum of sixth order leave 3e-10 of the value.
DECREASE = {np.float64: 1e-6, np.float32: 1e-3}
# A minimum to the accuracy of rounding: what a descent still finds, relative to `Problem.scale`.
AT_MINIMUM = {np.float64: 1e-9, np.float32: 1e-5}

# Values below this one are zero for XLA, which flushes subnormal numbers.
UNDERFLOW = 1e-290


class Verdict(NamedTuple):
    """What is wrong with a run: "false", "harsh" or "" and why."""

    kind: str
    why: str = ""


RIGHT = Verdict("")


def false(why: str) -> Verdict:
    return Verdict("false", why)


def harsh(why: str) -> Verdict:
    return Verdict("harsh", why)


def judge(problem: Problem, solution) -> Verdict:
    """Return what is wrong with a solution of a problem."""
    return Judge(problem, solution).verdict()


class Judge:
    """One solution, and the reference it is compared with."""

    def __init__(self, problem: Problem, solution) -> None:
        self.problem, self.solution = problem, solution
        self.reference = Reference(problem)
        self.precision = np.dtype(problem.x0.dtype).type
        self.eps = float(np.finfo(self.precision).eps)
        self.x, self.x0 = (np.asarray(x, np.float64) for x in (solution.x, problem.x0))

    def verdict(self) -> Verdict:
        with np.errstate(all="ignore"):
            wrong = self.numbers()
            return wrong if wrong.kind else getattr(self, f"is_{self.solution.status.name}")()

    # ------------------------------------------------------------------ numbers

    def numbers(self) -> Verdict:
        """Check x, value and message."""
        solution, reference = self.solution, self.reference
        if solution.x.dtype != self.precision:
            return false(f"x has the precision {solution.x.dtype}")
        if not np.isfinite(self.x).all() or not np.isfinite(solution.value):
            return false("x or value is not finite")
        if not solution.message.startswith(solution.status.value):
            return false("the message is not that of the status")
        value, start = reference.value(self.x), reference.value(self.x0)
        # 64 units: sums of some tens of terms, added in another order
        error = 64 * reference.rounding(self.x, self.eps) + UNDERFLOW
        if abs(solution.value - value) > error:
            return false(f"value {solution.value:.17g} is not f(x) = {value:.17g}")
        if value > start + error + 64 * reference.rounding(self.x0, self.eps):
            return false(f"f(x) = {value:.6g} is above f(x0) = {start:.6g}")
        return RIGHT

    # ------------------------------------------------------------------ statuses

    def is_converged(self) -> Verdict:
        if self.problem.method is not None:
            return self.has_small_gradient()
        if self.problem.truth == "unbounded":
            return false("f has no minimum")
        if self.problem.truth == "infimum":  # which is 0 in all families
            if self.solution.value > DECREASE[self.precision] * self.problem.scale:
                return false(f"f has no minimum; it falls from {self.solution.value:.3g} to 0")
            return harsh(f"f has no minimum; it falls from {self.solution.value:.3g} to 0")
        end, fall = self.fall()
        if fall > DECREASE[self.precision] * self.problem.scale:
            return false(
                f"f falls on from {self.solution.value:.6g} to {end.value:.6g} at {end.x[:5]}"
            )
        return RIGHT

    def is_separated(self) -> Verdict:
        return RIGHT if self.problem.truth == "infimum" else false("f has a minimum")

    def has_small_gradient(self) -> Verdict:
        norm, norm0 = (np.linalg.norm(self.reference.derivatives(x)[1]) for x in (self.x, self.x0))
        tolerance = self.problem.options.get("tolerance", 1e-8)
        # the gradient is computed in another order here
        if norm > 1.01 * tolerance * norm0 + 1e-13 * norm0:
            return false(f"the gradient went from {norm0:.3g} to {norm:.3g}")
        return RIGHT

    def is_saddle(self) -> Verdict:
        end, fall = self.fall()
        most = DECREASE[self.precision] * self.problem.scale
        if fall > most:
            here = f"f falls from {self.solution.value:.6g} to {end.value:.6g}"
            if self.gradient_gain() > most:
                return false(f"the gradient does not vanish, and {here}")
            return harsh(f"x can be left: {here}")
        lower = self.reference.ends_of_plateau(self.x)
        if any(self.solution.value - far.value > most for far in lower):
            return RIGHT  # a plateau
        if fall <= AT_MINIMUM[self.precision] * self.problem.scale:
            return false(f"x is a minimum: a descent gains {fall:.3g}")
        return RIGHT

    def is_unbounded(self) -> Verdict:
        truth = self.problem.truth
        if truth in ("minimum", "boundary"):
            return false("f is bounded below, and every descent ends")
        if truth == "bounded":
            further = self.reference.values(
                self.x + np.outer([1e-3, 1e-2, 0.1, 1.0, 10.0], self.x - self.x0)
            )
            far = np.max(abs(self.x) / (abs(self.x0) + self.problem.size)) > 100
            if not (far and (further <= self.solution.value * (1 + self.eps)).all()):
                return false("f is bounded below by 0")
        return RIGHT

    def is_stalled(self) -> Verdict:
        if not self.problem.is_smooth or self.problem.truth == "boundary":
            return RIGHT
        if self.problem.truth == "unbounded":
            return harsh("f is unbounded")
        end, fall = self.fall()
        if fall > DECREASE[self.precision] * self.problem.scale:
            return harsh(f"f falls on from {self.solution.value:.6g} to {end.value:.6g}")
        # what several roundings of f hide is not to be found
        error = 16 * self.reference.rounding(self.x, self.eps)
        is_minimum = fall <= AT_MINIMUM[self.precision] * self.problem.scale + error
        if is_minimum and self.problem.truth != "infimum" and self.problem.noise == 0:
            return harsh(f"x is a minimum; a descent gains {fall:.3g}")
        return RIGHT

    def is_nonfinite(self) -> Verdict:
        end, fall = self.fall()
        if self.problem.method is not None:
            return RIGHT
        random = np.random.default_rng(2).normal(size=(64, self.x.size)) * self.problem.size
        reach = np.logspace(-6, 3, 64)[:, None] * (1 + abs(self.x) / self.problem.size)
        around = [self.reference.derivatives(x)[:2] for x in self.x + reach * random]
        is_finite = all(np.isfinite(f) and np.isfinite(g).all() for f, g in around)
        if is_finite and self.problem.truth in ("minimum", "bounded"):
            return false("f is finite everywhere around x")
        if self.problem.truth == "unbounded":
            return harsh("f is unbounded")
        if fall > DECREASE[self.precision] * self.problem.scale:
            return harsh(f"f falls on from {self.solution.value:.6g} to {end.value:.6g}")
        return RIGHT

    def is_indefinite(self) -> Verdict:
        hessian = self.reference.derivatives(self.x)[2]
        if np.linalg.eigvalsh(hessian)[0] >= 0 or self.problem.truth != "unbounded":
            return false("the matrix is positive semi-definite")
        return RIGHT

    def is_max_iterations(self) -> Verdict:
        limit = self.problem.options.get("max_iterations", 10_000)
        if self.solution.iterations != limit:
            return false(f"{self.solution.iterations} iterations, the limit is {limit}")
        return RIGHT

    def is_wrong_gradient(self) -> Verdict:
        return false("the gradient is that of f")  # in every family

    def is_stages_done(self) -> Verdict:
        return RIGHT

    # ------------------------------------------------------------------ helpers

    def gradient_gain(self) -> float:
        """Return what the best step along the gradient gains, in coordinates scaled by curvature.

        It is |g|^2 / (2 L) with L the largest curvature (Nocedal and Wright, section 3.3).
        """
        _, gradient, hessian = self.reference.derivatives(self.x)
        if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
            return 0.0
        unit, eigenvalues, _ = self.reference.scaled_curvature(hessian)
        largest = abs(eigenvalues).max()
        return float(np.sum((unit * gradient) ** 2) / (2 * largest)) if largest > 0 else 0.0

    def fall(self) -> tuple[Descent, float]:
        """Return where descents from x end, and the decrease beyond rounding on the way."""
        end = self.reference.lower(self.x)
        here = self.reference.value(self.x)
        error = 16 * self.reference.rounding(self.x, self.eps)
        fall = here - end.value
        return end, (fall if fall > error else 0.0)
