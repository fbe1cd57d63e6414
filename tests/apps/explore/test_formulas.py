"""Formulas of the page are parsed and differentiated as mpmath does; others are errors."""

import mpmath
import numpy as np
import pytest

from browser import explorer

# as typed on the page, and in Python
WRITTEN = {
    "10x^2 + y^2": "10*x**2 + y**2",
    "2(x + 1)(y - 1)": "2*(x + 1)*(y - 1)",
    "-x^2 + y": "-(x**2) + y",
    "2^-x + y^2": "2**(-x) + y**2",
    "x^2^3 + y": "x**8 + y",
    "x − y² · 3 × x³": "x - y**2*3*x**3",
    "1/2x + y": "x/2 + y",
    "x/y/2": "x/(2*y)",
    "x - y - 1": "(x - y) - 1",
    "3e-2x + .5y + 2.": "0.03*x + 0.5*y + 2",
    "x**2 + y**3": "x**2 + y**3",
    "2 e x + pi y": "2*e*x + pi*y",
    "sin(x)cos(y) + tan(x/4)": "sin(x)*cos(y) + tan(x/4)",
    "exp(-x^2) * log(1 + y^2)": "exp(-x**2)*log(1 + y**2)",
    "ln(2 + x) sqrt(3 + y)": "log(2 + x)*sqrt(3 + y)",
    "sinh(x) - cosh(y) + tanh(x y)": "sinh(x) - cosh(y) + tanh(x*y)",
    "asin(x/4) + acos(y/4) + atan(x*y)": "asin(x/4) + acos(y/4) + atan(x*y)",
    "(2 + x)^(y/2)": "(2 + x)**(y/2)",
    "(3 + x)^1.5 + (3 + y)^-2.5": "(3 + x)**1.5 + (3 + y)**-2.5",
    "x^-2 + y^0 + x^1": "x**-2 + 1 + x",
    "-(-(+x)) + --y": "x + y",
    "abs(x) + abs(y - 3)": "abs(x) + abs(y - 3)",
    "(((((x)))))/((y))": "x/y",
    "1e3(x - 1)^4 / (1 + y^4)": "1000*(x - 1)**4/(1 + y**4)",
}
NAMES = {
    name: getattr(mpmath, name)
    for name in (
        *("sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "exp", "log", "sqrt"),
    )
} | {"abs": abs, "pi": mpmath.pi, "e": mpmath.e}


def truth(python, x, v):
    """Return value and two derivatives along x + t v, by differences in forty digits."""

    def f(t):
        at = {"x": mpmath.mpf(x[0]) + t * v[0], "y": mpmath.mpf(x[1]) + t * v[1]}
        return eval(python, {"__builtins__": {}}, NAMES | at)

    with mpmath.workdps(40):
        return [float(mpmath.diff(f, 0, n, h=mpmath.mpf(10) ** -12)) for n in range(3)]


def random_formula(random, depth):
    """Return a random formula for both parsers, defined for all numbers near one."""
    if depth == 0:
        return str(random.choice(["x", "y", "x", "y", round(random.uniform(0.1, 3), 2)]))
    left, right = (random_formula(random, depth - 1) for _ in range(2))
    forms = ["({a} + {b})", "({a} - {b})", "{a} * {b}", "{a} / (1 + {b}^2)", "-{a}", "({a})^2"]
    forms += ["sin({a})", "tanh({a} - {b})", "exp(-({a})^2)", "log(2 + ({a})^2)", "({a} + {b})^3"]
    forms += ["sqrt(1 + ({a})^2)", "atan({a})", "(1 + ({a})^2)^(sin({b}))", "(1 + ({b})^2)^-0.5"]
    return str(random.choice(forms)).format(a=left, b=right)


# one worker starts what they share
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("explorer")) as page:
        yield page.open()


def seen(page, wanted):
    script = "return arguments[0].map(([f, x, v]) => explorer.along(f, x, v))"
    return [[one[k] for k in ("value", "slope", "curvature")] for one in page.js(script, wanted)]


def check(page, pairs, points):
    wanted = [(page_text, x, v) for page_text in pairs for x, v in points]
    expected = [truth(python, x, v) for python in pairs.values() for x, v in points]
    for (text, x, v), found, true in zip(wanted, seen(page, wanted), expected, strict=True):
        size = max(1, *np.abs(true))
        np.testing.assert_allclose(
            found, true, rtol=0, atol=1e-12 * size, err_msg=f"{text} {x} {v}"
        )


def test_formulas_agree_with_mpmath(page):
    points = [([0.7, -0.4], [1, 0]), ([1.3, 0.9], [0, 1]), ([-1.1, 0.6], [0.3, -2])]
    check(page, WRITTEN, points)


@pytest.mark.slow
def test_random_formulas_agree_with_mpmath(page):
    random = np.random.default_rng(0)
    texts = [random_formula(random, 1 + i % 4) for i in range(120)]
    pairs = {f"{text} + 0*x": f"{text} + 0*x".replace("^", "**") for text in texts}
    check(page, pairs, [([1.2, 0.8], [0.6, -0.9])])


BAD = {
    "": "Position 1: expected a number, x, y, a function or “(”, found the end.",
    "x +": "Position 4: expected a number, x, y, a function or “(”, found the end.",
    "x + * y": "Position 5: expected a number, x, y, a function or “(”, found “*”.",
    "(x + y": "Position 7: expected “)” for the “(” at position 1, found the end.",
    "x + y)": "Position 6: “)” is not expected here.",
    "sin x": "Position 5: expected “(” after sin, found “x”.",
    "xy": "Position 1: “xy” is unknown; for a product write x*y.",
    "x + foo(y)": "Position 5: “foo” is unknown; the known names are x, y, pi, e and sin,",
    "x $ y": "Position 3: “$” is not allowed in a formula.",
    "x + 🙂": "Position 5: “🙂” is not allowed in a formula.",
    "1e999 x": "Position 1: 1e999 is too large.",
    "3 + 4": "Position 1: the formula has neither x nor y in it.",
    "x, y": "Position 2: “,” is not expected here.",
    "x.constructor": "Position 2: “.” is not allowed in a formula.",
    "constructor(x)": "Position 1: “constructor” is unknown; the known names are",
    "__proto__ + x": "Position 1: “__proto__” is unknown; the known names are",
    "alert(1)+x": "Position 1: “alert” is unknown; the known names are",
    "x=1": "Position 2: “=” is not allowed in a formula.",
    "(" * 200 + "x": "more than 60 nested brackets or signs.",
    "-" * 200 + "x": "more than 60 nested brackets or signs.",
    "x" + "+x" * 300: "Position 501: a formula has at most 500 characters.",
}


def test_invalid_formulas_are_errors(page):
    script = """return arguments[0].map((text) => {
      try { explorer.along(text, [1, 1], [1, 0]); return "read"; }
      catch (error) { return `${error.name}: ${error.message}`; }
    })"""
    for text, said in zip(BAD, page.js(script, list(BAD)), strict=True):
        assert said.startswith("FormulaError: Position "), (text, said)
        assert BAD[text] in said, (text, said)
        assert said.count("\n") == 0


def test_any_text_is_a_function_or_an_error(page):
    random = np.random.default_rng(1)
    signs = [*"xy019.+-*/^(), e", "sin", "exp", "pi", "e", "²"]
    texts = ["".join(random.choice(signs, random.integers(1, 12))) for _ in range(3000)]
    kinds = page.js(
        """return arguments[0].map((text) => {
          try { return typeof explorer.along(text, [1, 1], [1, 0]).value; }
          catch (error) { return error.name; }
        })""",
        texts,
    )
    assert set(kinds) == {"number", "FormulaError"}
    assert 50 < kinds.count("number") < 2900
