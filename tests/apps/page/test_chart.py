"""Charts of reports: where the marks are, and which ticks the axes have."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from cfgd.apps.page.chart import Chart, decade_ticks, round_ticks, tick_text

SVG = "{http://www.w3.org/2000/svg}"


def parsed(chart):
    return ET.fromstring(chart.svg("a <title> & more"))


def texts(root):
    return [node.text for node in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("scale", [1e-7, 0.3, 1.0, 7.0, 123.0, 4e9])
@pytest.mark.parametrize("shift", [0.0, -0.37, 12.1])
@pytest.mark.parametrize("integer", [False, True])
def test_ticks_are_few_and_round(scale, shift, integer):
    low, high = scale * (shift - 0.55), scale * (shift + 0.45)
    ticks = round_ticks(low, high, integer)
    assert len(ticks) <= 6
    if not integer or high - low > 2:
        assert len(ticks) >= 2
    assert all(low - 1e-9 * scale <= tick <= high + 1e-9 * scale for tick in ticks)
    if integer:
        assert all(tick == round(tick) for tick in ticks)
    if len(ticks) > 1:
        digit = f"{ticks[1] - ticks[0]:.6e}"[0]
        assert digit in "125" or integer
        np.testing.assert_allclose(np.diff(ticks), ticks[1] - ticks[0], rtol=1e-9)


def test_ticks_of_one_value_and_of_decades():
    assert round_ticks(2.0, 2.0) == [2.0]
    assert decade_ticks(1e-16, 3.0) == [10.0**k for k in (-16, -13, -10, -7, -4, -1)]
    assert [tick_text(v) for v in (-0.5, 2.5e7, 3e-9, 1234.0)] == [
        "\u22120.5",
        "2.5e7",
        "3e-9",
        "1,234",
    ]


def test_points_are_where_the_ticks_say():
    chart = Chart("x", "y")
    chart.points([1.0, 5.0], [20.0, -10.0], "blue")
    chart.rule("y", 0.0)
    root = parsed(chart)
    labels = {node.text: node for node in root.iter(f"{SVG}text")}
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")]
    at = {name: (float(node.get("x")), float(node.get("y")) - 4) for name, node in labels.items()}
    assert circles[0][0] == pytest.approx(at["1"][0], abs=0.2)
    assert circles[1][0] == pytest.approx(at["5"][0], abs=0.2)
    assert circles[0][1] == pytest.approx(at["20"][1], abs=0.2)
    assert circles[1][1] == pytest.approx(at["\u221210"][1], abs=0.2)
    assert circles[0][1] < circles[1][1]  # up is more


def test_a_logarithmic_line_has_gaps_where_it_is_not_positive():
    chart = Chart("iteration", "value", log="y", integer_x=True)
    chart.line([0, 1, 2, 3, 4], [1.0, 0.1, 0.0, 1e-3, 1e-4], "blue", "the norm")
    root = parsed(chart)
    (line,) = [
        node.get("d") for node in root.iter(f"{SVG}path") if node.get("stroke-width") == "1.8"
    ]
    assert line.count("M") == 2
    assert len(re.findall("[ML]", line)) == 4
    heights = [float(y) for y in re.findall(r" ([\d.]+)", line)]
    steps = np.diff(heights)
    np.testing.assert_allclose(steps, [steps[0], 2 * steps[0], steps[0]], atol=0.2)
    assert "the norm" in texts(root)
    assert {"0", "1", "2", "3", "4"} <= set(texts(root))


def test_names_and_labels_are_inside_and_escaped():
    chart = Chart(
        "a long label of the horizontal axis of this chart", names=["<b>", "a name of 18 chars"]
    )
    chart.points([-1.0, 2.0], [0, 1], "blue")
    root = parsed(chart)
    assert "<b>" in texts(root)
    for node in root.iter(f"{SVG}text"):
        half = 6.5 * len(node.text)
        x, anchor = float(node.get("x")), node.get("text-anchor")
        left = {"start": x, "middle": x - half / 2, "end": x - half}[anchor]
        assert left >= -1
        assert left + half <= 341


def test_a_chart_without_finite_values_is_empty_and_valid():
    chart = Chart("x", "y", log="y")
    chart.line([0, 1], [np.nan, 0.0], "blue")
    assert parsed(chart) is not None
