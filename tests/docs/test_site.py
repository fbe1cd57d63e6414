"""The extensions that build the site, and the built site in a browser."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from blocks import DOCS, ROOT

from browser import command
from cfgd.apps.bench.speed.chromium import driven, missing

pytest.importorskip("sphinx", reason="the site needs cfgd[docs]")
sys.path.insert(0, str(DOCS))

from docutils import nodes
from extensions import columns, gallery, link_check
from extensions.mathml import mathml
from sphinx.errors import ExtensionError

pytestmark = pytest.mark.slow  # Sphinx is installed for `make slow`

EXAMPLE = '''"""A line.

What it shows.
"""

import sys
from pathlib import Path

print("drawn", 1 + 1)
Path(sys.argv[1]).write_bytes(b"a picture")
'''


def script(folder, text=EXAMPLE, name="line.py"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("count", [1, 3])
def test_a_gallery_has_a_page_for_each_script(tmp_path, count):
    scripts = [script(tmp_path / "examples", name=f"line{i}.py") for i in range(count)]
    gallery.write(scripts, tmp_path / "pages", tmp_path / "cache")
    page = (tmp_path / "pages" / "line0.md").read_text()
    assert page.startswith("# A line\n\nWhat it shows.")
    assert "![A line](line0.png)" in page
    assert "drawn 2" in page
    assert "{literalinclude} ../examples/line0.py" in page
    assert (tmp_path / "pages" / "line0.png").read_bytes() == b"a picture"
    index = (tmp_path / "pages" / "index.md").read_text()
    assert index.count("{container} thumbnail\n") == count


def test_a_script_is_run_once(tmp_path):
    one = script(tmp_path / "examples")
    first = gallery.run(one, tmp_path / "cache")
    (first.folder / gallery.PRINTED).write_text("from before")
    assert gallery.run(one, tmp_path / "cache").printed == "from before"
    script(tmp_path / "examples", EXAMPLE.replace("1 + 1", "2 + 2"))
    assert gallery.run(one, tmp_path / "cache").printed == "drawn 4\n"


BAD = {
    "without a title": ("print(1)", "must begin with a docstring"),
    "that fails": ('"""A line."""\n1 / 0', "ZeroDivisionError"),
    "that draws nothing": ('"""A line."""\n', "must save a figure"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_script_that_cannot_be_shown_ends_the_build(tmp_path, text, message):
    with pytest.raises(ExtensionError, match=message):
        gallery.run(script(tmp_path / "examples", text), tmp_path / "cache")


PRINTED = {
    "name    value\nsize       2.4\nrate       0.7": True,
    "Converged: `x` meets the tolerance.  The norm fell.\nTrue": False,
    "True": False,
}


@pytest.mark.parametrize(("printed", "is_table"), PRINTED.items())
def test_printed_tables_are_not_wrapped(printed, is_table):
    block = nodes.literal_block(printed, printed, language="text")
    columns.mark(None, nodes.section("", block))
    assert ("columns" in block["classes"]) == is_table


def test_sentences_below_a_table_are_no_wider_than_it():
    rows = ["parameter      value  standard error      relative", f"size{'2.4':>20}{'0.02':>40}"]
    sentence = "  " + "Errors are scaled by the residual standard deviation, " * 3
    text = "\n".join([*rows, sentence.rstrip(), "end"])
    block = nodes.literal_block(text, text, language="text")
    columns.mark(None, nodes.section("", block))
    first, second, *rest, end = block.astext().splitlines()
    assert [first, second, end] == [*rows, "end"]
    assert " ".join(line.strip() for line in rest) == " ".join(sentence.split())
    assert all(line.startswith("  ") for line in rest)
    assert max(map(len, rest)) <= max(columns.NARROWEST, len(rows[1]))
    assert block.rawsource == block.astext()  # else it would not be highlighted


@pytest.mark.parametrize(("drawn", "has"), [("cmap='magma'", True), ("color='red'", False)])
def test_pictures_with_a_colour_map_are_marked(tmp_path, drawn, has):
    one = script(tmp_path / "examples", EXAMPLE + f"# {drawn}\n")
    gallery.write([one], tmp_path / "pages", tmp_path / "cache")
    for page in ("line.md", "index.md"):
        assert ("colour-map\n" in (tmp_path / "pages" / page).read_text()) == has


def test_formulas_are_mathml():
    formula = mathml(r"\gamma = \beta - \frac{1-\alpha}{2-\alpha}", display="block")
    assert formula.startswith("<math")
    assert "<mfrac>" in formula
    assert 'display="block"' in formula


FAULTS = {
    '<a href="b.html">': "does not exist",
    '<a href="a.html#nowhere">': "no such anchor",
    '<img src="nowhere.png">': "does not exist",
    '<script src="https://example.org/a.js">': "loaded from the network",
    '<link href="//example.org/a.css">': "loaded from the network",
}


@pytest.mark.parametrize(("html", "message"), FAULTS.items(), ids=FAULTS)
def test_a_fault_of_the_site_is_reported(tmp_path, html, message):
    (tmp_path / "a.html").write_text(f'<p id="here">{html}<a href="https://arxiv.org">', "utf-8")
    (found,) = [fault for fault in link_check.faults(tmp_path) if message in fault]
    assert found.startswith("a.html: ")


def test_a_style_that_loads_from_the_network_is_reported(tmp_path):
    (tmp_path / "a.css").write_text("@import 'https://example.org/font.css';", "utf-8")
    (found,) = link_check.faults(tmp_path)
    assert "loaded from the network" in found


def test_a_site_without_fault(tmp_path):
    html = '<p id="here"><a href="a.html#here"><a href="#here"><a href="https://arxiv.org">'
    (tmp_path / "a.html").write_text(html, "utf-8")
    assert not list(link_check.faults(tmp_path))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `make docs` does, from a copy of the project."""
    folder = tmp_path_factory.mktemp("site")
    copied = ("docs", "src", "examples", "README.md", "CHANGELOG.md", "CITATION.cff")
    for name in copied:
        path = ROOT / name
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, folder / name)
    if not (folder / "examples" / "gallery").exists():
        picture = f"open({str(DOCS / 'trajectories.png')!r}, 'rb').read()"
        script(folder / "examples" / "gallery", EXAMPLE.replace('b"a picture"', picture))
    build = [sys.executable, "-m", "sphinx", "-E", "-a", "-q", "-n", "-W", "docs", "build/site"]
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(build, capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return folder / "build" / "site"


def test_the_site_has_no_fault(site):
    assert not list(link_check.faults(site))
    assert (site / "notebooks" / "curve.ipynb").exists()
    assert (site / "gallery" / "index.html").exists()
    assert "<math" in (site / "how" / "formula.html").read_text(encoding="utf-8")
    assert (site / "how" / "formula.html").read_text(encoding="utf-8").count("<svg") >= 2
    for page in site.rglob("*.html"):
        assert not re.search(r'src="[^"]*mathjax', page.read_text(encoding="utf-8").lower()), page


PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
STICKS_OUT = """
const scrolls = (one) => one.tagName !== "ARTICLE"
  && (/auto|scroll|hidden/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
return [...document.querySelectorAll("article *")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(one);
}).map((one) => one.tagName + " " + one.textContent.slice(0, 40));
"""


@pytest.fixture(scope="module")
def phone(site):
    """Start a browser with the screen of a phone."""
    lacks = missing()
    if lacks is not None:
        pytest.skip(lacks)
    with driven() as driver:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        yield driver


def test_nothing_is_wider_than_a_phone_unless_it_scrolls(site, phone):
    found = {}
    for page in sorted(site.rglob("*.html")):
        phone.get(page.as_uri())
        found[str(page.relative_to(site))] = phone.execute_script(STICKS_OUT)
    assert len(found) > 40
    assert {name: wide for name, wide in found.items() if wide} == {}


def test_the_meanings_of_parameters_need_no_scrolling_on_a_phone(site, phone):
    phone.get((site / "reference" / "solving.html").as_uri())
    boxes = phone.execute_script(
        """return [...document.querySelectorAll("table.parameters td:last-child")].map((one) => {
          const box = one.getBoundingClientRect();
          return [box.left, box.right, box.width];
        })"""
    )
    assert len(boxes) > 100
    left, right, width = zip(*boxes, strict=True)
    assert min(left) >= 0
    assert max(right) <= PHONE["width"]
    assert min(width) > 200


SEARCHED = {
    "terminal": "how/versions.html",
    "Levenberg": "how/auto.html",
    "bounds": "guides/function.html",
    "L-BFGS": "how/auto.html",
}


@pytest.mark.parametrize(("words", "page"), SEARCHED.items(), ids=SEARCHED)
def test_search_finds_from_disk(site, tmp_path, words, page):
    browse = command(site / "search.html", tmp_path)
    browse[-1] += f"?q={words}"
    wait = "--virtual-time-budget=8000"
    done = subprocess.run(
        [*browse, wait, "--dump-dom"], capture_output=True, text=True, timeout=600
    )
    assert re.search(r"found (\d\d+|[2-9]) page", done.stdout), done.stdout[-2000:]
    assert page in done.stdout
