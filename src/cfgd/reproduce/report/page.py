"""The page: one self-contained HTML file that opens from disk."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cfgd.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.reproduce.report.drawing import DARK, LIGHT
from cfgd.reproduce.report.part import Part

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
# whatever might slip into the page: it runs nothing and asks nobody
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

CSS = """
:root { color-scheme: light dark; --page: #ffffff; --card: #f6f7f9; --soft: #5b6470; LIGHT }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171c; --card: #1c2027; --soft: #a3acb8; DARK }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.1rem 4rem; max-width: 68rem; background: var(--page);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .6rem 0 .3rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .2rem; line-height: 1.25; }
a { color: var(--blue); }
p { max-width: 46rem; }
.soft, small { color: var(--soft); }
small { font-size: .84rem; }
.counts { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1.2rem 0 1.6rem; padding: 0; }
.counts li { list-style: none; background: var(--card); border-radius: .6rem;
  padding: .5rem .95rem; }
.counts b { font-size: 1.5rem; margin-right: .35rem; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .8rem .5rem 0;
  border-bottom: 1px solid var(--faint); }
td small { display: block; }
th { font-weight: 600; color: var(--soft); }
th.group { color: var(--ink); padding-top: 1.5rem; font-size: 1rem; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdict { font-weight: 600; }
td.number.cases { white-space: normal; min-width: 13rem; }
.story { max-width: 50rem; padding-left: 1.3rem; } .story li { margin: .35rem 0; }
.yes { color: var(--green); } .part { color: var(--yellow); }
.no { color: var(--orange); } .open { color: var(--soft); }
.row { display: grid; gap: 1rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); }
figure { margin: 0; background: var(--card); border-radius: .6rem; padding: .8rem .6rem .4rem; }
figcaption { font-weight: 600; font-size: .93rem; padding: 0 .4rem .3rem; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
svg { width: 100%; height: auto; display: block; max-width: 36rem; margin: auto; }
.note { border-left: 3px solid var(--yellow); padding-left: .8rem; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--soft); }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .2rem 1rem;
  font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 44rem) {
  h1 { font-size: 1.55rem; }
  thead { display: none; }
  table, tbody, tr, td, th.group { display: block; }
  tr { padding: .55rem 0; border-bottom: 1px solid var(--faint); }
  th, td { border: 0; padding: .1rem 0; }
  th.group { padding-top: 1rem; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--soft);
    font-weight: 400; }
  dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; }
}
""".replace("LIGHT", " ".join(f"--{name}: {code};" for name, code in LIGHT.items())).replace(
    "DARK", " ".join(f"--{name}: {code};" for name, code in DARK.items())
)


def page(parts: Sequence[Part], facts: Mapping[str, Any]) -> str:
    """The whole page."""
    mixed = len({made(part) for part in parts}) > 1
    kind = "several settings, named with each figure" if mixed else setting_of(parts[0])
    counts = "".join(
        f'<li><b class="{MARKS.get(verdict, ("", "open"))[1]}">{n}</b>{PLURAL[verdict]}</li>'
        for verdict, n in facts["verdicts"].items()
    )
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in facts["story"])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="The paper's figures from fresh runs; which claims hold.">
<title>Caputo fractional gradient descent, reproduced</title>
<style>{CSS}</style>
</head>
<body>
<header>
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
</footer>
</body>
</html>
"""


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
    rows = "".join(
        '<div class="row">'
        + "".join(
            f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>" for title, svg in row
        )
        + "</div>"
        for row in part.panels
    )
    return (
        f'<section id="{name}"><h2>{escape(part.title)}</h2><small>{escape(facts)}</small>'
        f"<p>{escape(part.about)}</p>{notes}{rows}"
        f"<details><summary>Parameters and seeds</summary>{definitions(part.parameters)}"
        f'<p><a href="{name}.png">{name}.png</a></p></details></section>'
    )


def definitions(entries: Mapping[str, Any]) -> str:
    pairs = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(words(value))}</dd>" for key, value in entries.items()
    )
    return f"<dl>{pairs}</dl>"


def words(value: Any) -> str:
    """A parameter as a reader writes it."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {words(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(words(entry) for entry in value)
    return value if isinstance(value, str) else json.dumps(value)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{seconds:.1f} s" if seconds < 60 else f"{minutes} min {rest} s"


def escape(text: str) -> str:
    return html.escape(str(text))
