"""Weights, offsets, class weights positive labels: as in statsmodels and scikit-learn."""

import json

import numpy as np
import pytest
from fit_tables import write
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from cfgd.apps.cli import app
from cfgd.apps.fit.class_weights import read_class_weights
from cfgd.apps.fit.figures import figures_of
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

ROWS = 120
STREAMED = 1500.0  # bytes: too few for the rows


def table(loss):
    """Return columns a and b, a target, weights, offsets and the design matrix."""
    random = np.random.default_rng(3)
    a, b = random.normal(2, 3, ROWS), random.exponential(size=ROWS)
    w, o = random.uniform(0.2, 3, ROWS), random.normal(0.3, 0.4, ROWS)
    eta = 0.2 - 0.3 * a + 0.5 * b + o
    y = {
        "squared": lambda: eta + random.normal(size=ROWS) / np.sqrt(w),
        "logistic": lambda: np.where(random.random(ROWS) < 1 / (1 + np.exp(-eta)), "yes", "no"),
        "poisson": lambda: random.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: random.gamma(2, np.exp(eta) / 2),
    }[loss]()
    columns = {"a": a, "w": w, "b": b, "o": o, "y": y}
    return columns, np.column_stack([a, b, np.ones(ROWS)])


def run(path, **options):
    return fit(FitOptions(path, "y", **{"test": 0.0, **options}), ProgressReporter())


def reference(loss, columns, X, weighted=True, offset=True):
    import statsmodels.api as sm

    y = (columns["y"] == "yes") * 1.0 if loss == "logistic" else columns["y"]
    w, o = columns["w"] if weighted else np.ones(ROWS), columns["o"] if offset else np.zeros(ROWS)
    if loss == "squared":
        return sm.WLS(y - o, X, w).fit()
    family = {
        "logistic": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
    }[loss]
    return sm.GLM(y, X, family, var_weights=w, offset=o).fit(tol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "gamma", "poisson", "logistic"])
def test_weights_and_offsets_agree_with_statsmodels(tmp_path, loss):
    columns, X = table(loss)
    path = write(tmp_path / "a.parquet", columns)
    want = reference(loss, columns, X)
    options = {"loss": loss, "weights": "w", "offset": "o"}
    for found in (run(path, **options), run(path, **options, memory=STREAMED)):
        np.testing.assert_allclose(found.model.coefficients, want.params, rtol=1e-6)
        np.testing.assert_allclose(found.model.errors, want.bse, rtol=1e-6)
    assert found.streamed
    assert found.model.terms == ["a", "b", "intercept"]


def test_the_baseline_uses_weights_and_offsets(tmp_path):
    import statsmodels.api as sm

    columns, _ = table("logistic")
    result = run(write(tmp_path / "a.parquet", columns), weights="w", offset="o")
    one, y = np.ones((ROWS, 1)), columns["y"] == "yes"
    weights = {"var_weights": columns["w"], "offset": columns["o"]}
    alone = sm.GLM(y * 1.0, one, sm.families.Binomial(), **weights).fit(tol=1e-12)
    p = alone.fittedvalues
    loss = np.average(-np.log(np.where(y, p, 1 - p)), weights=columns["w"])
    assert result.quality.baseline["log loss"] == pytest.approx(loss)
    said = "The baseline uses the offset 'o' and the best weighted intercept, and no column;"
    assert said in " ".join(result_text(result))


def result_text(result):
    from cfgd.apps.fit.report_text import remarks, summary

    return [summary(result), *remarks(result)]


def test_rows_of_weight_two_count_twice(tmp_path):
    """In coefficients, errors and measures."""
    columns, _ = table("logistic")
    columns["w"] = 1.0 + (np.arange(ROWS) % 3 == 0)
    twice = {name: np.repeat(of, columns["w"].astype(int)) for name, of in columns.items()}
    weighted = run(write(tmp_path / "a.parquet", columns), weights="w", drop=("o",))
    repeated = run(write(tmp_path / "b.parquet", twice), drop=("o", "w"))
    np.testing.assert_allclose(weighted.model.coefficients, repeated.model.coefficients, rtol=1e-6)
    np.testing.assert_allclose(weighted.model.errors, repeated.model.errors, rtol=1e-6)
    for name, value in repeated.quality.model.items():
        assert weighted.quality.model[name] == pytest.approx(value, rel=1e-5), name
    np.testing.assert_allclose(weighted.quality.confusion, repeated.quality.confusion)


def test_rows_of_weight_zero_are_left_out(tmp_path):
    columns, X = table("squared")
    used = np.arange(ROWS) % 4 > 0
    columns["w"] = np.where(used, columns["w"], 0)
    columns["a"][~used] = 1e9
    result = run(write(tmp_path / "a.parquet", columns), weights="w", drop=("o",))
    import statsmodels.api as sm

    want = sm.WLS(columns["y"][used], X[used], columns["w"][used]).fit()
    np.testing.assert_allclose(result.model.coefficients, want.params, rtol=1e-6)
    np.testing.assert_allclose(result.model.errors, want.bse, rtol=1e-6)
    assert result.statistics.weight_zero_count == np.sum(~used)
    assert "30 rows of weight 0 are left out" in " ".join(result_text(result))


@pytest.mark.parametrize("given", ["balanced", "yes=2.5,no=0.5"])
def test_class_weights_agree_with_scikit_learn(tmp_path, given):
    columns, X = table("logistic")
    columns["y"] = np.where(columns["a"] > 3, "yes", columns["y"])
    path = write(tmp_path / "a.parquet", columns)
    result = run(path, class_weight=given, drop=("o", "w"), l2=1e-9)
    weights = given if given == "balanced" else {"yes": 2.5, "no": 0.5}
    want = LogisticRegression(C=np.inf, class_weight=weights, tol=1e-10, max_iter=10_000)
    want.fit(X[:, :2], columns["y"])
    np.testing.assert_allclose(result.model.coefficients[:-1], want.coef_[0], rtol=1e-4)
    assert result.model.facts["class weights"].keys() == {"yes", "no"}
    assert "Classes are weighted in the fit" in " ".join(result_text(result))


def test_the_positive_label_changes_the_sign(tmp_path):
    columns, _ = table("logistic")
    path = write(tmp_path / "a.parquet", columns)
    usual, turned = (run(path, positive=label) for label in (None, "no"))
    np.testing.assert_allclose(usual.model.coefficients, -turned.model.coefficients, rtol=1e-5)
    np.testing.assert_allclose(usual.model.errors, turned.model.errors, rtol=1e-5)
    assert turned.model.labels == ("yes", "no")
    assert turned.model.facts["positive label"] == "no"
    said = [sentence for sentence in result_text(turned) if "positive" in sentence]
    assert "'no'" in " ".join(said)
    assert usual.quality.model["true positive rate"] == pytest.approx(
        1 - turned.quality.model["false positive rate"]
    )


def cfgd(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "500"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_predictions_use_the_offset(tmp_path):
    columns, X = table("poisson")
    path = write(tmp_path / "a.csv", columns)
    options = ("--loss", "poisson", "--offset", "o", "--drop", "w", "--test", "0")
    assert cfgd("fit", path, "--target", "y", *options, "--out", tmp_path)[0] == 0
    saved = json.loads((tmp_path / "model.json").read_text())
    assert saved["offset"] == "o"
    w = np.array([term["coefficient"][0] for term in saved["terms"]])
    out = tmp_path / "out.csv"
    assert cfgd("predict", tmp_path / "model.json", path, "-o", out)[0] == 0
    found = np.genfromtxt(out, skip_header=1)
    np.testing.assert_allclose(found, np.exp(X @ w + columns["o"]), rtol=1e-9)
    del columns["o"]
    code, output = cfgd(
        "predict", tmp_path / "model.json", write(tmp_path / "b.csv", columns), "-o", out
    )
    assert code == 2
    assert "has no column 'o', which the model needs" in output


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weights", "v"), "--weights: {} has no column 'v', only 'a', 'w', 'b', 'o', 'y'."),
        (("--weights", "y"), "--weights: 'y' is the target."),
        (("--weights", "a"), "the column 'a' of --weights must not be negative, got -"),
        (("--offset", "y"), "--offset: 'y' is the target."),
        (("--class-weight", "yes"), "--class-weight must be balanced, or positive numbers for"),
        (("--class-weight", "yes=-1"), "--class-weight must be balanced, or positive numbers"),
        (("--class-weight", "yes=1,yes=2"), "--class-weight has two weights for the label 'yes'."),
        (("--class-weight", "si=1"), "--class-weight must be one of the labels 'no', 'yes', got"),
        (("--positive", "ja"), "--positive must be one of the labels 'no', 'yes', got 'ja'."),
    ],
)
def test_wrong_options_get_a_sentence(tmp_path, options, message):
    path = write(tmp_path / "a.csv", table("logistic")[0])
    code, output = cfgd("fit", path, "--target", "y", *options, "--out", tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (2, False)
    assert message.format(path) in output


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--class-weight", "balanced"), "--class-weight is for class labels, and the target 'y'"),
        (("--positive", "1"), "--positive is for a target of two classes, and 'y' has the loss"),
    ],
)
def test_options_for_classes_are_refused_for_numbers(tmp_path, options, message):
    path = write(tmp_path / "a.csv", table("squared")[0])
    code, output = cfgd("fit", path, "--target", "y", *options, "--out", tmp_path / "out")
    assert code == 2
    assert message in output


def test_missing_weights_are_refused_or_dropped(tmp_path):
    columns, _ = table("squared")
    columns["w"][[4, 7]] = np.nan
    path = write(tmp_path / "a.parquet", columns)
    for missing in ("refuse", "mean"):
        with pytest.raises(
            ValueError, match="'w' of --weights must have no missing value in row 5"
        ):
            run(path, weights="w", missing=missing)
    result = run(path, weights="w", missing="drop")
    assert (result.statistics.left_out_count, result.statistics.training_count) == (2, ROWS - 2)


def test_labels_of_class_weights_may_have_equal_signs():
    assert read_class_weights("a=b=2,1=3") == {"a=b": 2.0, "1": 3.0}


def test_the_figure_of_the_roc_curve_uses_the_weights(tmp_path):
    """Its area is the one in the table, and scikit-learn's."""
    from sklearn.metrics import roc_auc_score

    columns, X = table("logistic")
    result = run(write(tmp_path / "a.parquet", columns), weights="w", offset="o")
    score = X @ result.model.coefficients + columns["o"]
    area = roc_auc_score(columns["y"] == "yes", score, sample_weight=columns["w"])
    assert result.quality.model["area under the ROC curve"] == pytest.approx(area)
    figures = {title: svg for row in figures_of(result) for title, svg in row}
    assert f"area {area:.3f}" in figures["ROC"]
    assert f"{roc_auc_score(columns['y'] == 'yes', score):.3f}" != f"{area:.3f}"
