"""Arithmetic of columns as text, such as `log(a) + 2 * b`: parsed and evaluated without running it.

The text may come from a model file of a stranger, so that nothing is passed to `eval`: the syntax
tree may hold column names, numbers, arithmetic, comparisons and the functions below, and everything
else is refused by name.
"""

from __future__ import annotations

import ast
import dataclasses
import keyword
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "I": lambda x: x,
}
STATEFUL = ("center", "scale")  # which use statistics of the training rows
WHOLE = ("poly", "C")  # which make several columns, so that they are a factor by themselves
FUNCTIONS = (*ELEMENTWISE, *STATEFUL, *WHOLE)
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
MAX_LENGTH = 1000  # characters of an expression, so that its tree is not deep
MAX_DEGREE = 20  # of poly: the digits of float64 do not suffice for more
LARGEST = 1e140  # squares of such numbers can be added
QUOTED = re.compile(r"`([^`]+)`")
# Names in backticks become identifiers that hold the name in hexadecimal digits.
PLACEHOLDER = re.compile(r"\bquoted_((?:[0-9a-f]{2})+)\b")
States: TypeAlias = Mapping[str, Mapping[str, Any]]  # by the text of the call


@dataclasses.dataclass(frozen=True)
class Expression:
    """A checked expression; `text` has names that are no identifiers in backticks."""

    text: str
    tree: ast.expr

    @property
    def column(self) -> str | None:
        """The name of the column, if the expression is nothing else."""
        return _name(self.tree) if isinstance(self.tree, ast.Name) else None

    @property
    def columns(self) -> list[str]:
        """The names of all columns in it."""
        return [_name(node) for node in _walk(self.tree) if isinstance(node, ast.Name)]

    @property
    def function(self) -> str | None:
        """The name of the outermost function."""
        return _function(self.tree) if isinstance(self.tree, ast.Call) else None

    @property
    def argument(self) -> Expression:
        """The first argument of the outermost function."""
        assert isinstance(self.tree, ast.Call)
        return Expression(_text(self.tree.args[0]), self.tree.args[0])

    @property
    def stateful_calls(self) -> list[Expression]:
        """The calls that need statistics of the training rows, inner ones first."""
        calls = [
            Expression(_text(node), node)
            for node in _walk(self.tree)
            if isinstance(node, ast.Call) and _function(node) in (*STATEFUL, *WHOLE)
        ]
        return calls[::-1]

    @property
    def degree(self) -> int:
        """The degree of poly."""
        return int(_option(self.tree, 1, "degree", 1))

    @property
    def is_raw(self) -> bool:
        """Whether poly gives plain powers."""
        return bool(_option(self.tree, 2, "raw", False))

    @property
    def reference(self) -> Any:
        """The reference level of C, or None if it is not given."""
        assert isinstance(self.tree, ast.Call)
        return _option(self.tree.args[1], 0, "reference", None) if self.tree.args[1:] else None

    def evaluate(self, column: Callable[[str], np.ndarray], states: States) -> np.ndarray:
        """Return the values; `column` gives those of a column of numbers."""
        with np.errstate(all="ignore"):  # the caller refuses numbers that are not finite
            return np.asarray(_evaluate(self.tree, column, states), float)


def quote(name: str) -> str:
    """Return the name of a column as an expression has it.

    >>> quote("age"), quote("my age"), quote("class")
    ('age', '`my age`', '`class`')
    """
    is_plain = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
    return name if is_plain and not PLACEHOLDER.fullmatch(name) else f"`{name}`"


def parse(text: str) -> Expression:
    """Parse and check an expression; raise a `ValueError` that names what is not allowed.

    >>> parse("I(`my age` / 10 + log(b))").columns
    ['my age', 'b']
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression must have at most {MAX_LENGTH} characters")
    replaced = QUOTED.sub(lambda match: f"quoted_{match[1].encode().hex()}", text.strip())
    try:
        tree = ast.parse(replaced, mode="eval").body
        _check(tree, is_factor=True)
        return Expression(_text(tree), tree)
    except (SyntaxError, MemoryError, RecursionError, UnicodeError):
        raise ValueError(f"{text[:60]!r} cannot be read") from None


def _walk(node: ast.AST) -> Iterator[ast.expr]:
    """Iterate over the values of a tree, outer ones first; not over the names of functions."""
    if isinstance(node, ast.expr):
        yield node
    for field, child in ast.iter_fields(node):
        if field in ("func", "keywords"):
            continue
        is_contrast = isinstance(node, ast.Call) and _function(node) == "C" and field == "args"
        children = child if isinstance(child, list) else [child]
        for one in children[:1] if is_contrast else children:
            if isinstance(one, ast.AST):
                yield from _walk(one)


def _check(node: ast.AST, is_factor: bool = False) -> None:
    """Raise a `ValueError` for anything but columns, numbers, arithmetic and known functions."""
    if isinstance(node, ast.Name):
        _name(node)
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
            raise ValueError(f"{str(value)[:60]!r} is no number that can be used")
    elif isinstance(node, ast.BinOp | ast.UnaryOp):
        if type(node.op) not in OPERATORS:
            raise ValueError(f"the operator of {_text(node)!r} is not known: use + - * / **")
        operands = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        for operand in operands:
            _check(operand)
    elif isinstance(node, ast.Compare):
        if len(node.ops) > 1 or type(node.ops[0]) not in OPERATORS:
            raise ValueError(f"the comparison {_text(node)!r} is not known: use < <= > >= == !=")
        for operand in (node.left, node.comparators[0]):
            _check(operand)
    elif isinstance(node, ast.Call):
        _check_call(node, is_factor)
    elif isinstance(node, ast.Attribute):
        text = _text(node)
        raise ValueError(f"{text!r} is not known: write `{text}` if it is the name of a column")
    else:
        raise ValueError(f"{_text(node)[:60]!r} is no arithmetic of columns")


def _check_call(node: ast.Call, is_factor: bool) -> None:
    name, text = _function(node), _text(node)
    if name not in FUNCTIONS:
        known = ", ".join(FUNCTIONS[:-1])
        raise ValueError(f"the function {name!r} is not known: use {known} or {FUNCTIONS[-1]}")
    if not node.args:
        raise ValueError(f"{text!r} needs a column")
    if name in WHOLE and not is_factor:
        raise ValueError(f"{text!r} must be a factor by itself, not a part of an expression")
    if name == "poly":
        degree = _option(node, 1, "degree", 1)
        if type(degree) is not int or not 1 <= degree <= MAX_DEGREE:
            raise ValueError(f"the degree of {text!r} must be a whole number to {MAX_DEGREE}")
        _option(node, 2, "raw", False)
    elif name == "C":
        if not isinstance(node.args[0], ast.Name):
            raise ValueError(f"{text!r} must be of a column")
        _check_contrast(node)
    elif len(node.args) > 1 or node.keywords:
        raise ValueError(f"{text!r} must have one argument")
    _check(node.args[0])


def _check_contrast(node: ast.Call) -> None:
    """Raise a `ValueError` for contrasts of C other than those to a reference level."""
    if node.keywords or len(node.args) > 2:
        raise ValueError(f"{_text(node)!r} must be C(column) or C(column, Treatment('level'))")
    for contrast in node.args[1:]:
        name = ast.unparse(contrast.func) if isinstance(contrast, ast.Call) else "that"
        if name not in ("Treatment", "contr.treatment"):
            raise ValueError(f"the contrast {name!r} of {_text(node)!r} is not known: Treatment is")
        _option(contrast, 0, "reference", None)


def _option(node: ast.AST, place: int, name: str, default: Any) -> Any:
    """Return an argument of a call that is a number, a text or a truth value."""
    assert isinstance(node, ast.Call)
    given = {word.arg: word.value for word in node.keywords}
    value = node.args[place] if len(node.args) > place else given.get(name)
    if value is None:
        return default
    if not isinstance(value, ast.Constant) or not isinstance(value.value, int | float | str):
        raise ValueError(f"{name} of {_text(node)!r} must be a number or a text")
    return value.value


def _function(node: ast.Call) -> str:
    """Return the name of the function that is called; NumPy's have the prefix np. perhaps."""
    return ast.unparse(node.func).removeprefix("np.")


def _name(node: ast.Name) -> str:
    match = PLACEHOLDER.fullmatch(node.id)
    return bytes.fromhex(match[1]).decode() if match else node.id


def _text(node: ast.AST) -> str:
    """Return a tree as text, with names that are no identifiers in backticks."""
    return PLACEHOLDER.sub(lambda m: f"`{bytes.fromhex(m[1]).decode()}`", ast.unparse(node))


def _evaluate(node: ast.AST, column: Callable[[str], np.ndarray], states: States) -> Any:
    if isinstance(node, ast.Name):
        return column(_name(node))
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return np.float64(node.value)  # not a Python integer, whose powers have no limit
    if isinstance(node, ast.BinOp):
        left, right = (_evaluate(side, column, states) for side in (node.left, node.right))
        return OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](_evaluate(node.operand, column, states))
    if isinstance(node, ast.Compare):
        left, right = (_evaluate(side, column, states) for side in (node.left, node.comparators[0]))
        return np.asarray(OPERATORS[type(node.ops[0])](left, right), float)
    assert isinstance(node, ast.Call)
    value, name = _evaluate(node.args[0], column, states), _function(node)
    if name in ELEMENTWISE:
        return ELEMENTWISE[name](value)
    state = states[_text(node)]
    return (value - state["mean"]) / (state["deviation"] if name == "scale" else 1.0)
