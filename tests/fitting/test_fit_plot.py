"""Plots of fits: data, curves, bands, residuals, profiles and regions of pairs."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

import cfgd
from cfgd.fitting.contours import Contour
from cfgd.fitting.plot_parameters import _root_of_two

T = np.linspace(0, 4, 9)
Y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


def line(x, a, b):
    return a + b * x


def two_axes():
    return Figure().subplots(2, 1)


@pytest.fixture(scope="module")
def fit():
    return cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0], sigma=0.02)


def points_of(ax):
    """The points of the first series, of which the first line is made."""
    return ax.lines[0].get_xdata(), ax.lines[0].get_ydata()


def curve_of(ax):
    """The longest line without markers."""
    lines = [each for each in ax.lines if each.get_marker() == "None"]
    return max(lines, key=lambda each: len(each.get_xdata()))


def test_data_curve_band_and_residuals(fit):
    axes = two_axes()
    top, bottom = fit.plot(axes)
    assert (top, bottom) == tuple(axes)
    np.testing.assert_array_equal(points_of(top), (T, Y))
    curve = curve_of(top)
    x, y = curve.get_xdata(), curve.get_ydata()
    assert len(x) >= 200
    assert set(T) <= set(x)
    np.testing.assert_allclose(y, decay(x, *fit.parameters), rtol=1e-6)
    (shade,) = [each for each in top.collections if hasattr(each, "get_paths") and each.get_alpha()]
    lower, upper = fit.band(x)
    corners = shade.get_paths()[0].get_extents()
    np.testing.assert_allclose([corners.y0, corners.y1], [lower.min(), upper.max()], rtol=1e-6)
    residuals = (Y - np.asarray(decay(T, *fit.parameters))) / 0.02
    np.testing.assert_allclose(points_of(bottom)[1], residuals, rtol=1e-4)  # in single precision
    assert (bottom.get_xlabel(), bottom.get_ylabel()) == ("x", "residual / sigma")
    labels = {each.get_text() for each in top.get_legend().get_texts()}
    assert labels == {"data", "fit", "95 % band"}
    top.figure.canvas.draw()


def test_one_axes_has_the_curve_alone(fit):
    ax = Figure().subplots()
    assert fit.plot(ax) is ax
    assert ax.get_xlabel() == "x"
    with pytest.raises(ValueError, match=r"`Fit.plot\(ax=...\)` must be axes or a pair of them"):
        fit.plot(Figure().subplots(3, 1))


def test_several_data_sets_have_their_own_colours():
    x = {"one": np.arange(4.0), "two": np.arange(5.0)}
    y = {"one": np.array([0.1, 0.9, 2.1, 2.9]), "two": np.array([1.1, 1.9, 3.1, 3.9, 5.0])}
    fit = cfgd.curve_fit(line, x, y, {"a": {"one": 0.0, "two": 0.0}, "b": 1.0})
    top, bottom = fit.plot(two_axes())
    assert [each.get_text() for each in top.get_legend().get_texts()] == ["one", "two"]
    assert len({each.get_color() for each in top.lines}) == 2
    assert bottom.get_ylabel() == "residual"
    only, _ = fit.plot(two_axes(), data_set="two")
    labels = {each.get_text() for each in only.get_legend().get_texts()}
    assert labels == {"two", "fit", "95 % band"}
    np.testing.assert_array_equal(points_of(only)[1], y["two"])
    with pytest.raises(ValueError, match=r"`Fit.plot\(data_set=...\)` must be the name"):
        fit.plot(two_axes(), data_set="three")


def test_complex_y_is_drawn_in_two_parts():
    x = np.arange(1.0, 6.0)
    y = (1 + 2j) * x + 0.1 * np.array([1, -1j, 0, 1j, -1])
    fit = cfgd.curve_fit(lambda x, a, b: (a + 1j * b) * x, x, y, [1.0, 1.0], sigma=0.1)
    top, _ = fit.plot(two_axes())
    labels = [each.get_text() for each in top.get_legend().get_texts()]
    assert labels == ["real part", "imaginary part"]
    drawn = [each.get_ydata() for each in top.lines if len(each.get_xdata()) == 5]
    assert any(np.array_equal(each, y.real) for each in drawn)
    assert any(np.array_equal(each, y.imag) for each in drawn)


def test_columns_and_missing_points():
    x = np.array([2.0, 0.0, 1.0, 3.0])  # in no order
    y = np.stack([1 + x, 2 - x], -1) + 0.01 * np.array([[1, 0], [0, -1], [-1, 1], [0, 1]])
    y[2, 0] = np.nan

    def columns(x, a, b):
        return jnp.stack([a + b * x, 2 * a - b * x], -1)

    fit = cfgd.curve_fit(columns, x, y, [0.0, 0.0], missing="drop")
    top, _ = fit.plot(two_axes())
    np.testing.assert_array_equal(points_of(top)[1], y[:, 0])
    curve = curve_of(top)
    assert np.all(np.diff(curve.get_xdata()) > 0)
    assert [each.get_text() for each in top.get_legend().get_texts()] == ["column 0", "column 1"]


def test_x_of_several_variables_is_drawn_by_index():
    x = {"u": np.array([0.0, 1, 0, 1]), "v": np.array([0.0, 0, 1, 1])}
    y = np.array([0.1, 1.0, 2.1, 3.0])
    fit = cfgd.curve_fit(lambda x, a, b: a * x["u"] + b * x["v"], x, y, [1.0, 1.0])
    top, bottom = fit.plot(two_axes())
    np.testing.assert_array_equal(points_of(top)[0], np.arange(4))
    assert bottom.get_xlabel() == "index of the point"


def test_a_model_that_mixes_points_is_drawn_at_the_data_only():
    x = np.arange(1.0, 7.0)
    y = 2 * np.cumsum(x) + np.array([0.1, -0.1, 0.0, 0.1, 0.0, -0.1])
    fit = cfgd.curve_fit(lambda x, a: a * jnp.cumsum(x), x, y, [1.0])
    curve = curve_of(fit.plot(Figure().subplots()))
    np.testing.assert_array_equal(curve.get_xdata(), x)
    np.testing.assert_allclose(curve.get_ydata(), fit.parameters[0] * np.cumsum(x), rtol=1e-6)


def test_a_covariance_matrix_gives_error_bars():
    x, sigma = np.arange(4.0), np.diag([1.0, 4.0, 9.0, 16.0]) + 0.5
    fit = cfgd.curve_fit(line, x, np.array([0.0, 2.0, 1.0, 5.0]), [0.0, 1.0], sigma=sigma)
    top, bottom = fit.plot(two_axes())
    heights = [segment[1, 1] - segment[0, 1] for segment in top.containers[0][2][0].get_segments()]
    np.testing.assert_allclose(heights, 2 * np.sqrt(np.diag(sigma)))
    residuals = (np.array([0.0, 2.0, 1.0, 5.0]) - line(x, *fit.parameters)) / np.sqrt(
        np.diag(sigma)
    )
    np.testing.assert_allclose(points_of(bottom)[1], residuals, atol=1e-9)


def test_the_profile_and_its_interval(fit):
    ax = Figure().subplots()
    assert fit.plot_profile("rate", 0.9, ax=ax) is ax
    profile, parabola, level, *ends = ax.lines
    lower, upper = fit.intervals(0.9)["rate"]
    np.testing.assert_allclose([each.get_xdata()[0] for each in ends], [lower, upper])
    height = level.get_ydata()[0]
    x, y = profile.get_xdata(), profile.get_ydata()
    at_ends = np.interp([lower, upper], x, y)
    np.testing.assert_allclose(at_ends, height, rtol=1e-3)
    # against a fit of the two others, written out
    held = x[0]
    rest = cfgd.curve_fit(decay, T, Y, [1.0, held, 0.0], sigma=0.02, fixed=["rate"])
    rise = (rest.chi_square - fit.chi_square) / fit.reduced_chi_square
    np.testing.assert_allclose(y[0], rise, rtol=1e-3)
    x, y = parabola.get_xdata(), parabola.get_ydata()
    error = fit.standard_errors[1]
    np.testing.assert_allclose(y, ((x - fit.parameters[1]) / error) ** 2, atol=1e-9)
    assert ax.get_xlabel() == "rate"


def test_ellipses_of_pairs_have_the_joint_level(fit):
    axes = fit.plot_pairs(ax=Figure().subplots(2, 2))
    assert not axes[0, 1].axison
    assert (axes[1, 0].get_xlabel(), axes[1, 0].get_ylabel()) == ("size", "rest")
    assert (axes[1, 1].get_xlabel(), axes[0, 0].get_ylabel()) == ("rate", "rate")
    points = np.stack(axes[1, 0].lines[0].get_data(), -1) - fit.parameters[[0, 2]]
    inverse = np.linalg.inv(fit.covariance[np.ix_([0, 2], [0, 2])])
    # 2 F(2, 6; 0.95), from a table
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", points, inverse, points), 2 * 5.1433, 1e-4)
    one = fit.plot_pairs(["rate", "rest"], ax=Figure().subplots())
    assert (one.get_xlabel(), one.get_ylabel()) == ("rate", "rest")
    assert _root_of_two(0.95, np.inf) ** 2 == pytest.approx(5.9915, abs=1e-4)  # chi-square


def test_contours_of_a_linear_model_are_ellipses():
    x, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
    fit = cfgd.curve_fit(lambda x, a, b, c: a + b * x + c * x**2, x, y, [0.0, 1.0, 0.0])
    contour = Contour(
        problem=fit.problem,
        z=fit.numbers,
        value=float(fit.solution.value),
        pair=(0, 2),
        covariance=fit.covariance,
        dispersion=fit.dispersion,
        root=2.0,
    )
    points = contour.points() - fit.numbers[[0, 2]]
    inverse = np.linalg.inv(fit.covariance[np.ix_([0, 2], [0, 2])])
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", points, inverse, points), 4, rtol=1e-2)


@pytest.mark.slow
def test_contours_are_where_the_fit_is_that_much_worse(fit):
    ax = fit.plot_pairs(["rate", "rest"], method="profile", ax=Figure().subplots())
    contour = np.stack(ax.lines[1].get_data(), -1)
    for rate, rest in contour[::20]:
        held = cfgd.curve_fit(decay, T, Y, [2.0, rate, rest], sigma=0.02, fixed=["rate", "rest"])
        rise = (held.chi_square - fit.chi_square) / fit.reduced_chi_square
        assert rise == pytest.approx(2 * 5.1433, rel=0.02)


def test_ctrl_c_ends_a_contour(fit, monkeypatch):
    """`minimize` returns at Ctrl-C; a contour of many fits must end, too."""
    interrupted = dataclasses.replace(fit.solution, status=cfgd.Status.interrupted)
    monkeypatch.setattr(type(fit.problem), "minimize", lambda *args, **options: interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit.plot_pairs(["rate", "rest"], method="profile", ax=Figure().subplots())


def test_contours_end_at_bounds():
    x, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
    bounds = {"a": (0.0, 0.1)}
    fit = cfgd.curve_fit(line, x, y, [0.05, 1.0], bounds=bounds)
    ax = fit.plot_pairs(method="profile", ax=Figure().subplots())
    a, _ = ax.lines[1].get_data()
    assert a.min() == pytest.approx(0.0, abs=1e-9)
    assert a.max() == pytest.approx(0.1)


def test_refusals(fit, tmp_path):
    with pytest.raises(ValueError, match=r"`Fit.plot_profile\(name=...\)` must be among .* 'pace'"):
        fit.plot_profile("pace")
    with pytest.raises(ValueError, match=r"`Fit.plot_pairs\(names=...\)` must be at least two"):
        fit.plot_pairs(["rate"])
    with pytest.raises(ValueError, match=r"`Fit.plot_pairs\(ax=...\)` must have 2 x 2 axes"):
        fit.plot_pairs(ax=Figure().subplots())
    with pytest.raises(ValueError, match=r"`Fit.plot_pairs\(method=...\)` must be one of"):
        fit.plot_pairs(method="best")
    fit.to_json(tmp_path / "fit.json")
    stored = cfgd.Fit.from_json(tmp_path / "fit.json")
    with pytest.raises(ValueError, match=r"`Fit.plot` needs the model"):
        stored.plot()
    assert stored.plot_pairs(ax=Figure().subplots(2, 2)).shape == (2, 2)


def test_without_matplotlib_the_error_says_what_to_install(fit, monkeypatch):
    import importlib

    original = importlib.import_module

    def missing(name, *args):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("No module", name="matplotlib")
        return original(name, *args)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"`Fit.plot` needs matplotlib: pip install"):
        fit.plot()


def test_new_figures(fit):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    top, bottom = fit.plot()
    axes = fit.plot_pairs()
    try:
        assert top.figure is bottom.figure
        assert axes.shape == (2, 2)
        assert len(pyplot.get_fignums()) == len(before) + 2
    finally:
        pyplot.close(top.figure)
        pyplot.close(axes[0, 0].figure)
