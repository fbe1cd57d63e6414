"""A report page: one self-contained HTML file without scripts or network access."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cfgd.apps.page.drawing import DARK, LIGHT

# the content security policy forbids scripts and requests, whatever text the page contains
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
h1, p, li { overflow-wrap: anywhere; }
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
td { overflow-wrap: anywhere; } td small { display: block; }
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
.overview { display: grid; gap: 1rem; margin: 1.2rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.tiles { display: flex; flex-wrap: wrap; gap: .7rem; align-content: start; }
.tile { background: var(--card); border-radius: .6rem; padding: .6rem .95rem; flex: 1 1 8rem; }
.tile b { display: block; font-size: 1.7rem; line-height: 1.25; }
.tile span, .tile small { display: block; }
.important { background: var(--card); border-radius: .6rem; padding: .7rem .95rem; min-width: 0; }
.important h2 { font-size: 1rem; margin: 0 0 .3rem; }
.important ol { margin: 0 0 .4rem; padding-left: 1.2rem; } .important li { margin: .45rem 0; }
.name { font-weight: 600; overflow-wrap: anywhere; } .important li small { display: block; }
.bar { display: block; height: .5rem; border-radius: .25rem; background: var(--faint); }
.bar i { display: block; height: 100%; border-radius: .25rem; }
.bar .up { background: var(--blue); } .bar .down { background: var(--orange); }
.scroll { overflow-x: auto; } .scroll th { white-space: nowrap; }
.scroll + .scroll { margin-top: 1.4rem; }
.scroll td:first-child { min-width: 9rem; }
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
  .scroll table { display: table; } .scroll thead { display: table-header-group; }
  .scroll tbody { display: table-row-group; } .scroll tr { display: table-row; }
  .scroll th, .scroll td, .scroll th.group { display: table-cell; padding: .3rem .9rem .3rem 0; }
  .scroll td[data-label]::before { content: none; }
  .scroll td:first-child { position: sticky; left: 0; background: var(--page); }
  dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; }
}
""".replace("LIGHT", " ".join(f"--{name}: {code};" for name, code in LIGHT.items())).replace(
    "DARK", " ".join(f"--{name}: {code};" for name, code in DARK.items())
)


def document(title: str, about: str, body: str) -> str:
    """Return the HTML file; `body` is HTML in which the caller has escaped all data."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{escape(about)}">
<title>{escape(title)}</title>
<style>{CSS}</style>
</head>
<body>
{body}
</body>
</html>
"""


def figures(rows: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Return HTML for rows of (title, SVG), side by side on screens that are wide enough."""
    return "".join(
        '<div class="row">'
        + "".join(
            f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>" for title, svg in row
        )
        + "</div>"
        for row in rows
    )


def definitions(entries: Mapping[str, Any]) -> str:
    """Return an HTML list of names and values."""
    pairs = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(_as_text(value))}</dd>"
        for key, value in entries.items()
    )
    return f"<dl>{pairs}</dl>"


def _as_text(value: Any) -> str:
    """Return a value as readable text: lists by commas, mappings by semicolons."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_as_text(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_as_text(entry) for entry in value)
    return value if isinstance(value, str) else json.dumps(value)


def duration(seconds: float) -> str:
    """Return a duration in seconds, or in minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{seconds:.1f} s" if seconds < 60 else f"{minutes} min {rest} s"


def escape(text: str) -> str:
    return html.escape(str(text))
