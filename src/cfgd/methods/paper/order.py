"""Rules for the order alpha_k and the smoothing beta_k.

>>> import cfgd
>>> print(cfgd.order.Constant(0.5, beta=0.25).vanishes)
False
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import own, standard_promotion
from cfgd._core.public_names import ListsPublicNames
from cfgd._core.representation import ShowsCall
from cfgd._core.types import ArrayInput, Count, DType, Numbers
from cfgd.methods.paper.direction import CaputoMemory, memory_of
from cfgd.methods.paper.settings import MessageText, Rule, is_open, number, table

__all__ = ["Constant", "Order", "Stages", "beta_of"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


def beta_of(alpha: Any, gamma: Any) -> Any:
    """Return the beta that belongs to alpha and gamma: gamma = beta - (1 - alpha)/(2 - alpha).

    Parameters
    ----------
    alpha : number or array
        The order.
    gamma : number or array
        beta - (1 - alpha)/(2 - alpha).

    Returns
    -------
    number or array
        beta.

    Raises
    ------
    ValueError
        If `alpha` or `gamma` is no number and no array of numbers.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.order.beta_of(0.5, -0.25))
    0.08333333333333331
    """
    alpha, gamma = _numbers("alpha", alpha), _numbers("gamma", gamma)
    with standard_promotion():
        return gamma + (1 - alpha) / (2 - alpha)


def _numbers(field: str, value: Any) -> Any:
    """Return Python's floats and arrays as they are, other numbers as an array."""
    if isinstance(value, int | float | jax.Array | np.ndarray):
        return value
    return checks.floating("beta_of", field, value, "be a number or an array of numbers")


def alpha_and_beta(
    owner: str, alpha: ArrayInput, beta: ArrayInput | None, gamma: ArrayInput | None
) -> tuple[Any, Any, MessageText]:
    """Return alpha and beta, checked, and which of beta and gamma the user gave."""
    alpha = checks.in_open_unit_interval(owner, "alpha", alpha)
    checks.exactly_one_of(owner, beta, gamma)
    given = MessageText("gamma" if beta is None else "beta")
    value = checks.array(owner, given, gamma if beta is None else beta, "be a number")
    if value.size == 0:
        checks.fail(owner, given, "hold at least one number", "nothing")
    checks.broadcastable(owner, given, value, "alpha", alpha)
    return alpha, (beta_of(alpha, value) if beta is None else own(value)), given


def _argument_of(rule: Any, name: str) -> Any:
    """Return alpha, and that of beta and gamma which the user gave; None for the other."""
    if name in ("beta", "gamma"):
        if rule.given != name:
            return None
        return rule.beta if name == "beta" or is_open(rule.beta) else _gamma_of(rule)
    return getattr(rule, name)


def _gamma_of(rule: Any) -> Any:
    """Return the inverse of `beta_of`, without the rounding error of both."""
    with standard_promotion():
        gamma = rule.beta - (1 - rule.alpha) / (2 - rule.alpha)
        return gamma.round(np.finfo(gamma.dtype).precision)


class Order(Rule):
    """Base class of rules for alpha_k and beta_k; a subclass must define `numbers`.

    A rule with few different numbers overrides `prepare` and `at` to compute its quadrature rules
    once for a run.

    Attributes
    ----------
    vanishes : bool
        Whether gamma tends to 0 along a run, so that a method with a fixed terminal minimises f. A
        class attribute, False by default.

    Examples
    --------
    >>> import cfgd
    >>> class Harmonic(cfgd.order.Order):  # alpha_k from 1/2 up to 1
    ...     def numbers(self, k):
    ...         return 1 - 0.5 / (k + 1), 0.0
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> method = cfgd.Fractional(cfgd.terminal.Lagged(1), Harmonic(), cfgd.ExactStep())
    >>> print(cfgd.minimize(f, [0.0, 0.0], method).x.round(6))
    [-1.2  2.6]
    """

    vanishes: ClassVar[bool] = False

    _internal: ClassVar[tuple[str, ...]] = ("at", "last_iteration", "numbers", "prepare")

    @abc.abstractmethod
    def numbers(self, k: Count) -> tuple[Numbers, Numbers]:
        """Return alpha_k and beta_k."""

    def prepare(self, nodes: int) -> Any:
        """Return what is computed once for a run and passed to `at`."""
        return None

    def at(self, prepared: Any, k: Count, nodes: int, dtype: DType) -> CaputoMemory:
        """Return the quadrature rule, beta and gamma of iteration k."""
        alpha, beta = self.numbers(k)
        return memory_of(jnp.asarray(alpha, dtype), jnp.asarray(beta, dtype), nodes)

    @property
    def last_iteration(self) -> int | None:
        """The iteration at which a run ends because of the rule; None if there is none."""
        return None


class _BetaOrGamma(Order):
    """A rule whose user gives beta, or gamma instead; messages name the one that was given."""

    given: MessageText = eqx.field(static=True)  # "beta" or "gamma"

    _internal: ClassVar[tuple[str, ...]] = ("given",)

    def name_of(self, field: str) -> str:
        return str(self.given) if field == "beta" else field

    def _argument(self, name: str) -> Any:
        return _argument_of(self, name)


class Constant(_BetaOrGamma):
    """The same alpha and beta in all iterations; gamma="best" lets the method choose gamma.

    Parameters
    ----------
    alpha : number or array, default 0.5
        The order, in (0, 1): one number, or one for each coordinate.
    beta : number or array, optional
        The smoothing: one number, or one for each coordinate. Give either `beta` or `gamma`.
    gamma : number, array or "best", optional
        beta - (1 - alpha)/(2 - alpha), in place of `beta`.
    owner : str, default "Constant"
        The name of the caller in messages.

    Raises
    ------
    ValueError
        If neither or both of `beta` and `gamma` are given, `alpha` is not in (0, 1), or a number is
        not finite.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.order.Constant(0.5, beta=0.25).beta)
    0.25
    """

    alpha: Any = number()
    beta: Any = number()

    def __init__(
        self, alpha: Any = 0.5, *, beta: Any = None, gamma: Any = None, owner: str = "Constant"
    ) -> None:
        if is_open(gamma) and beta is None:
            self.alpha, self.beta = checks.in_open_unit_interval(owner, "alpha", alpha), gamma
            self.given = MessageText("gamma")
        else:
            self.alpha, self.beta, self.given = alpha_and_beta(owner, alpha, beta, gamma)

    @property
    def is_open(self) -> bool:
        return is_open(self.beta)

    def numbers(self, k: Count) -> tuple[Numbers, Numbers]:
        return self.alpha, self.beta

    def prepare(self, nodes: int) -> CaputoMemory:
        return memory_of(self.alpha, self.beta, nodes)

    def at(self, prepared: CaputoMemory, k: Count, nodes: int, dtype: DType) -> CaputoMemory:
        return prepared


class Stage(ListsPublicNames, ShowsCall, eqx.Module):
    """A number of iterations with one order and smoothing, for `AdaptiveOrder`.

    Parameters
    ----------
    iterations : int
        The number of iterations, at least 1.
    alpha : number or array, default 0.5
        The order, in (0, 1): one number, or one for each coordinate.
    beta : number or array, optional
        The smoothing: one number, or one for each coordinate. Give either `beta` or `gamma`.
    gamma : number or array, optional
        beta - (1 - alpha)/(2 - alpha), in place of `beta`.

    Raises
    ------
    ValueError
        If neither or both of `beta` and `gamma` are given, `alpha` is not in (0, 1), a number is
        not finite, or `iterations` is not an integer of at least 1.

    Examples
    --------
    >>> import cfgd
    >>> stage = cfgd.Stage(100, 0.5, beta=0.25)
    >>> print(stage.iterations, stage.alpha, stage.beta)
    100 0.5 0.25
    """

    iterations: int = eqx.field(static=True)
    alpha: Any
    beta: Any
    given: MessageText = eqx.field(static=True)

    _internal: ClassVar[tuple[str, ...]] = ("given",)

    def __init__(
        self, iterations: int, alpha: Any = 0.5, *, beta: Any = None, gamma: Any = None
    ) -> None:
        self.iterations = checks.integer("Stage", "iterations", iterations)
        self.alpha, self.beta, self.given = alpha_and_beta("Stage", alpha, beta, gamma)

    def _argument(self, name: str) -> Any:
        return _argument_of(self, name)


class Stages(_BetaOrGamma):
    """One alpha and beta for the iterations of each stage (section 3.3 of the paper).

    Parameters
    ----------
    stages : list of Stage
        The stages in their order.
    owner : str, default "Stages"
        The name of the caller in messages.

    Attributes
    ----------
    ends : array of int
        The iteration at which each stage ends: the sums of the iterations so far.
    alpha, beta : array
        The numbers of the stages, along the first axis.
    iterations : int
        The number of iterations of all stages.

    Raises
    ------
    ValueError
        If `stages` is no list of `Stage`, is empty, has numbers of different shapes, or has more
        than 2^31 - 1 iterations in all.

    Examples
    --------
    >>> import cfgd
    >>> stages = cfgd.order.Stages([cfgd.Stage(10, beta=1.0), cfgd.Stage(20, beta=0.5)])
    >>> print(stages.ends, stages.beta)
    [10 30] [1.  0.5]
    """

    iterations: int = eqx.field(static=True)
    ends: Any = table()
    alpha: Any = table()
    beta: Any = table()
    vanishes: ClassVar[bool] = True

    def __init__(self, stages: Sequence[Stage], owner: str = "Stages") -> None:
        several = isinstance(stages, Sequence) and len(stages) > 0
        if not several or not all(isinstance(stage, Stage) for stage in stages):
            checks.fail(owner, "stages", "be a list of Stage(iterations, ...)", stages)
        shapes = {stage.beta.shape for stage in stages} - {()}
        if len(shapes) > 1:
            got = "shapes " + " and ".join(str(shape) for shape in sorted(shapes))
            checks.fail(owner, "stages", "have numbers of one shape", got)
        ends = np.cumsum([stage.iterations for stage in stages])
        if ends[-1] > checks.MAX_INT32:
            wanted = f"have at most {checks.MAX_INT32} iterations together"
            checks.fail(owner, "stages", wanted, ends[-1])
        self.ends = ends.astype(np.int32)
        self.alpha = np.stack(np.broadcast_arrays(*[stage.alpha for stage in stages]))
        self.beta = np.stack(np.broadcast_arrays(*[stage.beta for stage in stages]))
        self.given, self.iterations = stages[0].given, int(ends[-1])

    def _argument(self, name: str) -> Any:
        if name != "stages":
            return getattr(self, name)
        lengths = np.diff(self.ends, prepend=0).tolist()
        values = _argument_of(self, str(self.given))
        return [
            Stage(length, alpha, **{str(self.given): value})
            for length, alpha, value in zip(lengths, self.alpha, values, strict=True)
        ]

    def owner(self, preset: str | None) -> str:
        return "Stage"

    @property
    def last_iteration(self) -> int:
        return self.iterations

    def numbers(self, k: Count) -> tuple[Numbers, Numbers]:
        stage = self._stage(k)
        return self.alpha[stage], self.beta[stage]

    def prepare(self, nodes: int) -> CaputoMemory:
        return jax.vmap(lambda alpha, beta: memory_of(alpha, beta, nodes))(
            jnp.asarray(self.alpha), jnp.asarray(self.beta)
        )

    def at(self, prepared: CaputoMemory, k: Count, nodes: int, dtype: DType) -> CaputoMemory:
        return jax.tree.map(lambda table: table[self._stage(k)], prepared)

    def _stage(self, k: Count) -> Count:
        return jnp.clip(jnp.searchsorted(self.ends, k, side="right"), 0, len(self.ends) - 1)
