"""A weighted sum of several residual terms with names, as in physics-informed networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.linalg import array_namespace
from cfgd._core.pytrees import Structure, checked_pytree, map_parameters
from cfgd._core.types import Column, Data, UserInput, Vector
from cfgd.objectives.base import Objective, Traits, label_of
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.external_residuals import ExternalResiduals
from cfgd.objectives.residuals import Residuals

OWNER = "ResidualTerms"
# Entries that the history of every run has.
RESERVED = ("iteration", "value", "gradient_norm", "drawn")


class TermsAux(NamedTuple):
    """`aux` of an evaluation: the value of each term without its weight, and the terms' `aux`."""

    values: Column
    parts: tuple[Any, ...]


class ResidualTerms(Objective):
    r"""f(x) = sum_k weights[k] f_k(x) for several `Residuals` f_k with names.

    The residuals of f are those of all terms, each times the square root of its weight, so that
    `Auto` can minimise f by the Levenberg-Marquardt method. The history of a run and the progress
    line have the value f_k of each term without its weight, and `Solution.terms` has the values at
    the end.

    f_k is half of a sum of squares. For the mean of n squares, which papers on physics-informed
    networks use, the weight is 2 / n times the weight of the paper. A term of weight 0 is recorded
    and has no influence. New weights, and new samples of the same shapes, do not compile again.

    Parameters
    ----------
    weights : mapping of str to float, optional
        A number of at least 0 for some of the terms, 1 for the others.
    **terms : Residuals
        The terms by name.

    Raises
    ------
    ValueError
        If there is no term, a term is no `Residuals` or has the name of an entry of every history
        ("iteration", "value", "gradient_norm", "drawn"), a weight is negative, or `weights` names
        something else than a term.

    Examples
    --------
    >>> import cfgd, jax, numpy as np
    >>> def u(p, t):
    ...     return p[0] + p[1] * t + p[2] * t**2
    >>> def equation(p, t):  # u' = -u
    ...     return jax.grad(u, 1)(p, t) + u(p, t)
    >>> f = cfgd.ResidualTerms(
    ...     equation=cfgd.Residuals(equation, samples=(np.linspace(0, 0.5, 20),)),
    ...     start=cfgd.Residuals(lambda p: u(p, 0.0) - 1),
    ...     weights={"start": 100.0},
    ... )
    >>> solution = cfgd.minimize(f, [0.0, 0.0, 0.0])
    >>> print(solution.x.round(3), {name: f"{term:.1e}" for name, term in solution.terms.items()})
    [ 1.    -0.984  0.392] {'equation': '6.5e-04', 'start': '8.4e-11'}
    """

    terms: tuple[Residuals, ...]
    weights: tuple[Data, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    _internal: ClassVar[tuple[str, ...]] = (
        "changed",
        "is_squared",
        "names",
        "residuals",
        "terms",
        "vector",
    )

    def __init__(self, *, weights: Mapping[str, UserInput] | None = None, **terms: Any) -> None:
        if not terms:
            checks.fail(OWNER, "**terms", "hold at least one term", "none")
        for name, term in terms.items():
            if not isinstance(term, Residuals) or isinstance(term, ExternalResiduals):
                checks.fail(OWNER, name, "be a cfgd.Residuals", checks.describe(term))
            if name in RESERVED:
                wanted = f"use other names than {', '.join(map(repr, RESERVED))}"
                checks.fail(OWNER, "**terms", wanted, repr(name))
        weights = {} if weights is None else weights
        if not isinstance(weights, Mapping):
            wanted = "be a mapping of names to numbers"
            checks.fail(OWNER, "weights", wanted, checks.describe(weights))
        unknown = [name for name in weights if name not in terms]
        if unknown:
            wanted = f"have names among {', '.join(map(repr, terms))}"
            checks.fail(OWNER, "weights", wanted, repr(unknown[0]))
        self.terms, self.names = tuple(terms.values()), tuple(terms)
        self.weights = tuple(_weight(name, weights.get(name, 1.0)) for name in terms)

    def _argument(self, name: str) -> Any:
        return dict(zip(self.names, self.terms if name == "terms" else self.weights, strict=True))

    # ------------------------------------------------------------------ the terms

    @numpy_in_numpy_out
    def term_values(self, x: PyTree) -> dict[str, Any]:
        """Return the value of each term at x by name, without its weight.

        Parameters
        ----------
        x : array or pytree
            The point.

        Returns
        -------
        dict of str to float
            The values, in the order of the terms.
        """
        values = (term.value(x) for term in self.terms)
        return dict(zip(self.names, values, strict=True))

    def changed(self, terms: Mapping[str, Residuals]) -> ResidualTerms:
        """Return the same sum with some of its terms replaced."""
        new = tuple(
            terms.get(name, term) for name, term in zip(self.names, self.terms, strict=True)
        )
        return eqx.tree_at(lambda f: f.terms, self, new)

    @property
    def is_squared(self) -> bool:
        """Whether every loss is the square, so that f = |r|^2 / 2 of weighted residuals."""
        return all(term.is_squared for term in self.terms)

    def vector(self, x: Vector) -> Column:
        """Return r with f = |r|^2 / 2, where every loss is the square."""
        return self._joined([term._aux(term.vector(x)) for term in self.terms])

    def residuals(self, aux: TermsAux) -> Column:
        """Return `vector` from the `aux` of an evaluation."""
        return self._joined(aux.parts)

    def _joined(self, parts: Sequence[Any]) -> Column:
        xp = array_namespace(parts[0])
        pairs = zip(self.weights, parts, strict=True)
        return xp.concatenate([xp.sqrt(weight) * part for weight, part in pairs])

    # ------------------------------------------------------------------ the contract

    @property
    def traits(self) -> Traits:
        return Traits(
            label_of(self),
            structure="residuals",
            curvature="Gauss-Newton",
            prefers_gradients=any(term.samples is not None for term in self.terms),
        )

    def raveled(self, structure: Structure) -> ResidualTerms:
        pairs = zip(self.names, self.terms, strict=True)
        return self.changed({name: term.raveled(structure) for name, term in pairs})

    def check(self, owner: str, x: Vector) -> None:
        for name, term in zip(self.names, self.terms, strict=True):
            try:
                term.check(owner, x)
            except Exception as error:
                error.add_note(f"This is about the term {name!r} of ResidualTerms.")
                raise

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        tree = map_parameters(jnp.asarray, checked_pytree(OWNER, "x", x))
        pairs = zip(self.weights, self.terms, strict=True)
        return sum(weight * term.value(tree) for weight, term in pairs)

    def evaluate(self, x: Vector) -> Evaluation:
        found = [term.evaluate(x) for term in self.terms]
        pairs = list(zip(self.weights, found, strict=True))
        value = sum(weight * at.value for weight, at in pairs)
        gradient = sum(weight * at.gradient for weight, at in pairs)
        aux = TermsAux(jnp.stack([at.value for at in found]), tuple(at.aux for at in found))
        return Evaluation(x, value, gradient, aux)

    def curvature(self, evaluation: Evaluation) -> Curvature:
        """Return the Gauss-Newton matrix, the weighted sum of those of the terms."""
        parts = [
            term.curvature(evaluation._replace(aux=aux)).scaled(weight)
            for term, weight, aux in zip(
                self.terms, self.weights, evaluation.aux.parts, strict=True
            )
        ]
        sizes = [part.shape for part in parts if part.shape is not None]

        def rows() -> JacobianRows:
            found = [part.rows() for part in parts if part.rows is not None]
            xp = array_namespace(found[0].jacobian)
            return JacobianRows(
                xp.concatenate([each.jacobian for each in found]),
                xp.concatenate([each.residuals for each in found]),
            )

        return Curvature(
            times=lambda v: sum((part.times(v) for part in parts[1:]), parts[0].times(v)),
            diagonal=lambda: sum((part.diagonal() for part in parts[1:]), parts[0].diagonal()),
            shape=(sum(m for m, _ in sizes), sizes[0][1]),
            rows=rows,
            residuals_at=(lambda x: self.residuals(self.evaluate(x).aux))
            if self.is_squared
            else None,
            cost=sum(part.cost for part in parts),
        )


def values_of_terms(evaluation: Evaluation) -> Any:
    """Return the value of each term; a wrapped evaluation is in the `aux` of its wrapper."""
    aux = evaluation.aux
    while isinstance(aux, Evaluation):
        aux = aux.aux
    assert isinstance(aux, TermsAux)
    return aux.values


def _weight(name: str, given: UserInput) -> Data:
    field, wanted = f"weights[{name!r}]", "be a number of at least 0"
    weight = checks.number(OWNER, field, given, wanted, lambda v: v >= 0)
    if weight.ndim != 0:
        checks.fail(OWNER, field, "be one number", f"shape {weight.shape}")
    return weight
