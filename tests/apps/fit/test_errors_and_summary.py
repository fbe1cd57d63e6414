"""Robust and clustered errors, and the table of --summary, agree with statsmodels."""

import warnings

import numpy as np
import pytest
from fit_tables import write
from typer.testing import CliRunner

from cfgd.apps.cli import app
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit
from cfgd.apps.fit.summary_table import coefficient_table

ROWS = 90
STREAMED = 1000.0  # bytes: too few for the rows


def table():
    """Return columns with unequal variances and dependent rows of a cluster, and X."""
    random = np.random.default_rng(7)
    group = random.integers(0, 14, ROWS)
    a = random.normal(size=ROWS) + 0.5 * random.normal(size=14)[group]
    b = random.exponential(size=ROWS)
    effect = random.normal(size=14)[group]
    eta = 0.3 + 0.4 * a - 0.5 * b + 0.6 * effect
    columns = {
        "a": a,
        "b": b,
        "w": random.uniform(0.3, 2, ROWS),
        "squared": eta + random.normal(size=ROWS) * (0.2 + b),
        "logistic": (random.random(ROWS) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": random.poisson(np.exp(eta)).astype(float),
        "multinomial": np.array(["p", "q", "r"])[
            np.clip(np.round(eta + random.normal(size=ROWS) + 1), 0, 2).astype(int)
        ],
        "gamma": random.gamma(1.5, np.exp(eta) / 1.5),
        "group": np.array([f"g{k}" for k in group]),
    }
    return columns, np.column_stack([a, b, np.ones(ROWS)]), group


def run(folder, loss, **options):
    columns, _, _ = table()
    used = ("a", "b", "w", "group", loss)
    path = write(folder / "a.parquet", {name: columns[name] for name in used})
    given = {"test": 0.0, "loss": loss, **options}
    drop = tuple({"w", "group"} - {given.get("weights"), given.get("cluster")})
    return fit(FitOptions(path, loss, drop=drop, **given), ProgressReporter())


def reference(loss, kind, weighted):
    import statsmodels.api as sm

    columns, X, group = table()
    y, w = columns[loss], columns["w"] if weighted else np.ones(ROWS)
    kinds = {"hc3": "HC3", "classical": "nonrobust"}
    options = {"cov_type": kinds.get(kind, kind)}
    if kind == "cluster":
        options["cov_kwds"] = {"groups": group}
    if loss == "squared":
        return sm.WLS(y, X, w).fit(use_t=True, **options)
    family = {
        "logistic": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
    }[loss]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels warns of clusters with weights
        # Student's t with an estimated dispersion, as R's summary of a glm has it
        options["use_t"] = loss == "gamma" and kind == "classical"
        return sm.GLM(y, X, family, var_weights=w).fit(tol=1e-13, maxiter=200, **options)


@pytest.mark.every_case
@pytest.mark.parametrize("kind", ["classical", "hc3", "cluster"])
@pytest.mark.parametrize(
    ("loss", "weighted"),
    [
        ("squared", False),
        ("squared", True),
        ("logistic", False),
        ("poisson", False),
        ("gamma", False),
        ("gamma", True),
    ],
)
def test_errors_agree_with_statsmodels(tmp_path, loss, weighted, kind):
    options = {"errors": kind, "cluster": "group" if kind == "cluster" else None}
    options["weights"] = "w" if weighted else None
    want = reference(loss, kind, weighted)
    result = run(tmp_path, loss, **options)
    table = coefficient_table(result)
    np.testing.assert_allclose(result.model.errors, want.bse, rtol=1e-6)
    np.testing.assert_allclose(table.p_values, want.pvalues, rtol=1e-5)
    np.testing.assert_allclose(table.intervals(), want.conf_int(), rtol=1e-6)
    if kind != "classical":
        streamed = run(tmp_path, loss, **options, memory=STREAMED)
        assert streamed.streamed
        np.testing.assert_allclose(streamed.model.errors, want.bse, rtol=1e-6)


@pytest.mark.parametrize("kind", ["hc3", "cluster"])
def test_errors_of_several_classes_agree_with_statsmodels(tmp_path, kind):
    """The reference has the coefficients of its first class at zero; ours sum to zero."""
    import statsmodels.api as sm

    columns, X, group = table()
    y = np.unique(columns["multinomial"], return_inverse=True)[1]
    options = {"cov_type": "HC3"} if kind == "hc3" else {"cov_type": "cluster"}
    if kind == "cluster":
        options["cov_kwds"] = {"groups": group}
    model = sm.MNLogit(y, X)
    want = model.fit(method="newton", disp=0, **options)
    result = run(
        tmp_path, "multinomial", errors=kind, cluster="group" if kind == "cluster" else None
    )
    first = result.model.coefficients[:, :1]
    np.testing.assert_allclose(
        result.model.coefficients[:, 1:] - first, np.asarray(want.params), rtol=1e-5
    )
    C = np.asarray(want.cov_params()).reshape(2, 3, 2, 3).transpose(1, 0, 3, 2).reshape(6, 6)
    P = np.kron(np.eye(3), (np.eye(3) - 1 / 3)[:, 1:])
    errors = np.sqrt(np.diag(P @ C @ P.T)).reshape(3, 3)
    np.testing.assert_allclose(result.model.errors, errors, rtol=1e-5)


def test_class_weights_count_in_robust_errors(tmp_path):
    import statsmodels.api as sm

    columns, X, _ = table()
    y = columns["logistic"]
    result = run(tmp_path, "logistic", errors="hc3", class_weight="1=3,0=0.5")
    w = np.where(y == 1, 3, 0.5)
    want = sm.GLM(y, X, sm.families.Binomial(), var_weights=w).fit(tol=1e-13, cov_type="HC0")
    np.testing.assert_allclose(result.model.errors, want.bse, rtol=1e-6)


def cfgd(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "80"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_summary_is_printed_and_in_the_report(tmp_path):
    columns, _, _ = table()
    path = write(tmp_path / "a.csv", {name: columns[name] for name in ("a", "b", "squared")})
    options = ("--target", "squared", "--test", "0", "--summary", "--errors", "hc3")
    code, output = cfgd("fit", path, *options, "--out", tmp_path)
    assert code == 0
    want = reference("squared", "hc3", False)
    for i, name in enumerate(("a", "b", "intercept")):
        line = next(line for line in output.splitlines() if line.startswith(f"{name} "))
        low, high = want.conf_int()[i]
        cells = [f"{want.params[i]:.4f}", f"{want.bse[i]:.4f}", f"{want.tvalues[i]:.3f}"]
        assert line.split() == [
            name, *cells, f"{want.pvalues[i]:.3f}", f"{low:.4f}", f"{high:.4f}"
        ]  # fmt: skip
        assert line in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "P>|t|" in output
    assert "robust (HC3)" in output


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--errors", "hc9"), "--errors must be one of classical, hc3, cluster, got 'hc9'."),
        (("--errors", "cluster"), "--errors cluster and --cluster COLUMN: give both of them"),
        (("--cluster", "group"), "--errors cluster and --cluster COLUMN: give both of them"),
        (("--errors", "cluster", "--cluster", "z"), "--cluster: "),
    ],
)
def test_wrong_options_get_a_sentence(tmp_path, options, message):
    columns, _, _ = table()
    path = write(tmp_path / "a.csv", columns)
    code, output = cfgd("fit", path, "--target", "squared", *options, "--out", tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (2, False)
    assert message in output.replace("\n", " ")


def test_a_row_that_determines_a_coefficient_alone_has_no_robust_errors(tmp_path):
    columns, _, _ = table()
    columns["only"] = np.where(np.arange(ROWS) == 4, "one", "others")
    path = write(tmp_path / "a.csv", {name: columns[name] for name in ("a", "only", "squared")})
    result = fit(FitOptions(path, "squared", test=0.0, errors="hc3"), ProgressReporter())
    assert result.model.errors is None
    assert result.no_errors == "a row alone determines a coefficient (its leverage is 1)"
