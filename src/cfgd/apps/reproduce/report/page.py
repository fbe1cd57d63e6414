"""The HTML page of `cfgd reproduce`: claims, verdicts and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cfgd.apps.page.document import definitions, document, duration, escape, figures
from cfgd.apps.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.apps.reproduce.report.result import ExperimentResult

MARKS = {
    HOLDS: ("✓", "yes"),
    HOLDS_FOR: ("◐", "part"),
    FAILS: ("✗", "no"),
}  # a symbol beside the colour, for readers who do not see colours
PLURAL = {
    HOLDS: "hold",
    HOLDS_FOR: "hold for some",
    FAILS: "do not hold",
    NOT_COMPARABLE: "not comparable",
}
PAPER = "Shin, Darbon, Karniadakis: A Caputo fractional gradient-based method for optimization"


def page(results: Sequence[ExperimentResult], facts: Mapping[str, Any]) -> str:
    """Return the page as HTML; only the figures are not escaped."""
    mixed = len({_setting_and_version(result) for result in results}) > 1
    kind = "several settings, named with each figure" if mixed else _setting(results[0])
    counts = "".join(
        f'<li><b class="{MARKS.get(verdict, ("", "open"))[1]}">{n}</b>{PLURAL[verdict]}</li>'
        for verdict, n in facts["verdicts"].items()
    )
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in facts["story"])
    body = f"""<header>
<small>cfgd reproduce</small>
<h1>Caputo fractional gradient descent, reproduced</h1>
<p class="soft">Each figure of the paper ({escape(PAPER)}) drawn from a fresh run, and each
claim of the paper about it checked against that run. Claims are checked by code, with
tolerances fixed before the run: those that fail are shown as failing. This page was made in
{kind}, in {duration(facts["seconds"])}.</p>
<ul class="counts">{counts}</ul>
<ol class="story">{sentences}</ol>
<p><a href="#claims">The table of all claims</a> is below the figures.</p>
</header>
<main>
{"".join(_section(one, _setting_and_version(one) if mixed else "") for one in results)}
<section><h2>The claims of the paper</h2>
{_claims_table(results, "the paper claims", "claims", ours=False)}</section>
{_our_claims(results)}
</main>
<footer>
<h2>Settings and versions</h2>
{definitions({**facts["setting"], **facts["versions"]})}
<p class="soft">The numbers are in <a href="results.json">results.json</a>; each figure is also a
PNG file beside this page.</p>
</footer>"""
    about = "The paper's figures from fresh runs; which claims hold."
    return document("Caputo fractional gradient descent, reproduced", about, body)


def _claims_table(results: Sequence[ExperimentResult], title: str, name: str, ours: bool) -> str:
    """Return the table of the paper's claims, or of ours."""
    groups = [(result, [o for o in result.outcomes if o.ours == ours]) for result in results]
    body = "".join(
        f'<tr><th class="group" colspan="4"><a href="#{escape(result.name)}">{escape(result.title)}'
        f"</a></th></tr>{''.join(_row(outcome) for outcome in outcomes)}"
        for result, outcomes in groups
        if outcomes
    )
    return (
        f'<table id="{name}"><thead><tr><th>{title}</th><th>expected</th><th>measured</th>'
        f"<th>verdict</th></tr></thead><tbody>{body}</tbody></table>"
    )


def _our_claims(results: Sequence[ExperimentResult]) -> str:
    if not any(outcome.ours for result in results for outcome in result.outcomes):
        return ""
    return (
        "<section><h2>Additional claims</h2><p>These claims are not in the paper; they are "
        "checked against the same runs.</p>"
        f"{_claims_table(results, 'additional claim', 'ours', ours=True)}</section>"
    )


def _row(outcome: Outcome) -> str:
    mark, kind = MARKS.get(outcome.verdict, ("–", "open"))
    why = f"<small>{escape(outcome.why)}</small>" if outcome.why else ""
    many = " cases" if outcome.cases else ""
    return (
        f'<tr class="claim"><td>{escape(outcome.says)}<small>{escape(outcome.where)}</small></td>'
        f'<td class="number" data-label="expected">{escape(outcome.wanted)}</td>'
        f'<td class="number{many}" data-label="measured">{escape(outcome.measured)}</td>'
        f'<td data-label="verdict"><span class="verdict {kind}">{mark} '
        f"{escape(outcome.verdict_text)}</span>{why}</td></tr>"
    )


def _setting(result: ExperimentResult) -> str:
    size = result.key["size"]
    return "the paper's iteration counts" if size == "full" else f"the {size} setting"


def _setting_and_version(result: ExperimentResult) -> str:
    """Describe the settings of a result; shown if the results of a page differ in them."""
    seeds = result.key["seeds"]
    count = "" if seeds is None else f", {seeds} seed{'s' if seeds > 1 else ''}"
    return f"{_setting(result)}{count}, cfgd {result.key['version']}"


def _section(result: ExperimentResult, setting: str) -> str:
    name = escape(result.name)
    facts = " · ".join(fact for fact in (result.where, duration(result.seconds), setting) if fact)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in result.notes)
    return (
        f'<section id="{name}"><h2>{escape(result.title)}</h2><small>{escape(facts)}</small>'
        f"<p>{escape(result.about)}</p>{notes}{figures(result.panels)}"
        f"<details><summary>Parameters and seeds</summary>{definitions(result.parameters)}"
        f'<p><a href="{name}.png">{name}.png</a></p></details></section>'
    )
