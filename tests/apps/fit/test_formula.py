"""Formulas give the columns of formulaic, the same in predictions, and run no code."""

import json

import numpy as np
import pytest
from fit_tables import split_numbers, write
from typer.testing import CliRunner

from cfgd.apps.cli import app
from cfgd.apps.fit.expression import parse
from cfgd.apps.fit.model import read_model
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

ROWS = 90
STREAMED = 1500.0  # bytes: too few for the rows


def table():
    random = np.random.default_rng(5)
    columns = {
        "a": random.normal(size=ROWS),
        "b": random.exponential(size=ROWS) + 0.1,
        "the c": random.uniform(-3, 8, ROWS),
        "k": random.choice(["u", "v", "w"], ROWS, p=[0.5, 0.3, 0.2]),
        "m": random.choice(["r", "s"], ROWS, p=[0.6, 0.4]),
        "n": random.choice([1.0, 2.0, 5.0], ROWS, p=[0.2, 0.5, 0.3]),
    }
    columns["y"] = columns["a"] + np.log(columns["b"]) + random.normal(size=ROWS)
    return columns


def run(path, formula, **options):
    given = {"test": 0.0, **options}
    return fit(FitOptions(path, formula=formula, **given), ProgressReporter())


FORMULAS = [
    "y ~ a*b",
    "y ~ k*m",
    "y ~ k:m",
    "y ~ k:a",
    "y ~ a + k:m + k:m:a",
    "y ~ m + k:m",
    "y ~ poly(`the c`, 3) + a",
    "y ~ poly(`the c`, 2, raw=True) * m",
    "y ~ C(n) * center(a)",
    "y ~ (a + b + m)**2 - a:b",
    "y ~ log(b) + sqrt(b) + I(a**2 / 3 - 1) + scale(`the c`)",
    "y ~ . - `the c`",
    "y ~ poly(log(b), 2) + scale(center(a) + exp(a))",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_columns_span_those_of_formulaic(tmp_path, formula):
    """The fit of all rows is the same where the columns of both span the same space."""
    import pandas as pd
    from formulaic import model_matrix

    columns = table()
    frame = pd.DataFrame(columns)
    text = formula.replace(". -", "a + b + k + m + n + `the c` -")
    X = np.asarray(model_matrix(text, frame, context={"sqrt": np.sqrt}).rhs, float)
    result = run(write(tmp_path / "a.parquet", columns), formula)
    rank = np.linalg.matrix_rank(X)
    assert len(result.model.terms) == rank
    residual = columns["y"] - X @ np.linalg.lstsq(X, columns["y"])[0]
    assert result.quality.model["mean squared error"] == pytest.approx(np.mean(residual**2))


def test_coefficients_agree_with_statsmodels(tmp_path):
    import pandas as pd
    import statsmodels.formula.api as smf

    columns = table()
    columns["c"] = columns.pop("the c")
    result = run(write(tmp_path / "a.parquet", columns), "y ~ a*b + log(b):C(k) + np.exp(a)")
    text = "y ~ a*b + np.log(b):C(k, Treatment('u')) + np.exp(a)"
    want = smf.ols(text, pd.DataFrame(columns)).fit()
    order = ["a", "b", "np.exp(a)", "a:b", *(f"np.log(b):C(k, Treatment('u'))[{x}]" for x in "uvw")]
    np.testing.assert_allclose(
        result.model.coefficients, want.params[[*order, "Intercept"]], rtol=1e-6
    )
    np.testing.assert_allclose(result.model.errors, want.bse[[*order, "Intercept"]], rtol=1e-6)
    names = ["a", "b", "np.exp(a)", "a:b", *(f"log(b):C(k) = {x}" for x in "uvw"), "intercept"]
    assert result.model.terms == names


def test_orthogonal_polynomials_are_those_of_formulaic(tmp_path):
    from formulaic.transforms.poly import poly

    columns = table()
    result = run(write(tmp_path / "a.parquet", columns), "y ~ poly(`the c`, 3)")
    P = poly(columns["the c"], 3)
    w = np.linalg.lstsq(np.column_stack([P, np.ones(ROWS)]), columns["y"])[0]
    np.testing.assert_allclose(result.model.coefficients, w, rtol=1e-7)
    assert result.model.terms[0] == "poly(`the c`, 3)[1]"


ALL = "y ~ poly(`the c`, 2)*k + scale(a) + C(n) + log(b):m"


def test_states_are_those_of_the_training_rows_however_they_are_read(tmp_path):
    columns = table()
    path = write(tmp_path / "a.parquet", columns)
    results = [run(path, ALL, test=0.3), run(path, ALL, test=0.3, memory=STREAMED)]
    assert [result.streamed for result in results] == [False, True]
    one, two = (result.model for result in results)
    np.testing.assert_allclose(two.coefficients, one.coefficients, rtol=1e-6)
    training = split_numbers(0, ROWS) >= 0.3
    assert one.formula.states["scale(a)"]["mean"] == pytest.approx(columns["a"][training].mean())
    assert one.formula.states["scale(a)"]["deviation"] == pytest.approx(
        columns["a"][training].std(ddof=1)
    )
    assert one.formula.states["C(n)"]["levels"] == [2.0, 1.0, 5.0]


def cfgd(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "500"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_predictions_use_the_states_of_the_fit(tmp_path):
    """A part of the rows in another order gets the predictions that it has among all rows."""
    columns = table()
    path = write(tmp_path / "a.csv", columns)
    assert cfgd("fit", path, "--formula", ALL, "--out", tmp_path)[0] == 0
    some = [7, 3, 50, 12]
    part = write(tmp_path / "b.csv", {name: of[some] for name, of in columns.items()})
    for data, out in ((path, "all.csv"), (part, "some.csv")):
        code, output = cfgd("predict", tmp_path / "model.json", data, "-o", tmp_path / out)
        assert code == 0, output
    predicted = np.genfromtxt(tmp_path / "all.csv", skip_header=1)
    np.testing.assert_allclose(
        np.genfromtxt(tmp_path / "some.csv", skip_header=1), predicted[some], rtol=1e-12
    )
    result = fit(FitOptions(path, formula=ALL), ProgressReporter())
    assert np.mean((predicted - columns["y"]) ** 2) < np.var(columns["y"])
    assert result.model.terms == read_model(tmp_path / "model.json").terms


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ open('x')", "the function 'open' is not known: use log, log2,"),
        ("y ~ a + os.system('x')", "the function 'os.system' is not known"),
        ("y ~ I((lambda: 1)())", "is not known"),
        ("y ~ I([a for a in b])", "is no arithmetic of columns"),
        ("y ~ I(a.__class__)", "'a.__class__' is not known"),
        ("y ~ bs(a, 3)", "the function 'bs' is not known"),
        ("y ~ C(k, Sum)", "is not known: Treatment is"),
        ("y ~ I(9**9**9 * a)", "is no finite number where a ="),
        ("y ~ log(a)", "is no finite number where a = -"),
        ("y ~ log(k)", "the column 'k' is not one of numbers"),
        ("y ~ a + z", "has no column 'z', only 'a', 'b',"),
        ("y ~ a +", "cannot be read:"),
        ("y ~ a | b", "must be one formula, without |"),
        ("y ~ a - 1", "the model always has an intercept"),
        ("y ~ 1", "must have a column after ~"),
        ("log(y) ~ a", "must have the name of a column before ~"),
        ("y ~ a + y", "must not have the target in it"),
        ("y ~ poly(n, 3)", "needs 4 different values, got 3"),
        ("y ~ poly(a, 99)", "must be a whole number to 20"),
        ("y ~ C(k, Treatment('z'))", "is no level in the data"),
        ("~ a", "--formula has no target before ~: give it, or --target."),
    ],
)
def test_other_formulas_are_refused(tmp_path, formula, message):
    path = write(tmp_path / "a.csv", table())
    code, output = cfgd("fit", path, "--formula", formula, "--out", tmp_path / "out")
    assert code == 2
    assert message in output
    assert not (tmp_path / "out").exists()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": ["__import__('os').system('touch hacked')"]}, "is not known: use log"),
        ({"factors": ["a", "poly(b, 2)"]}, "the state of 'poly(b, 2)' is missing"),
        ({"factors": ["a", "z"]}, "'z' has no column 'z' in columns"),
        ({"states": [{"call": "log(a)", "mean": 1}]}, "must be a call of center, scale, C or poly"),
        ({"columns": [{"name": "a", "parts": [[0, 1]]}]}, "parts of 'a' must be those of factors"),
        ({"factors": ["-" * 900 + "a"]}, "cannot be read"),
        ({"factors": ["(" * 400 + "a"]}, "cannot be read"),
        ({"factors": 3}, "formula.factors must be a list"),
    ],
)
def test_a_formula_of_a_model_file_is_checked(tmp_path, change, message):
    path = write(tmp_path / "a.csv", table())
    run(path, "y ~ a + center(b)").model.save(tmp_path / "model.json")
    saved = json.loads((tmp_path / "model.json").read_text())
    saved["formula"] |= change
    (tmp_path / "model.json").write_text(json.dumps(saved))
    with pytest.raises(ValueError, match="is not a valid model") as caught:
        read_model(tmp_path / "model.json")
    assert message in str(caught.value)


def test_names_in_backticks_may_be_anything():
    name = "quoted_61 √ + log(x)"
    assert parse(f"log(`{name}`) + class_").columns == [name, "class_"]
    assert parse(f"center(`{name}`)").stateful_calls[0].text == f"center(`{name}`)"


def test_rows_of_a_new_level_are_not_measured_and_not_predicted(tmp_path):
    columns = table()
    rare = np.flatnonzero(split_numbers(0, ROWS) < 0.3)[0]
    columns["n"][rare] = 7.0
    result = run(write(tmp_path / "a.parquet", columns), "y ~ a + C(n)", test=0.3)
    assert result.undefined_rows == 1
    result.model.save(tmp_path / "model.json")
    code, output = cfgd(
        "predict", tmp_path / "model.json", tmp_path / "a.parquet", "-o", tmp_path / "out.csv"
    )
    assert code == 2
    assert "C(n) has a level that no training row has" in output
