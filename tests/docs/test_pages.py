"""Every block of code in the README and in docs/ runs and prints the block of text below it."""

import ast
import doctest
import re
import runpy
import signal

import pytest
import typer.main
from blocks import DOCS, PAGES, ROOT, blocks, commands, with_output

from cfgd.apps.cli import app

# pages that compile many programs run in `make slow` only
SLOW = {
    "coming-from.md",
    "guides/argmin.md",
    "guides/beyond-one-machine.md",
    "guides/checkpoints.md",
    "guides/curve.md",
    "guides/linear-model.md",
    "guides/lmfit.md",
    "guides/many.md",
    "guides/network.md",
    "guides/pinn.md",
    "guides/pytorch.md",
    "guides/scikit-learn.md",
    "guides/scipy.md",
    "guides/shell.md",
    "guides/sweep.md",
    "guides/tables.md",
    "how/momentum.md",
    "how/smoothing.md",
    "how/versions.md",
    "measured.md",
}
SAYS = {
    "scale.md": ["X on a machine, TB", "0.8         0.4", "passes from zeros", "from a sample"],
}
# numbers after the first few digits, and times, are not the same on every machine
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUNNING = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
    for name, page in PAGES.items()
    if any(with_output(page))
]


@pytest.fixture
def ctrl_c():
    """Let SIGINT raise KeyboardInterrupt, which shells disable for background processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("unchecked", "ctrl_c")  # as a user runs them
@pytest.mark.filterwarnings("default::DeprecationWarning")
@pytest.mark.parametrize("name", RUNNING)
def test_the_blocks_run(name, capsys):
    names: dict = {"__name__": "__main__"}
    said = ""
    for block, printed in with_output(PAGES[name]):
        for extra in ("torch", "lmfit"):
            if f"import {extra}\n" in block:
                reason = f"{extra} is not installed: pip install 'cfgd[{extra}]'"
                pytest.importorskip(extra, reason=reason)
        exec(compile(block, name, "exec"), names)
        out = capsys.readouterr().out
        said += out
        if printed is not None:
            assert doctest.OutputChecker().check_output(printed, out, FLAGS), (printed, out)
    for words in SAYS.get(name, ()):
        assert words in said


@pytest.mark.every_case
@pytest.mark.parametrize("name", PAGES)
def test_a_block_that_prints_shows_what(name):
    """Below the block, on pages for users."""
    if name.startswith(("guides/", "how/")) or name in ("start.md", "messages.md", "extending.md"):
        for block, printed in with_output(PAGES[name]):
            prints = "print(" in block or ".explain(" in block
            assert prints == (printed is not None), block


@pytest.mark.every_case
@pytest.mark.parametrize("name", PAGES)
def test_blocks_are_of_python_and_of_the_shell(name):
    for block in blocks(PAGES[name]):
        known = ("python", "text", "shell", "sh", "{drawn}", "{public}", "{toctree}")
        assert block.language in known
        if block.language == "python":
            ast.parse(block.text)


GIVEN = [(name, *words) for name, page in PAGES.items() for words in commands(page)]


@pytest.mark.parametrize("given", GIVEN, ids=" ".join)
def test_commands_are_known(given):
    _, command, *words = given
    known = typer.main.get_command(app).commands
    known[command].make_context(command, list(words))  # reads the options; runs nothing


@pytest.mark.every_case
@pytest.mark.parametrize("name", PAGES)
def test_no_page_without_an_example_or_a_picture(name):
    text = PAGES[name].read_text(encoding="utf-8")
    shown = {block.language for block in blocks(PAGES[name])}
    assert shown & {"python", "shell", "sh", "{drawn}", "{public}"} or "![" in text


@pytest.mark.every_case
@pytest.mark.parametrize("name", PAGES)
def test_figures_of_pages_exist(name):
    text = PAGES[name].read_text(encoding="utf-8")
    for figure in re.findall(r"^```\{drawn\} (\S+)", text, re.MULTILINE):
        assert (DOCS / "figures" / f"{figure}.py").exists(), figure


def test_every_figure_is_on_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.values())
    for figure in (DOCS / "figures").glob("*.py"):
        assert f"{{drawn}} {figure.stem}\n" in text, figure.name


def anchors(page):
    """Return the anchors of the headings, as the site makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    bare = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in bare}


LINKED = PAGES | {name: ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}


@pytest.mark.every_case
@pytest.mark.parametrize("name", LINKED)
def test_links_exist(name):
    page = LINKED[name]
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if link.startswith("http") or path == "gallery/index.md":  # which the build makes
            continue
        assert target.exists(), (name, link)
        if anchor:
            assert anchor in anchors(target), (name, link)


def test_every_page_is_in_the_contents():
    """Each page of a folder is in the contents of the front page or of the reference."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    text += (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    for name in PAGES:
        if "/" in name:
            stem = name.removesuffix(".md")
            assert f"\n{stem}\n" in text or f"\n{stem.removeprefix('reference/')}\n" in text, name


MAP = PAGES["map.md"].read_text(encoding="utf-8")


def located(path):
    """Return where a path of the map is, which starts in the package or in the project."""
    return next((each for each in (ROOT / "src/cfgd" / path, ROOT / path) if each.exists()), None)


def test_the_map_is_short():
    assert len(MAP.splitlines()) <= 60
    assert max(map(len, MAP.splitlines())) <= 120


def test_the_map_names_paths_that_exist():
    named = re.findall(r"`([\w/]+(?:/|\.py|\.md))`", MAP)
    assert len(named) > 30
    assert not [path for path in named if located(path) is None]


def test_the_map_names_functions_and_classes_of_their_files():
    named = re.findall(r"`([\w/]+\.py)`: `(\w+)`", MAP)
    assert len(named) > 4
    for path, name in named:
        assert re.search(rf"^(def|class) {name}\b", located(path).read_text(), re.MULTILINE), name


def test_the_arrows_of_the_map_point_downwards():
    """They are read from the imports; the figure lists the packages from the top down."""
    figure = runpy.run_path(str(DOCS / "figures" / "packages.py"))
    arrows, packages = figure["data"]()["arrows"], list(figure["PACKAGES"])
    assert {("solve", "methods/auto"), ("methods/paper", "calculus")} <= set(arrows)
    assert all(packages.index(start) < packages.index(end) for start, end in arrows)
    assert all(f"| `{package}/` |" in MAP for package in packages)
