"""The line search of the dense quasi-Newton method, for the strong conditions of Wolfe.

A matrix that is updated with every pair needs pairs with information: if the slope at the end of a
step is as steep as at its start, the pair says little about the curvature. Reference: Nocedal and
Wright, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

import numpy as np

from cfgd._core.linalg import inner
from cfgd._core.types import Number, Scalar
from cfgd.methods.auto.cubic import Trial, trial_between
from cfgd.methods.auto.line_search import Accepted, Search, decreases
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start, detect_unbounded
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Share of the first slope that may be left at the end of a step: the usual one for quasi-Newton
# methods (Nocedal and Wright, section 3.1).
CURVATURE_CONDITION = 0.9
# Least and largest ratio of a trial to the last one, if f still falls as steeply as at the start.
SHORTEST_EXTENSION, LONGEST_EXTENSION = 2.0, 10.0
# Trials after which the lowest point that decreases f enough is accepted, and trials after which
# the search has failed: the interval has then shrunk by more than the rounding error of t.
MOST_TRIALS, ALL_TRIALS = 10, 40


def wolfe_search(
    oracle: Oracle, origin: Evaluation, search: Search, start: Start
) -> Accepted | Status:
    """Find a step that decreases f enough and leaves little of the slope."""
    x, first = origin.x, search.slope
    low, high = Trial(0.0, origin.value, -first), None
    best: Accepted | None = None
    t = search.t
    for n in range(1, ALL_TRIALS + 1):
        at = oracle.evaluate(x - t * search.p)
        enough, value = decreases(search, t, origin, at, oracle.resolution)
        trial = Trial(t, at.value, -inner(at.gradient, search.p))
        is_finite = abs(at.value) < np.inf and bool(np.isfinite(at.gradient).all())
        if not (enough and is_finite):
            if detect_unbounded(oracle, start, at)[1]:
                return Status.unbounded
            high = trial
        else:
            accepted = Accepted(at, value, t)
            # if rounding hides the decrease, it hides the curvature, too
            if abs(trial.slope) <= CURVATURE_CONDITION * first or not at.value < origin.value:
                return accepted
            is_higher = low.t > 0 and trial.value >= low.value
            best = best if is_higher and best is not None else accepted
            if is_higher or trial.slope > 0:
                high = trial
            else:
                low = trial
        if n >= MOST_TRIALS and best is not None:
            break
        t = _extended(low, first) if high is None else trial_between(low, high)
    return Status.stalled if best is None else best


def _extended(low: Trial, first: Scalar) -> Number:
    """Return a longer step: to where the slope, continued as a straight line, is zero."""
    change = low.slope + first  # of the slope since the start of the line
    longer = first / change if change > 0 else np.inf
    return low.t * min(max(longer, SHORTEST_EXTENSION), LONGEST_EXTENSION)
