"""The base class of update rules, which makes a method of a rule."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.linalg import inner
from cfgd._core.pytrees import Structure
from cfgd._core.types import Count, DType, Number, Scalar, Vector
from cfgd.methods.base import Info, Method, MethodTraits, Prepared, State, status_code
from cfgd.methods.paper.settings import FieldKind, Rule, lay_out
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Iterations without progress after which a run ends as stalled, as for the paper's methods.
PATIENCE = 1000

ADVICE = {
    Status.max_iterations: "Another eta, or `Auto()`, may need fewer iterations.",
    Status.nonfinite: "The steps are too long: use a smaller eta.",
    Status.stalled: "The rule may stop at points that are not stationary: see its docstring.",
}


class Range(NamedTuple):
    """The numbers that a parameter may have, in words and as a test."""

    words: str
    holds: Callable[[Any], Any]

    def __repr__(self) -> str:
        return f"Range({self.words!r})"


POSITIVE = Range("be positive", lambda v: v > 0)
NOT_NEGATIVE = Range("be at least 0", lambda v: v >= 0)
ORDER = Range("lie in (0, 1]", lambda v: (v > 0) & (v <= 1))
ORDER_BELOW_2 = Range("lie in (0, 2)", lambda v: (v > 0) & (v < 2))
SHARE = Range("lie in [0, 1]", lambda v: (v >= 0) & (v <= 1))
DECAY = Range("lie in [0, 1)", lambda v: (v >= 0) & (v < 1))
ANY = Range("be a number", lambda v: v == v)


def parameter(allowed: Range | None = None, default: float | None = None) -> Any:
    """Declare a number of a rule, or one for each coordinate, with the range that is allowed.

    Without a range any number is allowed; without a default the number must be given.

    Parameters
    ----------
    allowed : Range, optional
        The range that is allowed, such as `cfgd.zoo.POSITIVE`; by default any number.
    default : float, optional
        The default; without one the number must be given.

    Returns
    -------
    dataclass field
        To be assigned in the body of the class.

    Raises
    ------
    ValueError
        If `allowed` is no `Range`, or `default` is outside of it.

    Examples
    --------
    >>> import cfgd
    >>> class Damped(cfgd.zoo.UpdateRule):
    ...     eta: float = cfgd.zoo.parameter(cfgd.zoo.POSITIVE)
    ...     def update(self, at, memory, k, objective):
    ...         return self.eta * at.gradient / (1 + k), memory
    >>> try:
    ...     Damped(-1.0)
    ... except ValueError as error:
    ...     print(error)
    `Damped(eta=...)` must be positive, got -1.0.
    """
    allowed = ANY if allowed is None else allowed
    if not isinstance(allowed, Range):
        checks.fail("parameter", "allowed", "be a cfgd.zoo.Range", repr(allowed))
    if default is not None:
        checks.number("parameter", "default", default, *allowed)
    kind = FieldKind("number", 0, per_coordinate=True)
    metadata = {"kind": kind, "allowed": allowed}
    if default is None:
        return eqx.field(metadata=metadata)
    return eqx.field(metadata=metadata, default=default)


def count(default: int) -> Any:
    """Declare an integer of a rule, at least 1; each value compiles another program."""
    return eqx.field(static=True, metadata={"least": 1}, default=default)


class RuleState(State):
    """State between two iterations: that of every method, and the memory of the rule."""

    memory: Any


class UpdateRule(Method):
    r"""Base class of update rules $x_{k+1} = x_k - s_k$: a subclass defines `start` and `update`.

    `start` returns the memory of a run from x_0. `update` is a pure JAX function of the evaluation
    at x_k (`at.x`, `at.gradient`), the memory, k and the objective. It returns the step s_k and the
    next memory. The rule is a method of `minimize` and `sweep`, and a transformation of optax by
    `cfgd.integrations.optax.from_rule`.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp
    >>> class SignDescent(cfgd.zoo.UpdateRule):
    ...     eta: float = cfgd.zoo.parameter(cfgd.zoo.POSITIVE)
    ...     def update(self, at, memory, k, objective):
    ...         return self.eta / (1 + k) * jnp.sign(at.gradient), memory
    >>> f = lambda x: (x[0] - 3) ** 2 + x[1] ** 2
    >>> print(cfgd.minimize(f, [0.0, 1.0], SignDescent(1.0), max_iterations=500).x.round(2))
    [3. 0.]
    """

    # The number of the rule in the table of docs/fractional.md; None for rules of users.
    number: ClassVar[int | None] = None

    _internal: ClassVar[tuple[str, ...]] = ("number", "owner_of")

    def __check_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, owner = getattr(self, field.name), type(self).__name__
            if "allowed" in field.metadata:
                words, holds = field.metadata["allowed"]
                checks.number(owner, field.name, value, words, holds)
            if "least" in field.metadata:
                checks.integer(owner, field.name, value, field.metadata["least"])

    def start(self, x: Vector) -> Any:
        """Return the memory before the first step; None for a rule without one.

        Parameters
        ----------
        x : array
            x_0 as a vector.

        Returns
        -------
        pytree
            The memory.
        """
        return None

    @abc.abstractmethod
    def update(self, at: Evaluation, memory: Any, k: Count, objective: Any) -> tuple[Vector, Any]:
        """Return the step that is subtracted from x_k, and the next memory.

        Parameters
        ----------
        at : Evaluation
            The evaluation at x_k: `at.x`, `at.value` and `at.gradient`.
        memory : pytree
            The memory, of the structure that `start` returned.
        k : int array
            The number of the iteration, from 0.
        objective : Objective
            The objective, for rules that ask it for more.

        Returns
        -------
        step, memory : array, pytree
            The step s_k, of the shape of x, and the next memory.
        """

    def extra_cost(self, objective: Objective, d: int) -> float:
        """Return the cost of an iteration beyond its gradient, in gradients.

        Parameters
        ----------
        objective : Objective
            The objective.
        d : int
            The number of coordinates.

        Returns
        -------
        float
            The cost.
        """
        return 0.0

    # ------------------------------------------------------------------ as a method

    @property
    def traits(self) -> MethodTraits:
        return MethodTraits(patience=PATIENCE, advice=ADVICE)

    def owner_of(self, rule: object) -> str:
        """Return whose number it is, for messages."""
        return rule.owner(None) if isinstance(rule, Rule) else type(self).__name__

    def prepare(
        self,
        objective: Objective,
        structure: Structure,
        d: int,
        dtype: DType,
        settings: int | None = None,
    ) -> Prepared:
        return Prepared(lay_out(self, structure, d, settings))

    def describe(self, objective: Objective) -> str:
        is_published = type(self).__module__.startswith("cfgd.zoo.")
        origin = " of cfgd.zoo" if is_published else ""
        return f"{type(self).__name__}{origin} on {objective.traits.label}"

    def init(self, objective: Objective, x0: Vector) -> RuleState:
        return RuleState(
            k=jnp.zeros((), jnp.int32),
            evaluation=objective.evaluate(x0),
            eta=jnp.full((), jnp.nan, x0.dtype),
            gamma=None,
            memory=self.start(x0),
        )

    def step(
        self, objective: Any, state: RuleState, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[RuleState, Info]:
        at, norm2 = state.evaluation, self.measure(objective, state)
        moves = norm2 > floor
        step, memory = self.update(at, state.memory, state.k, objective)
        eta = jnp.max(jnp.asarray(getattr(self, "eta", jnp.nan), at.x.dtype))
        new = RuleState(
            k=state.k + moves,
            evaluation=objective.evaluate(jnp.where(moves, at.x - step, at.x)),
            eta=jnp.where(moves, eta, state.eta),
            gamma=None,
            memory=jax.tree.map(lambda a, b: jnp.where(moves, a, b), memory, state.memory),
        )
        cost = 1.0 + self.extra_cost(objective, at.x.size)
        none = jnp.zeros((), bool)
        code = status_code(stalled=none)
        return new, Info(norm2, jnp.where(moves, cost, 0.0), none, code, moves)

    def measure(self, objective: Any, state: RuleState) -> Scalar:
        return inner(state.evaluation.gradient, state.evaluation.gradient)
