"""The plot of a solution."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from solutions import one, swept

from cfgd._core.extras import install_command
from cfgd.status import Status

K = np.arange(5)
NORMS = 10.0**-K


def axes():
    return Figure().subplots()


def run_with(values, **entries):
    return one(history={"iteration": K, "value": np.asarray(values), **entries}, iterations=4)


def test_value_and_norm():
    ax = axes()
    assert run_with(2.0 + NORMS, gradient_norm=NORMS).plot(ax) is ax
    left, right = ax.figure.axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("iteration", "value")
    assert right.get_ylabel() == "gradient norm (dashed)"
    np.testing.assert_array_equal(left.lines[0].get_ydata(), 2.0 + NORMS)
    np.testing.assert_array_equal(right.lines[0].get_ydata(), NORMS)
    np.testing.assert_array_equal(left.lines[0].get_xdata(), K)
    assert (left.get_yscale(), right.get_yscale()) == ("linear", "log")
    ax.figure.canvas.draw()


def test_a_history_without_norms():
    ax = run_with(NORMS).plot(ax=axes())
    assert ax.figure.axes == [ax]
    assert ax.get_yscale() == "log"


def test_values_that_are_not_positive_are_shown_as_differences_from_the_least():
    ax = run_with(NORMS - 3.0).plot(axes())
    assert ax.get_ylabel() == "value − smallest value, -2.9999"
    assert ax.get_yscale() == "log"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), NORMS - NORMS[-1])


@pytest.mark.parametrize("values", [np.zeros(5), np.full(5, np.nan), [1, np.inf, 1, np.nan, -1]])
def test_values_within_a_decade_have_a_linear_axis(values):
    ax = run_with(values, gradient_norm=np.zeros(5)).plot(axes())
    assert [one.get_yscale() for one in ax.figure.axes] == ["linear", "linear"]
    ax.figure.canvas.draw()


def test_a_single_point_has_a_marker():
    history = {"iteration": np.zeros(1, int), "value": np.ones(1)}
    ax = one(history=history, iterations=0).plot(axes())
    assert ax.lines[0].get_marker() == "o"


def test_two_runs_on_the_same_axes():
    ax = axes()
    for factor in (1.0, 2.0):
        run_with(factor * NORMS, gradient_norm=NORMS).plot(ax)
    left, right = ax.figure.axes
    assert len(left.lines) == len(right.lines) == 2
    assert [a.get_color() for a in left.lines] == [b.get_color() for b in right.lines]
    assert len({line.get_color() for line in left.lines}) == 2


def test_a_sweep_has_a_line_for_each_setting():
    """A line ends with its setting, and the legend has ten entries."""
    values = np.ones((25, 1)) * NORMS
    ends = np.minimum(np.arange(25), 4)
    sweep = swept(
        status=[Status.converged] * 25,
        iterations=ends,
        history={"iteration": K, "value": values, "gradient_norm": values},
    )
    ax = sweep.plot(axes())
    assert ax.figure.axes == [ax]
    assert [len(line.get_xdata()) for line in ax.lines] == [end + 1 for end in ends]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(names) == 10
    assert (names[0], names[-1]) == ("setting 0", "setting 24")


def test_a_history_without_values():
    message = "`Solution(history=...)` must hold `iteration` and `value` to be drawn, got the names"
    with pytest.raises(ValueError, match=f"^{re.escape(message)} \\['a'\\]\\.$"):
        one(history={"a": K}).plot()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    message = f"`Solution.plot` needs matplotlib: {install_command('plot')}."
    with pytest.raises(ModuleNotFoundError, match=f"^{re.escape(message)}$"):
        one().plot()


def test_without_axes_a_figure_is_made(tmp_path: Path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    ax = one().plot()
    try:
        assert len(pyplot.get_fignums()) == len(before) + 1
        ax.figure.savefig(tmp_path / "plot.png")
    finally:
        pyplot.close(ax.figure)


def test_ticks_of_a_short_run_are_whole_iterations():
    ticks = one(history={"iteration": K[:4], "value": 1 + K[:4]}, iterations=3).plot().get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))
