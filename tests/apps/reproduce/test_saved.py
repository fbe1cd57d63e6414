"""Saved parts that are damaged or hostile: one sentence each, and none of it in the page."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cfgd.apps.reproduce.report.claim import HOLDS_FOR, Case, Outcome
from cfgd.apps.reproduce.report.page import page
from cfgd.apps.reproduce.report.part import PNG, Part
from cfgd.apps.reproduce.report.report import write_report
from cfgd.apps.reproduce.report.saved import saved_parts
from cfgd.apps.reproduce.report.story import story

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
ONE = Part(
    name="one",
    title="One",
    where="figure 1",
    about="About one.",
    missing="the start",
    story="It came out so.",
    key={"size": "tiny", "seeds": None, "data": None, "version": "0"},
    outcomes=(OUTCOME,),
    parameters={"seeds": [0, 1], "x0": {"a": None, "b": True}},
    notes=("A note.",),
    panels=((("a panel", SVG.replace("INSIDE", "")),),),
    picture=base64.b64encode(PNG + b"rest").decode(),
    seconds=1.5,
)


def read(folder: Path) -> tuple[dict[str, Part], list[str]]:
    said: list[str] = []
    return saved_parts(folder, said.append), said


def changed(folder: Path, *steps: Any, to: Any) -> None:
    """A part with one entry changed: `steps` lead to it."""
    saved = json.loads(json.dumps(dataclasses.asdict(ONE)))
    inner = saved
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = to
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "one.json").write_text(json.dumps(saved), encoding="utf-8")


def test_what_is_saved_is_read_back_equal(tmp_path: Path) -> None:
    ONE.save(tmp_path)
    assert read(tmp_path) == ({"one": ONE}, [])


def test_where_nothing_was_saved_nothing_is_said(tmp_path: Path) -> None:
    assert read(tmp_path / "nowhere") == ({}, [])


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
        (("story",), ["x"], "story must be text, got a list"),
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
def test_an_entry_that_is_wrong_is_named(
    tmp_path: Path, steps: tuple[Any, ...], to: Any, message: str
) -> None:
    changed(tmp_path, *steps, to=to)
    found, [said] = read(tmp_path)
    assert found == {}
    assert said.startswith(f"{tmp_path / 'parts' / 'one.json'} is not used: ")
    assert message in said
    assert said.endswith(".")
    assert "\n" not in said


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Part)])
def test_an_entry_that_is_missing_is_named(tmp_path: Path, field: str) -> None:
    saved = dataclasses.asdict(ONE)
    del saved[field]
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.json").write_text(json.dumps(saved), encoding="utf-8")
    _, [said] = read(tmp_path)
    assert f"the field '{field}' of the part is missing." in said


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
def test_a_file_that_is_no_part(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.json").write_bytes(raw)
    _, [said] = read(tmp_path)
    assert message in said


def test_a_file_that_is_none_or_endless(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    (folder / "a.json").mkdir(parents=True)
    os.mkfifo(folder / "b.json")
    (folder / "c.json").symlink_to(tmp_path)
    with (folder / "d.json").open("wb") as file:
        file.truncate(60_000_000)
    _, said = read(tmp_path)
    assert [one.rsplit(": ", 1)[-1] for one in said] == [
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
def test_a_figure_that_would_act_or_fetch_is_not_used(tmp_path: Path, inside: str) -> None:
    changed(tmp_path, "panels", 0, 0, 1, to=SVG.replace("INSIDE", inside))
    found, [said] = read(tmp_path)
    assert found == {}
    assert "one.json is not used: panels[0][0][1] must be" in said


@pytest.mark.parametrize("svg", ["", "no svg", "<svg", f"{EVIL}<svg/>", "<svgx/>", "<svg/>"])
def test_what_is_no_figure_is_not_used(tmp_path: Path, svg: str) -> None:
    changed(tmp_path, "panels", 0, 0, 1, to=svg)
    found, [said] = read(tmp_path)
    assert found == {}
    assert "panels[0][0][1] must be" in said


def test_the_page_escapes_all_but_the_figures(tmp_path: Path) -> None:
    evil = f'"{EVIL}'
    part = dataclasses.replace(
        ONE,
        name=evil,
        title=evil,
        where=evil,
        about=evil,
        missing=evil,
        story=evil,
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
    shown = page([part, ONE], {**facts, "story": story([part, ONE])})
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") > 10


def test_the_page_forbids_scripts_and_the_network(tmp_path: Path) -> None:
    shown = write_report(tmp_path, [ONE], {}).read_text(encoding="utf-8")
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\';' in shown
