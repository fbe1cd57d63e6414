"""What IPython and Jupyter show for results: well-formed HTML that escapes what users name."""

import re
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd._core import notebook

pytestmark = pytest.mark.every_case

F = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 1.0])
METHOD = cfgd.AdaptiveTerminal(gamma=-0.25)
T = np.linspace(0, 4, 9)
Y = 2.0 * np.exp(-np.array([0.5, 1.0, 1.5])[:, None] * T) + 0.01 * np.cos(7 * T)


@pytest.fixture
def decay():
    """Return a model that is freed with its test."""
    return lambda t, a, b: a * jnp.exp(-b * t)


def parsed(found):
    """Return the tree of the HTML, which is XML, and check that it holds no script."""
    text = found._repr_html_()
    tree = ElementTree.fromstring(text)
    assert {each.tag for each in tree.iter()} <= {
        *("table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "path", "title")
    }
    assert not re.search(r"\bon\w+=|href|url\(", text)
    return tree


def cells(tree):
    """Return the text of the cells by rows, without the figures."""
    return [[(cell.text or "") for cell in row] for row in tree.iter("tr")]


def numbers(path):
    return np.array([[float(n) for n in at.split()] for at in re.findall(r"[\d.-]+ [\d.-]+", path)])


def test_a_solution():
    solution = cfgd.minimize(F, [1.0, -10.0], METHOD)
    tree = parsed(solution)
    shown = dict(row for row in cells(tree) if len(row) == 2)
    assert tree.find("caption").text == f"Solution: {solution.how}"
    assert shown["status"] == "converged"
    assert float(shown["value"]) == pytest.approx(solution.value, rel=1e-5)
    assert int(shown["iterations"]) == solution.iterations
    assert shown["message"] == solution.message
    (path,) = tree.iter("path")
    places = numbers(path.get("d"))
    assert len(places) <= len(solution.history["value"])
    assert places[0, 1] < places[-2, 1]  # the value falls: y is measured from above


def test_a_sweep_has_a_row_for_each_setting_up_to_ten():
    few = cfgd.sweep(F, [1.0, -10.0], cfgd.AdaptiveTerminal(gamma=[-0.4, -0.2, 0.0]))
    rows = cells(parsed(few))
    assert [row[0] for row in rows] == ["setting", "0", "1", "2"]
    assert [int(row[4]) for row in rows[1:]] == few.iterations.tolist()
    many = cfgd.sweep(F, [1.0, -10.0], cfgd.AdaptiveTerminal(gamma=np.linspace(-0.4, 0.0, 13)))
    tree = parsed(many)
    assert cells(tree)[-1][0] == "3 more"
    assert len(list(tree.iter("svg"))) == 10


def test_a_fit(decay):
    fit = cfgd.curve_fit(decay, T, Y[0], [1.0, 1.0])
    tree = parsed(fit)
    rows = {row[0]: row[1:] for row in cells(tree)}
    for name, value, error in zip(fit.names, fit.parameters, fit.standard_errors, strict=True):
        assert float(rows[name][0]) == pytest.approx(value, rel=1e-7)
        assert float(rows[name][1]) == pytest.approx(error, rel=1e-3)
    zero, dots = [path.get("d") for path in tree.iter("path")]
    level = float(re.match(r"M0 ([\d.]+)H", zero)[1])
    residuals = Y[0] - np.asarray(decay(T, *fit.parameters))
    heights = numbers(dots)[:, 1]
    assert len(heights) == len(T)
    clear = np.abs(residuals) > 0.1 * np.abs(residuals).max()
    # y is measured from above
    np.testing.assert_array_equal(np.sign(level - heights)[clear], np.sign(residuals)[clear])


def test_a_parameter_at_its_bound_has_no_error(decay):
    fit = cfgd.curve_fit(decay, T, Y[0], [1.0, 1.0], bounds={"a": (None, 1.5)})
    assert fit.at_bound == ["a"]
    tree = parsed(fit)
    rows = {row[0]: row[1:] for row in cells(tree)}
    assert rows["a"] == ["1.5", "at its bound"]
    assert float(rows["b"][1]) == pytest.approx(fit.errors["b"], rel=1e-3)
    (wide,) = [cell for cell in tree.iter("td") if cell.text == "at its bound"]
    assert wide.get("colspan") == "2"


def test_numbers_are_right_aligned_and_not_wrapped():
    rows = [["a", "at its bound"], ["b", "-1.5e-15", "converged"], ["c", "2", "stalled"]]
    tree = ElementTree.fromstring(notebook.table("", ["name", "value", "status"], rows))
    styles = [[cell.get("style") for cell in row] for row in tree.iter("tr")]
    for head, *_, number, status in (styles[0], *styles[2:]):
        assert "text-align: right" in number
        assert "text-align: left" in head
        assert "text-align: left" in status
    assert all("nowrap" in style for row in styles for style in row)


def test_a_fit_from_a_file_has_no_residuals(decay, tmp_path):
    fit = cfgd.curve_fit(decay, T, Y[0], [1.0, 1.0])
    fit.to_json(tmp_path / "fit.json")
    tree = parsed(cfgd.Fit.from_json(tmp_path / "fit.json"))
    assert not list(tree.iter("svg"))


def test_many_fits(decay):
    fits = cfgd.curve_fit_many(decay, T, Y, [1.0, 1.0])
    rows = {row[0]: row[1:] for row in cells(parsed(fits))}
    assert float(rows["b"][0]) == pytest.approx(np.median(fits.values["b"]), rel=1e-5)
    assert float(rows["b"][1]) == pytest.approx(np.median(fits.errors["b"]), rel=1e-5)
    bad = cfgd.curve_fit_many(decay, T, np.vstack([Y, np.full(9, np.nan)]), [1.0, 1.0])
    rows = {row[0]: row[1:] for row in cells(parsed(bad))}
    (status,) = bad.failed
    assert rows[status][0] == "1 fit"


def test_names_and_messages_are_escaped():
    header = ["<script>alert(1)</script>", "&"]
    text = notebook.table("<b>", header, [["a&b", '"><img src=x>']])
    tree = ElementTree.fromstring(text)
    assert tree.find("caption").text == "<b>"
    assert cells(tree) == [header, ["a&b", '"><img src=x>']]
    for draw in (notebook.line, notebook.dots, notebook.bars):
        figure = ElementTree.fromstring(draw([1.0, 2.0], '"><script>'))
        assert figure.get("aria-label") == '"><script>'
        assert figure.find("title").text == '"><script>'


def heights_of_line(values, **options):
    path = ElementTree.fromstring(notebook.line(values, "", **options)).find("path")
    return numbers(path.get("d"))[:, 1]


def test_a_line_has_the_shape_of_the_numbers():
    steps = np.diff(heights_of_line([1.0, 10.0, 100.0], log=True))
    np.testing.assert_allclose(steps, steps[0], atol=0.11)
    steps = np.diff(heights_of_line([0.0, 1.0, 4.0]))
    np.testing.assert_allclose(steps / steps.sum(), [0.25, 0.75], atol=0.01)
    assert (steps < 0).all()  # upwards


def test_gaps_single_values_and_none():
    gap = ElementTree.fromstring(notebook.line([1.0, np.nan, 2.0, 3.0], ""))[1].get("d")
    assert gap.count("M") == 2
    assert gap.count("L") == 1
    assert ElementTree.fromstring(notebook.line([5.0], ""))[1].get("d").endswith("h0")
    for draw in (notebook.line, notebook.dots, notebook.bars):
        ElementTree.fromstring(draw([], ""))
        ElementTree.fromstring(draw([np.nan, np.inf], ""))
    assert len(notebook.line(np.random.default_rng(0).normal(size=100_000), "")) < 6000
