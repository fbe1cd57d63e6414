"""The sections of public docstrings agree with the signatures."""

import ast
import importlib
import inspect
import sys
from collections.abc import Mapping

import numpy as np
import pytest
from blocks import DOCS
from test_reference import OPTIONAL, PUBLIC

import cfgd

sys.path.insert(0, str(DOCS))
from extensions.docstring_sections import entries, sections

pytestmark = pytest.mark.every_case

# methods of scipy.optimize.minimize: SciPy passes the options, which they take by **options
OF_SCIPY = {"auto", "adaptive_terminal", "adaptive_order"}


def documented():
    """Return the names on the pages of the reference and their members, with the objects."""
    for page in (DOCS / "reference").glob("*.md"):
        for module, lines in PUBLIC.findall(page.read_text(encoding="utf-8")):
            if module in OPTIONAL:
                continue
            inside = module.removeprefix("cfgd.")
            is_name = inside in cfgd.__all__
            holder = getattr(cfgd, inside) if is_name else importlib.import_module(module)
            for line in filter(str.strip, lines.split("\n")):
                name, _, members = line.partition(":")
                each = getattr(holder, name.strip())
                yield f"{module}.{name.strip()}", each
                for member in members.split():
                    static = inspect.getattr_static(each, member)
                    yield f"{module}.{name}.{member}", getattr(static, "__func__", static)


NAMES = dict(documented())


def signature(each):
    """Return the parameters as they are documented, *args and **kwargs with their asterisks."""
    if not callable(each) or hasattr(each, "__members__"):  # a property, or an enumeration
        return {}
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        stars.get(one.kind, "") + one.name: one
        for one in inspect.signature(each).parameters.values()
        if one.name not in ("self", "cls")
    }


def listed(each):
    """Return the entries of each section of the docstring."""
    found = sections(inspect.getdoc(each))
    return {
        one.title: list(entries(one))
        for one in found
        if one.title in ("Parameters", "Attributes", "Returns", "Raises")
    }


def faults(name, each):
    """Yield what does not agree."""
    lists, wanted = listed(each), signature(each)
    names = [part for one in lists.get("Parameters", []) for part in one.names]
    if "Parameters" not in lists and "Attributes" in lists and inspect.isclass(each):
        attributes = {part for one in lists["Attributes"] for part in one.names}
        internal = set(getattr(each, "_internal", ()))
        yield from (f"{part} has no entry" for part in wanted.keys() - attributes - internal)
        return
    if lists and ">>>" in inspect.getdoc(each) and "\nExamples\n---" not in inspect.getdoc(each):
        yield "the examples have no heading"
    if len(set(names)) < len(names):
        yield "a parameter is documented twice"
    if name.rpartition(".")[2] in OF_SCIPY and "integrations.scipy" in name:
        wanted = {part: wanted.get(part) for part in names}
    yield from (f"{part} has no entry" for part in wanted.keys() - set(names))
    yield from (f"{part} is no parameter" for part in set(names) - wanted.keys())
    for one in lists.get("Parameters", []):
        stars = one.names[0].startswith("*")
        if not (one.kind or stars or " ".join(one.text).startswith("As in ")):
            yield f"{one.names} has no type"
        if not one.text and not stars:
            yield f"{one.names} has no text"
        for part in one.names:
            parameter = wanted.get(part)
            if one.default and parameter is not None and not same(one.default, parameter.default):
                yield f"{part} has the default {parameter.default!r}, not {one.default}"
    for title in ("Returns", "Raises"):
        for one in lists.get(title, []):
            if not one.kind:
                yield f"{title} has an entry without a type"


def same(written, default):
    try:
        return ast.literal_eval(written) == default
    except (ValueError, SyntaxError):
        return written == repr(default)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented_and_no_other(name):
    assert list(faults(name, NAMES[name])) == []


def test_functions_say_what_they_return():
    functions = {
        name: each
        for name, each in NAMES.items()
        if inspect.isfunction(each) and inspect.signature(each).return_annotation != "None"
    }
    assert [name for name, each in functions.items() if "Returns" not in listed(each)] == []


def test_faults_are_found():
    def wrong(a, b=1, *, c=None, **others):
        """One line.

        Parameters
        ----------
        a : int
            One.
        b : int, default 2
            Two.
        d
            Three.
        """

    assert set(faults("wrong", wrong)) == {
        *("c has no entry", "**others has no entry", "d is no parameter", "['d'] has no type"),
        "b has the default 1, not 2",
    }


def instances():
    """Yield one object of each public class that has members."""
    A, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, -4.0])
    X, y = np.eye(3, 2) + 0.5, np.array([0.0, 1.0, 1.0])
    t = np.arange(6.0)
    residuals = cfgd.Residuals(lambda p: p - 1.0)
    external = cfgd.External(lambda x: (x**2).sum(), lambda x: 2 * x)
    constant, lagged = cfgd.order.Constant(0.5, gamma=-0.25), cfgd.terminal.Lagged(2)
    stage = cfgd.Stage(5, gamma=0.1)
    line = np.stack([1 + 2 * t + 0.1 * np.sin(3 * t)])
    yield from (cfgd.Quadratic(A, b), cfgd.LeastSquares(X, y), cfgd.LinearModel(X, y), residuals)
    yield from (cfgd.ResidualTerms(one=residuals), cfgd.ShallowNetwork(t, t, 2), external)
    yield from (cfgd.Smooth(lambda x: x @ x), cfgd.Blocks(X, y), cfgd.Local(cfgd.Quadratic(A, b)))
    yield from (cfgd.Auto(), cfgd.GradientDescent(), cfgd.AdaptiveTerminal(gamma=-0.25))
    yield from (cfgd.NonAdaptive(b, gamma=0.1), cfgd.AdaptiveOrder([stage], b), stage)
    yield from (cfgd.Fractional(lagged, constant, cfgd.ExactStep()), lagged, constant)
    yield from (cfgd.terminal.CurrentPoint(), cfgd.terminal.Fixed(b), cfgd.order.Stages([stage]))
    yield from (cfgd.ExactStep(), cfgd.FixedStep(0.1), cfgd.GridStep(), cfgd.ArmijoStep())
    yield from (cfgd.NetworkStep(), cfgd.Chosen(0.1), cfgd.zoo.Wang2017(0.1))
    yield from (cfgd.Parameter(1.0), cfgd.Parameters(a=1.0), cfgd.Status.converged)
    yield from (cfgd.check_gradient(external, b), cfgd.theory.best_constants(A))
    yield cfgd.minimize(cfgd.Quadratic(A, b), b)
    yield cfgd.curve_fit(lambda t, a, b: a + b * t, t, line[0], [0.0, 1.0])
    yield cfgd.curve_fit_many(lambda t, a, b: a + b * t, t, line, [0.0, 1.0])


def documented_names(cls):
    """Return the parameters, attributes and members that the reference has of a class."""
    members = [name.rpartition(".") for name in NAMES if name.count(".") > 1]
    found = {
        name
        for base in cls.__mro__
        for owner, _, name in members
        if owner.rpartition(".")[2] == base.__name__
    }
    for base in cls.__mro__:
        lists = listed(base) if base.__module__.startswith("cfgd") and base.__doc__ else {}
        entries = [*lists.get("Parameters", ()), *lists.get("Attributes", ())]
        found |= {name.lstrip("*") for entry in entries for name in entry.names}
    for kind in (tuple, Mapping):
        found |= set(dir(kind)) if issubclass(cls, kind) else set()
    return found


def test_tab_completion_shows_documented_names_only():
    undocumented = {}
    for each in instances():
        shown = {name for name in dir(each) if not name.startswith("_")}
        undocumented[type(each).__name__] = sorted(shown - documented_names(type(each)))
    assert {name: left for name, left in undocumented.items() if left} == {}
