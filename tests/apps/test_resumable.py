"""What long commands share: reuse of saved results, and how a run ends."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cfgd._core.files import INTERRUPTED, NotWrittenError
from cfgd.apps.resumable import RunEnd, print_warning, result_file, reuse_or_compute, save_result


@dataclasses.dataclass(frozen=True)
class Result:
    key: dict[str, Any]


@pytest.mark.parametrize(
    ("name", "seeds", "reused"), [("a", 1, True), ("a", 2, False), ("b", 1, False)]
)
def test_result_is_reused_if_name_and_key_are_equal(name: str, seeds: int, reused: bool) -> None:
    saved, new = {"a": Result({"seeds": 1})}, Result({"seeds": seeds})
    result, was_reused = reuse_or_compute(saved, name, {"seeds": seeds}, lambda: new)
    assert was_reused == reused
    assert result is (saved["a"] if reused else new)


def test_result_is_written_to_its_file(tmp_path: Path) -> None:
    save_result(tmp_path, "a", {"seeds": 1})
    assert json.loads((tmp_path / result_file("a")).read_text()) == {"seeds": 1}


def printed(end: RunEnd) -> str:
    console = Console(file=io.StringIO(), width=200)
    end.show(console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_complete_run_prints_nothing_and_exits_with_zero() -> None:
    end = RunEnd()
    with end.catch_write_error(), end.catch_interrupt():
        pass
    assert printed(end) == ""
    assert end.exit_code() == 0


def test_interrupted_run_is_recorded() -> None:
    end = RunEnd()
    with end.catch_write_error(), end.catch_interrupt():
        raise KeyboardInterrupt
    assert "Interrupted: finished results are saved; run the same command with --resume" in printed(
        end
    )
    assert end.exit_code() == INTERRUPTED


def test_write_error_is_recorded_and_raised_at_the_end() -> None:
    end = RunEnd()
    with end.catch_write_error(), end.catch_interrupt():
        raise NotWrittenError("a.json could not be written.")
    assert "Some files could not be written" in printed(end)
    with pytest.raises(NotWrittenError, match=r"a\.json could not be written"):
        end.exit_code()


def test_warning_does_not_interpret_markup_and_control_characters() -> None:
    console = Console(file=io.StringIO(), width=200)
    print_warning(console, "[bold]\x1b[2J.json")
    assert console.file.getvalue() == "[bold]\\x1b[2J.json\n"  # type: ignore[attr-defined]
