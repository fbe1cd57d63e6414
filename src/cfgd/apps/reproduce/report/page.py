"""The page of `cfgd reproduce`: claims, verdicts and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cfgd.apps.page.document import definitions, document, duration, escape, figures
from cfgd.apps.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.apps.reproduce.report.part import Part

MARKS = {
    HOLDS: ("✓", "yes"),
    HOLDS_FOR: ("◐", "part"),
    FAILS: ("✗", "no"),
}  # a mark and a word, not a colour alone
PLURAL = {
    HOLDS: "hold",
    HOLDS_FOR: "hold for some",
    FAILS: "do not hold",
    NOT_COMPARABLE: "not comparable",
}
PAPER = "Shin, Darbon, Karniadakis: A Caputo fractional gradient-based method for optimization"


def page(parts: Sequence[Part], facts: Mapping[str, Any]) -> str:
    """The whole page."""
    mixed = len({made(part) for part in parts}) > 1
    kind = "several settings, named with each figure" if mixed else setting_of(parts[0])
    counts = "".join(
        f'<li><b class="{MARKS.get(verdict, ("", "open"))[1]}">{n}</b>{PLURAL[verdict]}</li>'
        for verdict, n in facts["verdicts"].items()
    )
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in facts["story"])
    body = f"""<header>
<small>cfgd reproduce</small>
<h1>Caputo fractional gradient descent, reproduced</h1>
<p class="soft">Each figure of the paper ({escape(PAPER)}) drawn from a fresh run, and each
sentence that the paper claims about it held against that run. Claims are judged by code, with
tolerances fixed before the run: those that fail are shown as failing. This page was made in
{kind}, in {duration(facts["seconds"])}.</p>
<ul class="counts">{counts}</ul>
<ol class="story">{sentences}</ol>
</header>
<main>
{summary(parts, "the paper claims", "claims", ours=False)}
{"".join(section(part, made(part) if mixed else "") for part in parts)}
{beyond(parts)}
</main>
<footer>
<h2>How this page was made</h2>
{definitions({**facts["setting"], **facts["versions"]})}
<p class="soft">The numbers are in <a href="results.json">results.json</a>; each figure is also a
PNG file beside this page.</p>
</footer>"""
    about = "The paper's figures from fresh runs; which claims hold."
    return document("Caputo fractional gradient descent, reproduced", about, body)


def summary(parts: Sequence[Part], title: str, name: str, ours: bool) -> str:
    """The rows that are the paper's, or those that are not."""
    rows = [(part, [o for o in part.outcomes if o.ours == ours]) for part in parts]
    body = "".join(
        f'<tr><th class="group" colspan="4"><a href="#{escape(part.name)}">{escape(part.title)}'
        f"</a></th></tr>{''.join(row(outcome) for outcome in found)}"
        for part, found in rows
        if found
    )
    return (
        f'<table id="{name}"><thead><tr><th>{title}</th><th>wanted</th><th>measured</th>'
        f"<th>verdict</th></tr></thead><tbody>{body}</tbody></table>"
    )


def beyond(parts: Sequence[Part]) -> str:
    if not any(outcome.ours for part in parts for outcome in part.outcomes):
        return ""
    return (
        "<section><h2>Ours, not the paper's</h2><p>What the paper does not say and the same runs "
        "show, judged in the same way.</p>"
        f"{summary(parts, 'we find', 'ours', ours=True)}</section>"
    )


def row(outcome: Outcome) -> str:
    mark, kind = MARKS.get(outcome.verdict, ("–", "open"))
    why = f"<small>{escape(outcome.why)}</small>" if outcome.why else ""
    many = " cases" if outcome.cases else ""
    return (
        f'<tr class="claim"><td>{escape(outcome.says)}<small>{escape(outcome.where)}</small></td>'
        f'<td class="number" data-label="wanted">{escape(outcome.wanted)}</td>'
        f'<td class="number{many}" data-label="measured">{escape(outcome.measured)}</td>'
        f'<td data-label="verdict"><span class="verdict {kind}">{mark} '
        f"{escape(outcome.said)}</span>{why}</td></tr>"
    )


def setting_of(part: Part) -> str:
    size = part.key["size"]
    return "the paper's iteration counts" if size == "full" else f"the {size} setting"


def made(part: Part) -> str:
    """The setting of a part where not all have the same."""
    seeds = part.key["seeds"]
    often = "" if seeds is None else f", {seeds} seed{'s' if seeds > 1 else ''}"
    return f"{setting_of(part)}{often}, cfgd {part.key['version']}"


def section(part: Part, made: str) -> str:
    name = escape(part.name)
    facts = " · ".join(fact for fact in (part.where, duration(part.seconds), made) if fact)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in part.notes)
    return (
        f'<section id="{name}"><h2>{escape(part.title)}</h2><small>{escape(facts)}</small>'
        f"<p>{escape(part.about)}</p>{notes}{figures(part.panels)}"
        f"<details><summary>Parameters and seeds</summary>{definitions(part.parameters)}"
        f'<p><a href="{name}.png">{name}.png</a></p></details></section>'
    )
