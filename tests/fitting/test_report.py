"""Reports of fits: numbers with errors, and what is said in each style."""

import math
import re

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import cfgd
from cfgd.fitting.digits import exact, plain, with_error

# written by hand: value, error, text
WRITTEN = [
    (1.2345, 0.056, "1.234(56)"),
    (1.2355, 0.056, "1.236(56)"),
    (1.2345, 0.0099, "1.2345(99)"),
    (1.2345, 0.010, "1.234(10)"),
    (1.2345, 0.00996, "1.234(10)"),  # an error that is rounded up to a power of ten
    (1.2345, 0.0995, "1.23(10)"),
    (-3.0, 0.04, "-3.000(40)"),
    (0.0, 0.01, "0.000(10)"),
    (-1e-5, 0.01, "0.000(10)"),
    (1234.5, 5.6, "1234.5(5.6)"),
    (5.0, 1.0, "5.0(1.0)"),
    (1234.5, 56.7, "1234(57)"),
    (1234567.0, 12.0, "1234567(12)"),
    (12345.0, 678.0, "1.234(68)e+04"),
    (12345.0, 99.6, "1.234(10)e+04"),
    (0.001, 5600.0, "0.0(5.6)e+03"),
    (3.0, 250.0, "0.0(2.5)e+02"),
    (1.2345e-5, 1e-7, "1.234(10)e-05"),
    (1.2345e-4, 1e-6, "0.0001234(10)"),
    (6.02214e23, 5.1e18, "6.022140(51)e+23"),
    (2.0, math.inf, "2(inf)"),
    (1.23456789e-9, math.inf, "1.23457(inf)e-09"),
    (2.5, math.nan, "2.5"),
    (math.nan, 1.0, "nan"),
    (-math.inf, math.nan, "-inf"),
    (2.5, 0.0, "2.5(0)"),
    (1e20, 0.5, "1(0)e+20"),  # far below the rounding of the value
]


@pytest.mark.every_case
@pytest.mark.parametrize(("value", "error", "text"), WRITTEN)
def test_a_number_with_its_error(value, error, text):
    assert with_error(value, error) == text
    assert with_error(np.float64(value), np.float64(error)) == text


def test_exponents_in_each_style():
    assert with_error(12345.0, 678.0, "markdown") == "1.234(68)×10⁴"
    assert with_error(1.2345e-15, 1e-17, "markdown") == "1.234(10)×10⁻¹⁵"
    assert with_error(12345.0, 678.0, "latex") == r"$1.234(68) \times 10^{4}$"
    assert with_error(2.0, math.inf, "latex") == r"$2(\infty)$"
    assert plain(1.5e-10) == "1.5e-10"
    assert plain(-math.inf, "latex") == r"$-\infty$"
    assert exact(299792458.0) == "299792458"
    assert exact(0.1) == "0.1"


def test_random_numbers_mean_what_they_say():
    """What is printed is read again: error to two digits, value to the same place."""
    random = np.random.default_rng(0)
    for _ in range(2000):
        value = float(random.normal() * 10.0 ** random.integers(-9, 9))
        error = float(abs(random.normal()) * 10.0 ** random.integers(-9, 9))
        if error < 1e-13 * abs(value):
            continue
        text = with_error(value, error)
        digits, inside, power = re.fullmatch(r"(-?[\d.]+)\(([\d.]+)\)(e[+-]\d+)?", text).groups()
        unit = 10.0 ** (-len(digits.partition(".")[2]) + int((power or "e0")[1:]))
        assert abs(float(digits + (power or "")) - value) <= 0.5001 * unit
        read = float(inside) * (unit if "." not in inside else 10.0 ** int((power or "e0")[1:]))
        assert abs(read - error) <= 0.5001 * unit
        assert 9.999 < read / unit < 99.001  # two digits


T = np.linspace(0, 4, 9)
Y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


def fitted(p0=(1.0, 1.0, 0.0), **options):
    return cfgd.curve_fit(decay, T, Y, p0 if isinstance(p0, dict) else list(p0), **options)


def test_a_report_in_text():
    expected = """\
Parameters
  size  2.477(27)
  rate  0.784(23)
  rest  0.460(24)

Correlations (sizes below 0.1 are left out)
  rate, rest  +0.875
  size, rest  -0.639
  size, rate  -0.349

Quality of the fit
  points              9
  free parameters     3
  degrees of freedom  6
  chi-square          0.0032083
  reduced chi-square  0.000534716
  AIC                 -65.4532
  BIC                 -64.8615
  R^2                 0.99938

1.234(56) means the value 1.234 with the standard error 0.056. The standard errors are scaled with \
the standard deviation 0.0231239 of the residuals (absolute_sigma=False)."""
    head, _, rest = fitted().report().partition("\n\n")
    assert head.startswith("Converged: ")
    assert re.search(r", \d iterations\.$", head)
    assert rest == expected


def test_the_numbers_of_a_report_by_their_formulas():
    """The report above is right: errors by SciPy, AIC, BIC and R^2 by their definitions."""

    def model(t, size, rate, rest):
        return size * np.exp(-rate * t) + rest

    p, covariance = scipy.optimize.curve_fit(model, T, Y, [1, 1, 0], xtol=1e-14, ftol=1e-14)
    errors = np.sqrt(np.diag(covariance))
    assert [f"{value:.3f}" for value in p] == ["2.477", "0.784", "0.460"]
    assert [f"{error:.3f}" for error in errors] == ["0.027", "0.023", "0.024"]
    assert f"{covariance[1, 2] / errors[1] / errors[2]:+.3f}" == "+0.875"
    chi_square = np.sum((model(T, *p) - Y) ** 2)
    assert f"{chi_square:.6g}" == "0.0032083"
    assert f"{9 * np.log(chi_square / 9) + 2 * 3:.6g}" == "-65.4532"
    assert f"{9 * np.log(chi_square / 9) + np.log(9) * 3:.6g}" == "-64.8615"
    assert f"{1 - chi_square / np.sum((Y - Y.mean()) ** 2):.6g}" == "0.99938"


def test_bounds_fixed_and_tied_are_marked():
    fit = cfgd.curve_fit(
        lambda t, size, rate, rest, shift, twice: decay(t, size, rate, rest) + shift + 0 * twice,
        T,
        Y,
        [1.0, 1.0, 0.0, 0.1, 1.0],
        bounds={"size": (0, 10), "rest": (0.5, None)},
        fixed=["shift"],
        tied={"twice": lambda p: 2 * p["rate"]},
    )
    lines = fit.report().partition("Parameters\n")[2].splitlines()[:5]
    assert lines == [
        "  size   2.371(57)  [0, 10]",  # as SciPy without rest
        "  rate   0.919(39)",
        "  rest   0.5        [0.5, inf]  at its lower bound",
        "  shift  0.1                    fixed",
        "  twice  1.838(77)              tied",
    ]
    assert "Warning: rest is at its bound 0.5" in fit.report()
    rows = fit.report("latex").splitlines()
    assert r"\texttt{rest} & $0.5$ & [$0.5$, $\infty$] & at its lower bound \\" in rows
    assert "| `shift` | 0.1 |  | fixed |" in fit.report("markdown").splitlines()


def test_what_the_data_do_not_determine():
    def doubled(t, size, rate, rest, more):
        return decay(t, size, rate, rest) + more

    with pytest.warns(UserWarning, match="rest and more"):
        fit = cfgd.curve_fit(doubled, T, Y, [1.0, 1.0, 0.0, 0.0])
    text = fit.report()
    assert re.search(r"  rest  0\.\d+\(inf\)  not determined by the data", text)
    assert "Warning: The data do not determine rest and more separately" in text
    assert "rate, size" not in text
    assert "rest," not in text.partition("Correlations")[2]
    assert r"(\infty)$" in fit.report("latex")


def test_a_run_that_was_stopped_says_so_once():
    text = fitted(max_iterations=1).report()
    assert text.startswith("Stopped")
    assert " 1 iteration.\n" in text
    assert "Warning: The fit did not converge" not in text


def test_errors_of_a_known_sigma_and_of_a_robust_loss():
    text = fitted(sigma=0.02, absolute_sigma=True).report()
    assert "computed from sigma alone (absolute_sigma=True)" in text
    assert "rate  0.784(20)" in text  # 0.0235 x 0.02 / 0.0231
    robust = fitted(loss="cauchy", scale=0.05).report()
    assert "sandwich" in robust
    assert robust.count("not defined") == 3


def test_names_with_special_characters():
    def model(x, a_b):
        return a_b * x

    x = np.arange(5.0)
    fit = cfgd.curve_fit(model, x, 2 * x + np.array([0.1, -0.1, 0.05, 0.0, -0.1]), [1.0])
    assert r"\texttt{a\_b} & $1." in fit.report("latex")
    assert "| `a_b` | 1." in fit.report("markdown")


def test_a_vector_of_parameters_and_a_guessed_start():
    def line(x, w):
        return w[0] + w[1] * x

    x = np.arange(5.0)
    fit = cfgd.curve_fit(line, x, 1 + 2 * x + np.array([1, -1, 0, 1, -1]) / 10, {"w": np.ones(2)})
    assert re.search(r"\n  w\[0\]  1\.\d+\(\d+\)\n  w\[1\]  1\.\d+\(\d+\)\n", fit.report())


def test_the_report_of_a_stored_fit(tmp_path):
    fit = fitted(fixed={"rest": 0.5})
    fit.to_json(tmp_path / "fit.json")
    assert cfgd.Fit.from_json(tmp_path / "fit.json").report() == fit.report()


def test_an_unknown_style():
    with pytest.raises(ValueError, match="be one of text, markdown, latex, got 'html'"):
        fitted().report("html")


def test_values_and_errors_belong_together():
    """In the order of the parameters, which need not be that of their names."""
    fit = fitted(fixed={"rate": 0.8})
    assert list(fit.values) == list(fit.errors) == ["size", "rate", "rest"]
    assert fit.errors["rate"] == 0
    np.testing.assert_allclose([fit.errors["size"], fit.errors["rest"]], fit.standard_errors)


def test_a_printed_fit_has_fixed_and_tied_parameters_below_the_free_ones():
    t = np.linspace(0, 4, 9)
    y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])

    def decay(t, size, rate, rest, shift):
        return size * jnp.exp(-rate * (t - shift)) + rest

    fit = cfgd.curve_fit(
        decay,
        t,
        y,
        [1.0, 1.0, 0.0, 0.25],
        fixed=["shift"],
        tied={"rest": lambda p: 0.2 * p["size"]},
    )
    lines = [line.split() for line in str(fit).splitlines()[2:]]
    assert [line[0] for line in lines] == ["size", "rate", "rest", "shift"]
    assert lines[3] == ["shift", "0.25", "fixed"]
    assert lines[2][-1] == "tied"
    # rest is a fifth of size, and so is its standard error
    size, rest = (np.array(lines[i][1:3], float) for i in (0, 2))
    np.testing.assert_allclose(rest, size / 5, rtol=1e-3)


def test_print_names_the_bound_that_a_parameter_has_reached():
    fit = cfgd.curve_fit(
        lambda t, slope, height: slope * t + height,
        [0.0, 1.0, 2.0],
        [-1.0, 0.5, 1.5],
        [1.0, 1.0],
        bounds={"height": (0, None)},
    )
    # with height at 0 the slope is sum(t y) / sum(t^2)
    assert re.search(r"\n  slope +0\.7 ", str(fit))
    assert re.search(r"\n  height +0  at its lower bound$", str(fit))
