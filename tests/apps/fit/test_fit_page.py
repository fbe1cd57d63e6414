"""The report in a browser: figures and tables, light and dark themes, narrow screens."""

import re
import subprocess

import numpy as np
import pytest
from fit_tables import skewed_columns, targets, write

from browser import command
from cfgd.apps.fit.console import print_result
from cfgd.apps.fit.report_page import report_page
from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit
from problems import few

# a name of a column, label or target that tries to inject markup and terminal commands
HOSTILE = '$x^{$ <script>document.title="caught"</script> & "q" \x1b[2J _ ü 漢'
LONG_NAME = "a_name_without_any_space_in_it_" * 6
# a page that shows the report in frames of several widths, and writes what it measures as text
MEASURE = """<!doctype html><iframe id="report" src="report.html" style="border: 0"></iframe>
<pre id="measured"></pre><script>
const frame = document.getElementById("report"), measured = document.getElementById("measured");
frame.onload = () => {
  for (const width of [360, 390, 768, 1100]) {
    frame.style.width = width + "px"; frame.style.height = "3000px";
    const inside = frame.contentDocument;
    measured.textContent += `width ${width} needs ${inside.documentElement.scrollWidth};`;
  }
  const body = frame.contentWindow.getComputedStyle(frame.contentDocument.body);
  measured.textContent += `paper ${body.backgroundColor}; title ${frame.contentDocument.title}`;
};
</script>"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A fit of three classes in which all names are hostile."""
    random, columns, eta = skewed_columns()
    labels = targets("multinomial", random, eta)
    columns = {HOSTILE: columns["small"], LONG_NAME: columns["large"], "kind": columns["kind"]}
    columns["kind"] = np.where(columns["kind"] == "a", HOSTILE, columns["kind"])
    y = np.where(labels == "red", HOSTILE, labels)
    path = write(tmp_path_factory.mktemp("fit") / "a.parquet", columns | {HOSTILE + "y": y})
    return fit(FitOptions(path, HOSTILE + "y", l2=1.0), ProgressReporter())


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "report.html").write_text(report_page(result), encoding="utf-8")
    (folder / "measure.html").write_text(MEASURE, encoding="utf-8")
    return folder


def browse(folder, file, *flags):
    # the measuring page reads the report from the same folder
    flags = ("--allow-file-access-from-files", *flags, "--dump-dom")
    opened = [*command(folder / file, folder), *flags]
    return subprocess.run(opened, capture_output=True, text=True, timeout=600).stdout


@pytest.mark.slow
def test_the_page_shows_its_figures_and_tables_in_a_browser(folder, result):
    dom = browse(folder, "report.html")
    assert dom.count("<svg") == dom.count("<figcaption>") == 4
    titles = (
        "Largest standardised coefficient of each column",
        "Convergence",
        "Calibration, 95 % intervals",
        "ROC",
    )
    for title in titles:
        assert f"<figcaption>{title}</figcaption>" in dom
    assert dom.count('<tr class="term">') == 3 * len(result.model.terms)
    assert "<script" not in dom
    assert "caught</title>" not in dom


def test_names_are_escaped_in_the_page(folder):
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;document.title=&quot;caught&quot;&lt;/script&gt;" in html
    assert "\x1b" not in html
    outside = re.sub(r"http://www\.w3\.org/[\w/]+", "", html)  # namespaces of SVG
    assert "http:" not in outside  # the page loads nothing from the network
    assert "https:" not in outside


@pytest.mark.slow
@pytest.mark.parametrize("theme", few(["dark", "light"]))
def test_the_page_fits_narrow_screens_in_both_themes(folder, theme):
    flags = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    measured = browse(folder, "measure.html", *(flags if theme == "dark" else ()))
    widths = re.findall(r"width (\d+) needs (\d+);", measured)
    assert [int(width) for width, _ in widths] == [360, 390, 768, 1100]
    assert all(int(needs) <= int(width) for width, needs in widths)
    paper = "rgb(20, 23, 28)" if theme == "dark" else "rgb(255, 255, 255)"
    assert f"paper {paper};" in measured


@pytest.mark.slow
@pytest.mark.parametrize("loss", few(["poisson", "squared"]))
def test_number_targets_have_residual_plots(tmp_path, loss):
    random, columns, eta = skewed_columns()
    path = write(tmp_path / "a.csv", columns | {"y": targets(loss, random, eta)})
    html = report_page(fit(FitOptions(path, "y", loss=loss), ProgressReporter()))
    for title in ("Residuals", "Distribution of residuals"):
        assert f"<figcaption>{title}</figcaption>" in html


def test_names_are_escaped_in_the_terminal(result, tmp_path):
    from rich.console import Console

    with open(tmp_path / "screen", "w", encoding="utf-8") as file:
        print_result(Console(file=file, width=200), result)
    screen = (tmp_path / "screen").read_text(encoding="utf-8")
    assert "\x1b" not in screen
    assert "\\x1b[2J" in screen
