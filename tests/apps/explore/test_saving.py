"""The map as an SVG and a PNG file, the paths as a CSV file, and equal axes."""

import csv
import re
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from gestures import type_into

# one worker runs all these tests, since they share a browser
pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"
PATIENCE = 400  # looks of 50 ms for a file, on a busy machine


def saved(page, kind, folder):
    """Press the button of a kind of file, and return the file."""
    where = {"behavior": "allow", "downloadPath": str(folder)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    page.element(f"#save-{kind}").click()
    path = folder / f"cfgd.{kind}"
    for _ in range(PATIENCE):
        if path.exists() and path.stat().st_size > 0:
            return path
        time.sleep(0.05)
    raise AssertionError(f"no {path}")


def test_the_paths_are_saved_as_csv(page, tmp_path):
    runs = page.runs
    with saved(page, "csv", tmp_path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(run["path"]) for run in runs.values())
    for method, name in (("Gradient descent", "gradient"), ("Adaptive terminal", "terminal")):
        own = [row for row in rows if row["method"] == method]
        assert [int(row["iteration"]) for row in own] == list(range(len(runs[name]["path"])))
        path = [[float(row["x"]), float(row["y"])] for row in own]
        np.testing.assert_array_equal(path, runs[name]["path"])
        assert [float(row["value"]) for row in own] == runs[name]["values"]


def test_the_map_is_saved_as_svg(page, tmp_path):
    runs, (x0, x1, y0, y1) = page.runs, page.state["view"]
    root = ElementTree.parse(saved(page, "svg", tmp_path)).getroot()
    width, height = (float(root.get(name)) for name in ("width", "height"))
    assert root.find(f"{SVG}image").get("href").startswith("data:image/png;base64,")
    lines = [path.get("d") for path in root.iter(f"{SVG}path")]
    path = np.array(runs["gradient"]["path"])
    wanted = np.stack(
        [(path[:, 0] - x0) / (x1 - x0) * width, (y1 - path[:, 1]) / (y1 - y0) * height], 1
    )
    drawn = [np.array(re.findall(r"[ML](\S+) ([^ML]+)", d), float) for d in lines if "A" not in d]
    assert any(one.shape == wanted.shape and np.abs(one - wanted).max() < 0.02 for one in drawn)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "start (1, −10)" in texts
    assert f"Gradient descent: {len(path) - 1} iterations" in texts
    # the points are drawn as on the page: a circle, a square and a diamond
    fills = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("fill") != "none"]
    assert sum("A" in d and "A6 6" in d for d in fills) == 1
    assert [d.count("L") for d in fills if "A" not in d] == [5, 5]


def test_the_map_is_saved_as_png(page, tmp_path):
    data = saved(page, "png", tmp_path).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    size = page.element("#map").size
    width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    assert abs(width - 2 * size["width"]) <= 4
    assert abs(height - 2 * size["height"]) <= 4


def test_equal_axes(page):
    """A handle that moves by as many units of x as of y moves by as many pixels."""
    page.element("#equal").click()
    page.wait()
    place = "return document.getElementById('handle-start').getBoundingClientRect()"
    before, (x, y) = page.js(place), page.state["start"]
    type_into(page, "#start-x", str(x + 2))
    type_into(page, "#start-y", str(y + 2))
    after = page.js(place)
    assert after["x"] - before["x"] == pytest.approx(before["y"] - after["y"], abs=0.1)
    page.js("document.getElementById('link').click()")
    page.open(page.js("return location.hash"))
    assert page.state["equal"] is True
