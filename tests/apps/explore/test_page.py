"""The page of the explorer is complete and self-contained; the command writes and opens it."""

import re
import webbrowser
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cfgd.apps.cli import app
from cfgd.apps.explore import page
from cfgd.apps.explore.page import EXPORT, IMPORT, bundle

FOLDER = Path(str(files("cfgd.apps.explore"))) / "files"
SCRIPTS = sorted(FOLDER.rglob("*.js"))


def test_the_page_makes_no_requests():
    text = page()
    assert not re.search(r"https?:", text)
    assert not re.search(r"""(src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest|WebSocket""", text)
    assert "default-src 'none'" in text


def test_scripts_do_not_evaluate_text():
    for path in SCRIPTS:
        assert not re.search(r"\beval\b|new Function|innerHTML|document\.write", path.read_text())


def test_every_file_is_in_the_page():
    text = page()
    for path in SCRIPTS:
        assert f'files["{path.relative_to(FOLDER).as_posix()}"] = ' in text
    assert "{{" not in text.replace("${{", "")
    assert "/* LIGHT */" not in text
    assert text.count("</script") == 1


def test_imports_are_exports_and_in_use():
    exports = {path: {name for _, name in EXPORT.findall(path.read_text())} for path in SCRIPTS}
    used = set()
    for path in SCRIPTS:
        text = path.read_text()
        for names, source in IMPORT.findall(text):
            other = (path.parent / source).resolve()
            for name in re.findall(r"\w+", names):
                assert name in exports[other], (path.name, name)
                assert len(re.findall(rf"\b{name}\b", text)) > 1, (path.name, name)
                used.add((other, name))
    for path, names in exports.items():
        assert {name for name in names if (path, name) not in used} == set(), path.name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_is_long(path):
    assert len(path.read_text().splitlines()) <= 300


def test_a_cycle_of_imports_is_an_error(tmp_path):
    (tmp_path / "main.js").write_text('import { a } from "./other.js";\nexport const b = a;\n')
    (tmp_path / "other.js").write_text('import { b } from "./main.js";\nexport const a = b;\n')
    with pytest.raises(ValueError, match=r"^main.js imports itself: main.js imports other.js"):
        bundle(tmp_path)


def run(*arguments):
    result = CliRunner().invoke(app, ["explore", *arguments], env={"COLUMNS": "120"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("has_browser", [True, False])
def test_the_command_writes_and_opens_the_page(tmp_path, monkeypatch, has_browser):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or has_browser)
    path = tmp_path / "new" / "page.html"
    code, output = run("--out", str(path))
    assert code == 0
    assert path.read_text(encoding="utf-8") == page()
    assert opened == [path.as_uri()]
    assert f"The explorer is in {path}." in output
    assert ("No browser could be started" in output) == (not has_browser)


def test_no_open_starts_no_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail(url))
    assert run("--out", str(tmp_path / "page.html"), "--no-open")[0] == 0


def test_a_path_that_cannot_be_written_is_an_error(tmp_path):
    code, output = run("--out", "/proc/page.html", "--no-open")
    assert code == 2
    assert "The folder /proc cannot be written to" in output
    code, output = run("--out", str(tmp_path), "--no-open")
    assert code == 2
    assert f"{tmp_path} is a folder where a file is to be: move it away." in output.replace(
        "\n", ""
    )


@pytest.mark.slow
def test_the_wheel_has_the_files(tmp_path):
    build = pytest.importorskip("hatchling.build", reason="hatchling builds the wheel")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(Path(__file__).parents[3])
        name = build.build_wheel(str(tmp_path))
    names = set(zipfile.ZipFile(tmp_path / name).namelist())
    for path in FOLDER.rglob("*.*"):
        assert f"cfgd/apps/explore/files/{path.relative_to(FOLDER).as_posix()}" in names
