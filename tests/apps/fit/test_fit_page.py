"""The report, in a browser: figures and tables, light and dark, and on a phone."""

import re
import subprocess

import numpy as np
import pytest
from fit_tables import lopsided, targets, write

from browser import command
from cfgd.apps.fit.console import print_result
from cfgd.apps.fit.report_page import report_page
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit
from problems import few

# what an attacker, or a sloppy spreadsheet, may call a column, a label or a target
NASTY = '$x^{$ <script>document.title="caught"</script> & "q" \x1b[2J _ ü 漢'
LONG = "a_name_without_any_space_in_it_" * 6
# a report in a frame, which is as wide as a phone or a desk; what is seen of it becomes text
LOOK = """<!doctype html><iframe id="report" src="report.html" style="border: 0"></iframe>
<pre id="seen"></pre><script>
const frame = document.getElementById("report"), seen = document.getElementById("seen");
frame.onload = () => {
  for (const width of [360, 390, 768, 1100]) {
    frame.style.width = width + "px"; frame.style.height = "3000px";
    const inside = frame.contentDocument;
    seen.textContent += `width ${width} needs ${inside.documentElement.scrollWidth};`;
  }
  const body = frame.contentWindow.getComputedStyle(frame.contentDocument.body);
  seen.textContent += `paper ${body.backgroundColor}; title ${frame.contentDocument.title}`;
};
</script>"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Of three labels, all with names that are meant to break out."""
    random, columns, eta = lopsided()
    labels = targets("multinomial", random, eta)
    columns = {NASTY: columns["small"], LONG: columns["large"], "kind": columns["kind"]}
    columns["kind"] = np.where(columns["kind"] == "a", NASTY, columns["kind"])
    y = np.where(labels == "red", NASTY, labels)
    path = write(tmp_path_factory.mktemp("fit") / "a.parquet", columns | {NASTY + "y": y})
    return fit(FitOptions(path, NASTY + "y", l2=1.0), ProgressReporter())


@pytest.fixture(scope="module")
def folder(done, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "report.html").write_text(report_page(done), encoding="utf-8")
    (folder / "look.html").write_text(LOOK, encoding="utf-8")
    return folder


def browse(folder, file, *flags):
    # the page that looks at the report reads it
    flags = ("--allow-file-access-from-files", *flags, "--dump-dom")
    opened = [*command(folder / file, folder), *flags]
    return subprocess.run(opened, capture_output=True, text=True, timeout=60).stdout


def test_the_page_shows_its_figures_and_tables_in_a_browser(folder, done):
    dom = browse(folder, "report.html")
    assert dom.count("<svg") == dom.count("<figcaption>") == 4
    for title in ("Coefficients of standardised columns", "Convergence", "Calibration", "ROC"):
        assert f"<figcaption>{title}</figcaption>" in dom
    assert dom.count('<tr class="term">') == 3 * len(done.model.terms)
    assert "<script" not in dom
    assert "caught</title>" not in dom


def test_nothing_of_the_data_is_markup(folder):
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;document.title=&quot;caught&quot;&lt;/script&gt;" in html
    assert "\x1b" not in html
    outside = re.sub(r"http://www\.w3\.org/[\w/]+", "", html)  # names of what SVG is
    assert "http:" not in outside  # nobody is asked
    assert "https:" not in outside


@pytest.mark.parametrize("theme", few(["dark", "light"]))
def test_it_fits_a_phone_in_light_and_in_dark(folder, theme):
    flags = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    seen = browse(folder, "look.html", *(flags if theme == "dark" else ()))
    widths = re.findall(r"width (\d+) needs (\d+);", seen)
    assert [int(width) for width, _ in widths] == [360, 390, 768, 1100]
    assert all(int(needs) <= int(width) for width, needs in widths)
    paper = "rgb(20, 23, 28)" if theme == "dark" else "rgb(255, 255, 255)"
    assert f"paper {paper};" in seen


@pytest.mark.parametrize("loss", few(["poisson", "squared"]))
def test_numbers_have_residuals(tmp_path, loss):
    random, columns, eta = lopsided()
    path = write(tmp_path / "a.csv", columns | {"y": targets(loss, random, eta)})
    html = report_page(fit(FitOptions(path, "y", loss=loss), ProgressReporter()))
    for title in ("Residuals", "How residuals are spread"):
        assert f"<figcaption>{title}</figcaption>" in html


def test_the_terminal_obeys_nothing_either(done, tmp_path):
    from rich.console import Console

    with open(tmp_path / "screen", "w", encoding="utf-8") as file:
        print_result(Console(file=file, width=200), done)
    screen = (tmp_path / "screen").read_text(encoding="utf-8")
    assert "\x1b" not in screen
    assert "\\x1b[2J" in screen
