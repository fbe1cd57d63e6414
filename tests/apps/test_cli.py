"""The command `cfgd` and, in a browser, the report that it writes."""

from __future__ import annotations

import dataclasses
import errno
import struct
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from browser import command
from cfgd.__main__ import main
from cfgd._core.extras import install_command
from cfgd.apps.cli import app
from cfgd.apps.page.drawing import Panel
from cfgd.apps.reproduce.experiment import Record
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.apps.reproduce.report.claim import Claim
from problems import few


def cfgd(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120", "NO_COLOR": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    code, output = cfgd("reproduce", "fig1", "smoothing", "--out", str(folder))
    assert code == 0, output
    assert "The adaptive terminal reaches machine precision" in output
    assert str(folder / "index.html") in output.replace("\n", "")
    return folder


def test_help_lists_commands_and_options() -> None:
    code, output = cfgd("--help")
    assert code == 0
    for words in ("gradient descent with a memory", "cfgd reproduce --list", "make docs"):
        assert words in output
    code, output = cfgd("reproduce", "--help")
    for option in ("--full", "--seeds", "--out", "--data", "--resume", "--list"):
        assert option in output


def test_list_has_every_experiment() -> None:
    code, output = cfgd("reproduce", "--list")
    assert code == 0
    for name in ("fig1", "smoothing", "tikhonov", "random", "uci", "networks", "quadrature"):
        assert name in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig9",), "There is no experiment 'fig9'; the known ones are: fig1, smoothing"),
        (("fig1", "--out", "/proc/report"), "The folder /proc/report cannot be written to"),
        (("uci", "--data", "/nowhere.csv"), "There is no file /nowhere.csv."),
        (("fig1", "--data", "/nowhere.csv"), "There is no file /nowhere.csv."),
        (("fig1", "--seeds", "0"), "--seeds"),
    ],
)
def test_invalid_arguments_are_reported_before_the_run(
    tmp_path: Path, arguments: Sequence[str], message: str
) -> None:
    out = () if "--out" in arguments else ("--out", str(tmp_path / "out"))
    code, output = cfgd("reproduce", *arguments, *out)
    assert code == 2
    assert message in output
    assert "Traceback" not in output
    assert not (tmp_path / "out" / "index.html").exists()


@pytest.mark.slow
def test_resume_uses_finished_results(report: Path) -> None:
    code, output = cfgd("reproduce", "fig1", "smoothing", "--out", str(report), "--resume")
    assert code == 0
    assert output.count("from the previous run") == 2


@pytest.fixture
def quick_fig1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the experiment fig1 by one that does not compute."""
    claim = Claim("it is so", "figure 1", 1.0, "at most", lambda data: 1.0)
    panel = Panel("a line", lambda axis, data: axis.plot([1, 2], [1, 2]))
    replacement = dataclasses.replace(
        EXPERIMENTS["fig1"],
        run=lambda setting, meter: Record({}, {}),
        claims=[claim],
        panels=[[panel]],
    )
    monkeypatch.setitem(EXPERIMENTS, "fig1", replacement)


def test_a_full_disk_is_reported_after_the_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_fig1: None
) -> None:
    def full(*names: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    code, output = cfgd("reproduce", "fig1", "--out", str(tmp_path))
    assert code == 2
    assert "it is so" in output
    assert "run the same command with --resume to continue." in output
    assert f"{tmp_path}/parts/fig1.json could not be written: No space left on device." in output
    assert "Traceback" not in output


def test_a_symbolic_link_in_the_output_is_reported_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "fig1.png").symlink_to("/dev/null")
    code, output = cfgd("reproduce", "fig1", "--out", str(tmp_path))
    assert code == 2
    assert f"{tmp_path}/fig1.png is a link where a file is to be: move it away." in output


def test_a_damaged_result_is_reported_and_run_again(tmp_path: Path, quick_fig1: None) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "fig1.json").write_text("{", encoding="utf-8")
    (tmp_path / "parts" / "\x1b[2Jx.json").write_text("{}", encoding="utf-8")
    code, output = cfgd("reproduce", "fig1", "--out", str(tmp_path), "--resume")
    assert code == 0
    assert "fig1.json is not used: line 1 is not JSON (Expecting property name" in output
    assert "\\x1b[2Jx.json is not used: the field 'about' of the part is missing." in output
    assert "\x1b" not in output
    assert "from the previous run" not in output


def test_markup_in_a_saved_result_is_escaped(tmp_path: Path, quick_fig1: None) -> None:
    cfgd("reproduce", "fig1", "--out", str(tmp_path))
    path = tmp_path / "parts" / "fig1.json"
    saved = path.read_text(encoding="utf-8").replace("\\u2264 1", "[/] 1")
    path.write_text(saved, encoding="utf-8")
    code, output = cfgd("reproduce", "fig1", "--out", str(tmp_path), "--resume")
    assert code == 0
    assert "[/] 1" in output


@pytest.mark.parametrize("command", ["reproduce", "bench"])
def test_an_invalid_gas_file_is_reported_by_every_command(tmp_path: Path, command: str) -> None:
    path = tmp_path / "gas\n.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("batch\x1b[2J.dat", "1")
    code, output = cfgd(command, "--data", str(path), "--out", str(tmp_path / "out"))
    assert code == 2
    assert "gas\\n.zip, batch\\x1b[2J.dat: line 1 has no concentration" in output
    assert output.strip().count("\n") == 0


@pytest.mark.slow
def test_output_that_cannot_be_written_is_reported() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cfgd", "reproduce", "--list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "cfgd: The output could not be written: No space left on device.\n"


WITHOUT_EXTRAS = """
import sys
for name in ("typer", "rich", "matplotlib", "sklearn", "pyarrow"):
    sys.modules[name] = None
import cfgd, cfgd.apps.reproduce
from cfgd.__main__ import main
main()
"""


def without_extras(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where its optional libraries cannot be imported."""
    command = [sys.executable, "-c", WITHOUT_EXTRAS, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_without_extras_there_are_help_and_explorer(tmp_path: Path) -> None:
    done = without_extras()
    assert done.returncode == 0, done.stderr
    assert "explore" in done.stdout
    assert "[fit]" in done.stdout
    path = tmp_path / "page.html"
    done = without_extras("explore", "--no-open", "--out", str(path))
    assert (done.returncode, done.stdout) == (0, f"The explorer is in {path}.\n"), done.stderr
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    done = without_extras("explore", "--no-open", "--out", str(path / "page.html"))
    assert (done.returncode, done.stderr[:6]) == (2, "cfgd: ")


def test_without_extras_other_commands_say_what_to_install() -> None:
    done = without_extras("fit", "data.csv")
    assert done.returncode == 2
    assert done.stderr == f"`cfgd fit` needs typer: {install_command('fit')}.\n"


@pytest.fixture
def browse(tmp_path: Path, report: Path) -> list[str]:
    return command(report / "index.html", tmp_path)


@pytest.mark.slow
def test_the_page_shows_its_figures_and_table_in_a_browser(browse: list[str]) -> None:
    done = subprocess.run([*browse, "--dump-dom"], capture_output=True, text=True, timeout=600)
    dom = done.stdout
    assert dom.count("<svg") == 4 + 2
    assert dom.count("<figcaption>") == 4 + 2
    assert dom.count('<tr class="claim">') == 8 + 6
    assert "✓ holds" in dom
    for name in ("fig1", "smoothing"):
        assert f'<section id="{name}">' in dom


@pytest.mark.slow
@pytest.mark.parametrize("width", few([390, 1100]))
def test_the_page_is_painted(browse: list[str], tmp_path: Path, width: int) -> None:
    picture = tmp_path / "page.png"
    size = f"--window-size={width},2000"
    subprocess.run([*browse, size, f"--screenshot={picture}"], capture_output=True, timeout=600)
    raw = picture.read_bytes()
    assert struct.unpack(">II", raw[16:24]) == (width, 2000)
    assert len(raw) > 30_000  # an empty page is a few thousand bytes


def test_an_interrupted_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise SystemExit(130)

    monkeypatch.setattr("cfgd.apps.cli.app", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted by Ctrl-C.\n"
