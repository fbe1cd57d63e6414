"""The report: one page with coefficients, quality, figures, and how it was made."""

from __future__ import annotations

from cfgd._core.files import printable
from cfgd.apps.fit.figures import figures_of
from cfgd.apps.fit.run import Fitted
from cfgd.apps.fit.words import Row, ending, groups, measures, number, sentences, summary
from cfgd.apps.page.document import definitions, document, duration, escape, figures

MOST_ROWS = 1000  # of coefficients: the file of the model has them all


def page(done: Fitted) -> str:
    title = f"{done.target.name}: a linear model"
    facts = {
        key: number(entry) if isinstance(entry, float) else str(entry)
        for key, entry in done.model.facts.items()
        if entry is not None and not isinstance(entry, dict)
    }
    notes = "" if done.good else f'<p class="note">{_safe(ending(done))}</p>'
    points = "".join(f"<li>{_safe(sentence)}</li>" for sentence in sentences(done))
    body = f"""<header>
<small>cfgd fit</small>
<h1>{_safe(title)}</h1>
<p class="soft">{_safe(summary(done))} {_safe(ending(done)) if not notes else ""}</p>
{notes}
<ul class="counts"><li><b>{done.survey.train:,}</b>rows fitted to</li>
<li><b>{done.survey.test:,}</b>rows held out</li></ul>
<ul class="story">{points}</ul>
</header>
<main>
<section id="quality"><h2>Quality</h2>
<p>On {escape(done.measured_on)}.</p>{_quality(done)}</section>
<section id="coefficients"><h2>Coefficients</h2>
<p>In the units of the columns: how the prediction changes where a column grows by one.</p>
{_coefficients(done)}</section>
<section id="figures"><h2>Figures</h2>{figures(figures_of(done))}</section>
</main>
<footer>
<h2>How this page was made</h2>
{definitions({key: printable(entry) for key, entry in facts.items()})}
<p class="soft">In {duration(done.seconds)}. The model is in <a href="model.json">model.json</a>
beside this page.</p>
</footer>"""
    return document(printable(title), "A linear model: coefficients, quality and figures.", body)


def _safe(text: str) -> str:
    return escape(printable(text))


def _quality(done: Fitted) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="number" data-label="model">{model}</td>'
        f'<td class="number" data-label="baseline">{baseline}</td></tr>'
        for name, model, baseline in measures(done)
    )
    head = "<tr><th>measure</th><th>model</th><th>baseline</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _coefficients(done: Fitted) -> str:
    found, count = [], 0
    for name, rows in groups(done):
        if name:
            found.append(f'<tr><th class="group" colspan="4">{_safe(name)}</th></tr>')
        found += [_row(row) for row in rows[: max(0, MOST_ROWS - count)]]
        count += len(rows)
    more = ""
    if count > MOST_ROWS:
        more = f"<p>{count - MOST_ROWS:,} more are in model.json.</p>"
    head = (
        "<tr><th>column</th><th>coefficient</th><th>standard error</th><th>95 % interval</th></tr>"
    )
    return f"<table><thead>{head}</thead><tbody>{''.join(found)}</tbody></table>{more}"


def _row(row: Row) -> str:
    term, *numbers = row
    cells = zip(("coefficient", "standard error", "95 % interval"), numbers, strict=True)
    found = "".join(
        f'<td class="number" data-label="{name}">{entry or "–"}</td>' for name, entry in cells
    )
    return f'<tr class="term"><td>{_safe(term)}</td>{found}</tr>'
