"""What coefficients mean: odds ratios and ratios of means, the overview, and the CSV file."""

import csv
import html

import numpy as np
import pytest
from fit_tables import skewed_columns, targets, write

from cfgd.apps.fit.coefficient_rows import cells, coefficient_rows, coefficients_csv, headings
from cfgd.apps.fit.options import FitOptions
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.report_overview import important_coefficients, overview
from cfgd.apps.fit.report_text import remarks, robust_scale
from cfgd.apps.fit.run import fit


def fitted(folder, loss, **options):
    random, columns, eta = skewed_columns()
    path = write(folder / "a.parquet", columns | {"y": targets(loss, random, eta)})
    return fit(FitOptions(path, "y", loss=loss, **options), ProgressReporter())


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("loss", "ratio"),
    [("squared", None), ("logistic", "odds ratio"), ("poisson", "rate ratio")],
)
def test_ratios_are_exponentials_of_coefficients(tmp_path, loss, ratio):
    result = fitted(tmp_path, loss)
    names = headings(result)
    assert (ratio in names) == (ratio is not None)
    rows = list(coefficient_rows(result))
    assert [row.term for row in rows] == list(result.model.terms)
    if ratio is None:
        return
    at, of_ratio = names.index(ratio), names.index("95 % interval of the ratio")
    with np.errstate(over="ignore"):  # the columns have very different units
        for row in rows[:-1]:
            shown = cells(result, row)
            assert float(shown[at]) == pytest.approx(np.exp(row.estimate), rel=1e-4)
            ends = tuple(map(float, shown[of_ratio].split(" to ")))
            assert ends == pytest.approx((np.exp(row.low), np.exp(row.high)), rel=1e-4)
    assert cells(result, rows[-1])[at] == ""  # the intercept is no effect of a column
    assert any(ratio in sentence for sentence in remarks(result))


def test_a_penalty_has_no_intervals(tmp_path):
    result = fitted(tmp_path, "logistic", l2=3.0)
    assert headings(result) == ["coefficient", "standard error", "odds ratio"]
    assert not any("95 %" in heading for heading in headings(result))


def test_the_file_has_all_digits_of_all_coefficients(tmp_path):
    result = fitted(tmp_path, "multinomial", l2=1.0)
    rows = list(csv.DictReader(coefficients_csv(result).splitlines()))
    assert len(rows) == result.model.coefficients.size
    for k in range(result.target.classes):
        own = rows[k * len(result.model.terms) : (k + 1) * len(result.model.terms)]
        found = [float(row["coefficient"]) for row in own]
        np.testing.assert_array_equal(found, result.model.coefficients[:, k])
        assert {row["p-value"] for row in own} == {""}


def test_the_overview_has_the_largest_standardised_coefficients(tmp_path):
    result = fitted(tmp_path, "squared")
    shown = important_coefficients(result)
    sizes = np.abs(result.standardised[:-1])
    largest = [result.model.terms[j] for j in np.argsort(-sizes)[:3]]
    assert [one.term for one in shown] == largest
    assert shown[0].size == 1
    text = html.unescape(overview(result))
    assert all(one.effect in text for one in shown)
    assert "R squared" in text


def test_the_overview_compares_the_two_values_of_a_boolean(tmp_path):
    random = np.random.default_rng(2)
    x, smokes = random.normal(size=80), random.random(80) < 0.4
    y = x + 3.0 * smokes + 0.1 * random.normal(size=80)
    path = tmp_path / "t.csv"
    rows = (f"{a:.4f},{'yes' if b else 'no'},{c:.4f}" for a, b, c in zip(x, smokes, y, strict=True))
    path.write_text("\n".join(["x,smokes,y", *rows]))
    result = fit(FitOptions(path, "y"), ProgressReporter())
    shown = {one.term: one.effect for one in important_coefficients(result)}
    amount = result.model.coefficients[result.model.terms.index("smokes")]
    assert amount == pytest.approx(3, abs=0.1)
    assert shown["smokes"] == f"+{amount:.5g} for 1 compared with 0"
    assert shown["x"].endswith("per standard deviation")


def test_a_robust_fit_has_a_robust_scale(tmp_path):
    result = fitted(tmp_path, "huber")
    r = result.quality.y - result.quality.expected
    expected = 1.4826 * np.median(np.abs(r - np.median(r)))
    assert robust_scale(result.quality) == pytest.approx(expected)
    said = [sentence for sentence in remarks(result) if "robust scale" in sentence]
    assert f"{expected:.5g}" in said[0]
