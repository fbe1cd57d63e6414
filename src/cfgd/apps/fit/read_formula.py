"""Read a formula with formulaic's parser: the target, and the terms as factors."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import Any

from cfgd._core.extras import import_extra
from cfgd._core.files import first_line
from cfgd.apps.fit.columns import Column
from cfgd.apps.fit.expression import Expression, States, parse, quote
from cfgd.apps.fit.formula import Formula, Product, column_names, is_categorical

MAX_FACTORS = 8  # of a term: those with levels are combined in 2^8 ways
MAX_PRODUCTS = 100_000  # columns of the design matrix
COLOURS = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")  # with which formulaic marks the place of an error


@dataclasses.dataclass(frozen=True)
class ParsedFormula:
    """The target, empty if there is none, the factors, and the indices of the factors of terms."""

    text: str
    target: str
    factors: tuple[Expression, ...]
    terms: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that the factors use, each once."""
        return list(dict.fromkeys(name for of in self.factors for name in of.columns))

    def formula(self, columns: Sequence[Column], states: States) -> Formula:
        """Return the formula with its states, as products of columns of factors.

        Factors with levels have a column for each level but the reference where the others, the
        intercept included, add up to it, as in R and patsy: see `_codings`.
        """
        names = [column_names(factor, columns, states) for factor in self.factors]
        has_levels = [is_categorical(factor, columns) for factor in self.factors]
        products: list[Product] = []
        for piece in _codings(self.terms, has_levels):
            choices = [
                range(1 if has_levels[k] and not is_full else 0, len(names[k]))
                for k, is_full in piece
            ]
            for chosen in itertools.product(*choices):
                parts = tuple((k, c) for (k, _), c in zip(piece, chosen, strict=True))
                products.append(Product(":".join(names[k][c] for k, c in parts), parts))
                if len(products) > MAX_PRODUCTS:
                    raise ValueError(f"--formula makes more than {MAX_PRODUCTS:,} columns.")
        return Formula(self.text, self.factors, states, tuple(products))


def read_formula(text: str, names: Sequence[str]) -> ParsedFormula:
    """Parse a formula; `names` are the columns that `.` stands for, besides the target.

    Raises
    ------
    ValueError
        If it has a function that is not known, no intercept, or a target that is no column.
    """
    parser = import_extra("formulaic.parser", "`cfgd fit --formula`", "formula")
    errors = import_extra("formulaic.errors", "`cfgd fit --formula`", "formula")
    try:
        context = {"__formulaic_variables_available__": list(names)}
        parsed = parser.DefaultFormulaParser().get_terms(text, context=context)
    except (errors.FormulaicError, SyntaxError, RecursionError) as error:
        cause = COLOURS.sub("", first_line(str(error))).rstrip(".")
        raise ValueError(f"--formula {text!r} cannot be read: {cause}.") from None
    except Exception as error:  # formulaic raises others for some texts, such as an AttributeError
        raise ValueError(f"--formula {text!r} cannot be read: {first_line(str(error))}.") from None
    terms = getattr(parsed, "rhs", getattr(parsed, "root", None))
    if terms is None or isinstance(terms, tuple):
        raise ValueError(f"--formula {text!r} must be one formula, without |.")
    return _parsed(text, _target(text, getattr(parsed, "lhs", None)), list(terms))


def _target(text: str, terms: Any) -> str:
    """Return the name of the column on the left-hand side, empty if there is nothing."""
    if terms is None:
        return ""
    (factors, *others) = [list(term.factors) for term in terms]
    if others or len(factors) != 1 or factors[0].eval_method.value != "lookup":
        raise ValueError(
            f"--formula {text!r} must have the name of a column before ~: put other targets into "
            "a column of the table."
        )
    return str(factors[0].expr)


def _parsed(text: str, target: str, terms: list[Any]) -> ParsedFormula:
    """Return terms of formulaic with checked factors, those of fewer factors first."""
    factors: dict[str, Expression] = {}
    found: list[tuple[int, ...]] = []
    has_intercept = False
    for term in sorted(terms, key=lambda term: len(term.factors)):
        methods = {factor.eval_method.value for factor in term.factors}
        if methods == {"literal"} and str(term) == "1":
            has_intercept = True
            continue
        if "literal" in methods:
            raise ValueError(f"--formula {text!r}: the term {str(term)!r} must be without numbers.")
        if len(term.factors) > MAX_FACTORS:
            raise ValueError(
                f"--formula {text!r}: {str(term)!r} has more than {MAX_FACTORS} factors."
            )
        indices = []
        for factor in term.factors:
            is_column = factor.eval_method.value == "lookup"
            try:
                checked = parse(quote(factor.expr) if is_column else factor.expr)
            except ValueError as error:
                raise ValueError(f"--formula {text!r}: {error}.") from None
            if target in checked.columns or not checked.columns:
                wanted = "not have the target in it" if checked.columns else "have a column"
                raise ValueError(f"--formula {text!r}: {checked.text!r} must {wanted}.")
            factors.setdefault(checked.text, checked)
            indices.append(list(factors).index(checked.text))
        found.append(tuple(indices))
    if not has_intercept:
        raise ValueError(
            f"--formula {text!r}: the model always has an intercept: leave out 0 or -1."
        )
    if not found:
        raise ValueError(f"--formula {text!r} must have a column after ~.")
    return ParsedFormula(text, target, tuple(factors.values()), tuple(found))


def _codings(
    terms: Sequence[tuple[int, ...]], has_levels: Sequence[bool]
) -> list[list[tuple[int, bool]]]:
    """Return the pieces of all terms: factors, each with whether it has its reference level, too.

    A term of factors with levels spans its own columns and those of all terms with fewer of these
    factors. What earlier terms (the intercept first) span already is left out; what remains is put
    together again, as patsy does: the pieces {} and {a} are {a with all of its levels}.
    """
    spanned: dict[frozenset[int], set[frozenset[int]]] = {frozenset(): {frozenset()}}
    result: list[list[tuple[int, bool]]] = []
    for term in terms:
        levels = [k for k in term if has_levels[k]]
        known = spanned.setdefault(frozenset(term) - set(levels), set())
        subsets = [
            frozenset(subset)
            for size in range(len(levels) + 1)
            for subset in itertools.combinations(levels, size)
        ]
        pieces = [dict.fromkeys(subset, False) for subset in subsets if subset not in known]
        known.update(subsets)
        while (pair := _mergeable(pieces)) is not None:
            short, long = pair
            merged = {k: (k not in short) or short[k] for k in long}
            pieces = [merged if piece is short else piece for piece in pieces if piece is not long]
        for piece in pieces:
            result.append(
                [(k, piece.get(k, False)) for k in term if not has_levels[k] or k in piece]
            )
    return result


def _mergeable(
    pieces: list[dict[int, bool]],
) -> tuple[dict[int, bool], dict[int, bool]] | None:
    """Return two pieces of which the second has one more factor, and all else is the same."""
    for short, long in itertools.permutations(pieces, 2):
        extra = long.keys() - short.keys()
        is_larger = len(extra) == 1 and len(long) == len(short) + 1
        if is_larger and long == short | dict.fromkeys(extra, False):
            return short, long
    return None
