"""The notebooks of the guides have the format of Jupyter, and their cells print what they show."""

import doctest
import json
import re
import subprocess
import sys

import pytest
from blocks import DOCS, PAGES, blocks

SCRIPT = DOCS / "extensions" / "notebooks.py"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    subprocess.run([sys.executable, str(SCRIPT), str(folder)], check=True)
    return {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.ipynb")}


NAMES = ("curve", "function", "linear-model", "many", "network", "scikit-learn")


def test_six_guides_have_notebooks(notebooks):
    assert sorted(notebooks) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_the_format_of_jupyter(notebooks, name):
    """By https://nbformat.readthedocs.io/en/latest/format_description.html, version 4.5."""
    notebook = notebooks[name]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", each) for each in ids)
    for cell in notebook["cells"]:
        keys = {"id", "cell_type", "metadata", "source"}
        more = {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert set(cell) == keys | more
        assert all(isinstance(line, str) for line in cell["source"])
        assert "".join(cell["source"]).strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_the_code_and_the_text_of_its_page(notebooks, name):
    page = PAGES[f"guides/{name}.md"]
    code = [c for c in notebooks[name]["cells"] if c["cell_type"] == "code"]
    shown = [block.text.rstrip("\n") for block in blocks(page) if block.language == "python"]
    assert ["".join(cell["source"]) for cell in code] == shown
    texts = sum(block.language == "text" for block in blocks(page))
    assert sum(bool(cell["outputs"]) for cell in code) == texts
    text = "".join("".join(c["source"]) for c in notebooks[name]["cells"] if c not in code)
    for heading in re.findall(r"^## .+$", page.read_text("utf-8"), re.MULTILINE):
        assert heading in text
    assert "```{" not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_cells_of_a_notebook_run_in_a_kernel_of_jupyter(notebooks, name):
    nbformat = pytest.importorskip("nbformat", reason="nbformat comes with cfgd[slow]")
    nbclient = pytest.importorskip("nbclient", reason="nbclient comes with cfgd[slow]")
    notebook = nbformat.reads(json.dumps(notebooks[name]), as_version=4)  # as from the file
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    for before, after in zip(notebooks[name]["cells"], notebook.cells, strict=True):
        for output in before.get("outputs", ()):
            shown = "".join(output["text"]) + "\n"
            said = "".join(each.text for each in after.outputs if each.get("name") == "stdout")
            assert doctest.OutputChecker().check_output(shown, said, FLAGS), (shown, said)
