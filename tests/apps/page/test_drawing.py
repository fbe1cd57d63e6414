"""The axes of the figures of reports and of the site: whole ticks, one scale for x and y."""

import numpy as np
import pytest

from cfgd.apps.page import drawing

pyplot = pytest.importorskip("matplotlib.pyplot", reason="figures need cfgd[plot]")
pytestmark = pytest.mark.every_case


@pytest.fixture
def axis():
    figure, axis = pyplot.subplots(figsize=drawing.PANEL, layout="constrained")
    yield axis
    pyplot.close(figure)


def labels(axis):
    axis.figure.canvas.draw()
    low, high = axis.get_xlim()
    ticks = axis.xaxis.get_major_ticks()
    return [tick.label1.get_text() for tick in ticks if low <= tick.get_loc() <= high]


@pytest.mark.parametrize("last", [3, 60, 10_000, 100_000, 300_000])
def test_iterations_are_whole_numbers(axis, last):
    drawing.line(axis, np.arange(last + 1), np.logspace(0, -10, last + 1), "blue", label="a")
    drawing.decades(axis, "value")
    numbers = [int(label.replace(",", "").replace("−", "-")) for label in labels(axis)]
    assert 3 <= len(numbers) <= 9
    assert numbers[-1] <= 1.1 * last
    assert numbers[-1] > 0.7 * last


@pytest.mark.parametrize("height", [(-11, 4), (-11, 3), (-2, 5)])
def test_contours_have_one_scale_and_whole_ticks(axis, height):
    drawing.contours(axis, lambda x, y: 10 * x**2 + y**2, (-2.9, 1.7), height)
    axis.figure.canvas.draw()
    places = axis.transData.transform([(0, 0), (1, 0), (0, 1)])
    right, up = places[1] - places[0], places[2] - places[0]
    assert right[0] == pytest.approx(up[1])
    assert [tick for tick in [*axis.get_xticks(), *axis.get_yticks()] if tick % 1] == []
