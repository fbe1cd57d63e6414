"""Saved results that are damaged or malicious are refused with one sentence and not shown."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cfgd.apps.reproduce.report.claim import HOLDS_FOR, Case, Outcome
from cfgd.apps.reproduce.report.conclusions import conclusions
from cfgd.apps.reproduce.report.page import page
from cfgd.apps.reproduce.report.report import write_report
from cfgd.apps.reproduce.report.result import PNG_SIGNATURE, ExperimentResult, load_results

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'viewBox="0 0 9 9" role="img" aria-label="a &lt;b&gt;"><g id="one-0-0-a">'
    '<path d="M 0 0 L 9 9" style="fill: none; stroke: var(--blue); stroke-width: 0.5"/></g>INSIDE'
    "</svg>"
)
EVIL = "<script>alert(1)</script>"
CASES = (Case("h1", 1.0, 1, 1, True), Case("h2", float("inf"), 0, 1, False))
OUTCOME = Outcome(
    "it is so", "figure 1", "≤ 1", (1.0, float("inf")), 1.0, 0.5, HOLDS_FOR, "", CASES
)
ONE = ExperimentResult(
    name="one",
    title="One",
    where="figure 1",
    about="About one.",
    missing="the start",
    conclusion="It came out so.",
    key={"size": "tiny", "seeds": None, "data": None, "version": "0"},
    outcomes=(OUTCOME,),
    parameters={"seeds": [0, 1], "x0": {"a": None, "b": True}},
    notes=("A note.",),
    panels=((("a panel", SVG.replace("INSIDE", "")),),),
    picture=base64.b64encode(PNG_SIGNATURE + b"rest").decode(),
    seconds=1.5,
)


def load(folder: Path) -> tuple[dict[str, ExperimentResult], list[str]]:
    """Return the loaded results and the warnings."""
    warnings: list[str] = []
    return load_results(folder, warnings.append), warnings


def save_changed(folder: Path, *steps: Any, to: Any) -> None:
    """Save a result with the entry at the path `steps` changed."""
    saved = json.loads(json.dumps(dataclasses.asdict(ONE)))
    inner = saved
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = to
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "one.json").write_text(json.dumps(saved), encoding="utf-8")


def test_result_is_read_back_equal(tmp_path: Path) -> None:
    ONE.save(tmp_path)
    assert load(tmp_path) == ({"one": ONE}, [])


def test_missing_folder_has_no_results_and_no_warnings(tmp_path: Path) -> None:
    assert load(tmp_path / "nowhere") == ({}, [])


@pytest.mark.parametrize(
    ("steps", "to", "message"),
    [
        (("name",), EVIL, "name must be a name of letters and digits, got '<script>"),
        (("name",), "../one", "name must be a name of letters and digits, got '../one'"),
        (("name",), "two", "name must be 'one' as in the file's name, got 'two'"),
        (("title",), 3, "title must be text, got 3"),
        (("title",), "\x1b[2J", "title must be text without control characters, got '\\x1b[2J'"),
        (("title",), "\ud800", "title must be text without control characters, got '\\ud800'"),
        (("where",), None, "where must be text, got None"),
        (("about",), ["x"], "about must be text, got a list"),
        (("key",), [], "key must be an object, got a list"),
        (("key", "size"), "huge", "key.size must be 'tiny' or 'quick' or 'full', got 'huge'"),
        (("key", "size"), {}, "key.size must be 'tiny' or 'quick' or 'full', got an object"),
        (("key", "seeds"), "four", "key.seeds must be null or a number of seeds, got 'four'"),
        (("key", "seeds"), True, "key.seeds must be null or a number of seeds, got True"),
        (("key", "more"), 1, "the field 'more' of key is unknown"),
        (("outcomes",), {"0": 1}, "outcomes must be a list, got an object"),
        (("outcomes", 0), "x", "outcomes[0] must be an object, got 'x'"),
        (("outcomes", 0, "values"), 1.0, "outcomes[0].values must be a list, got 1.0"),
        (("outcomes", 0, "values", 1), "x", "outcomes[0].values[1] must be a number, got 'x'"),
        (("outcomes", 0, "median"), True, "outcomes[0].median must be a number, got True"),
        (("outcomes", 0, "median"), 10**400, "outcomes[0].median must be a number, got 1000"),
        (("outcomes", 0, "fraction"), float("nan"), "outcomes[0].fraction must be a number from 0"),
        (("outcomes", 0, "verdict"), EVIL, "outcomes[0].verdict must be 'holds' or"),
        (("outcomes", 0, "verdict"), [], "outcomes[0].verdict must be 'holds' or"),
        (("outcomes", 0, "cases"), {}, "outcomes[0].cases must be a list, got an object"),
        (("outcomes", 0, "cases", 0, "hits"), 0.5, "cases[0].hits must be a whole number, got 0.5"),
        (("outcomes", 0, "cases", 0, "count"), -1, "cases[0].count must be a whole number, got -1"),
        (("outcomes", 0, "cases", 1, "holds"), 1, "cases[1].holds must be true or false, got 1"),
        (("outcomes", 0, "cases", 1, "name"), "\x1b[2J", "cases[1].name must be text without"),
        (("missing",), 1, "missing must be text, got 1"),
        (("conclusion",), ["x"], "conclusion must be text, got a list"),
        (("outcomes", 0, "extra"), 1, "the field 'extra' of outcomes[0] is unknown"),
        (("parameters",), [1], "parameters must be an object, got a list"),
        (("parameters", "x"), {"a": [[[[1]]]]}, "must not be nested deeper than 5 times"),
        (("parameters", "x"), float("nan"), "parameters.x must be a finite number, got nan"),
        (("notes",), "a note", "notes must be a list, got 'a note'"),
        (("notes", 0), 1, "notes[0] must be text, got 1"),
        (("panels",), 1, "panels must be a list, got 1"),
        (("panels", 0), "ab", "panels[0] must be a list, got 'ab'"),
        (("panels", 0, 0), ["a"], "panels[0][0] must be a title and an SVG, got a list"),
        (("panels", 0, 0, 1), 4, "panels[0][0][1] must be text, got 4"),
        (("picture",), 4, "picture must be a PNG file in base64, got 4"),
        (("picture",), "PHNjcmlwdD4=", "picture must be a PNG file in base64, got 'PHNj"),
        (("seconds",), "long", "seconds must be a number, got 'long'"),
        (("seconds",), float("inf"), "seconds must be a number from 0 to 1e+09, got inf"),
        (("more",), 1, "the field 'more' of the part is unknown"),
    ],
)
def test_wrong_entry_is_named(
    tmp_path: Path, steps: tuple[Any, ...], to: Any, message: str
) -> None:
    save_changed(tmp_path, *steps, to=to)
    found, [warning] = load(tmp_path)
    assert found == {}
    assert warning.startswith(f"{tmp_path / 'parts' / 'one.json'} is not used: ")
    assert message in warning
    assert warning.endswith(".")
    assert "\n" not in warning


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(ExperimentResult)])
def test_missing_entry_is_named(tmp_path: Path, field: str) -> None:
    saved = dataclasses.asdict(ONE)
    del saved[field]
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.json").write_text(json.dumps(saved), encoding="utf-8")
    _, [warning] = load(tmp_path)
    assert f"the field '{field}' of the part is missing." in warning


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "line 1 is not JSON"),
        (b'{\n"name": "one",\n', "line 3 is not JSON"),
        (b"\xff\xfe\x00", "it is not JSON"),
        (b'{"name": "\xe9"}', "it is not JSON"),
        (b"[" * 1_000_000, "it is not JSON"),
        (b"1" * 5000, "it is not JSON"),
        (b"[]", "it must be an object, got a list"),
        (b"null", "it must be an object, got None"),
    ],
)
def test_file_that_is_not_a_result_is_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.json").write_bytes(raw)
    _, [warning] = load(tmp_path)
    assert message in warning


def test_special_and_oversized_files_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    (folder / "a.json").mkdir(parents=True)
    os.mkfifo(folder / "b.json")
    (folder / "c.json").symlink_to(tmp_path)
    with (folder / "d.json").open("wb") as file:
        file.truncate(60_000_000)
    _, warnings = load(tmp_path)
    assert [one.rsplit(": ", 1)[-1] for one in warnings] == [
        *["it is no ordinary file."] * 3,
        "it is larger than 50 MB.",
    ]


@pytest.mark.parametrize(
    "inside",
    [
        EVIL,
        "<SCRIPT/>",
        '<x:script xmlns:x="http://www.w3.org/2000/svg"/>',
        '<script xmlns="http://www.w3.org/1999/xhtml">1</script>',
        "<!--><script>alert(1)</script>-->",
        "<![CDATA[<script>]]>",
        "<?xml version='1.0'?>",
        "<!DOCTYPE x [<!ENTITY e 'e'>]>",
        "<foreignObject><p/></foreignObject>",
        "<style>*{display:none}</style>",
        "<title>x</title>",
        '<image xlink:href="http://example.org/x.png"/>',
        '<a xlink:href="javascript:alert(1)"><text>x</text></a>',
        '<use xlink:href="http://example.org/x.svg#a"/>',
        '<use href="#a"/>',
        '<g onload="alert(1)"/>',
        '<g style="background: url(http://example.org)"/>',
        '<g style="fill: url(http://example.org)"/>',
        '<g style="position: fixed"/>',
        '<g style="fill: \\75 rl(x)"/>',
        '<g clip-path="url(http://example.org)"/>',
        '<g id="&quot;&gt;"/>',
        '<animate attributeName="href"/>',
        "<g>",
        "&undefined;",
    ],
)
def test_figure_with_a_script_or_a_link_is_refused(tmp_path: Path, inside: str) -> None:
    save_changed(tmp_path, "panels", 0, 0, 1, to=SVG.replace("INSIDE", inside))
    found, [warning] = load(tmp_path)
    assert found == {}
    assert "one.json is not used: panels[0][0][1] must be" in warning


@pytest.mark.parametrize("svg", ["", "no svg", "<svg", f"{EVIL}<svg/>", "<svgx/>", "<svg/>"])
def test_text_that_is_not_an_svg_is_refused(tmp_path: Path, svg: str) -> None:
    save_changed(tmp_path, "panels", 0, 0, 1, to=svg)
    found, [warning] = load(tmp_path)
    assert found == {}
    assert "panels[0][0][1] must be" in warning


def test_page_escapes_all_but_the_figures(tmp_path: Path) -> None:
    evil = f'"{EVIL}'
    result = dataclasses.replace(
        ONE,
        name=evil,
        title=evil,
        where=evil,
        about=evil,
        missing=evil,
        conclusion=evil,
        key={**ONE.key, "version": evil},
        outcomes=(
            dataclasses.replace(
                OUTCOME,
                says=evil,
                where=evil,
                wanted=evil,
                why=evil,
                cases=(Case(evil, 1.0, 1, 1, True),),
            ),
            dataclasses.replace(OUTCOME, verdict=evil),
        ),
        parameters={evil: {evil: [evil]}},
        notes=(evil,),
        panels=(((evil, "<svg/>"),),),
    )
    facts = {"setting": {}, "versions": {"x": evil}, "seconds": 1.0, "verdicts": {}}
    shown = page([result, ONE], {**facts, "story": conclusions([result, ONE])})
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") > 10


def test_page_forbids_scripts_and_network_access(tmp_path: Path) -> None:
    shown = write_report(tmp_path, [ONE], {}).read_text(encoding="utf-8")
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\';' in shown
