"""The file report.html: one page with coefficients, quality, figures, and how it was made."""

from __future__ import annotations

from cfgd._core.files import printable
from cfgd.apps.fit.coefficient_rows import cells, coefficient_rows, headings
from cfgd.apps.fit.figures import figures_of
from cfgd.apps.fit.formats import format_number
from cfgd.apps.fit.report_overview import overview
from cfgd.apps.fit.report_text import confusion_rows, outcome, quality_rows, remarks, summary
from cfgd.apps.fit.result import FitResult
from cfgd.apps.fit.summary_table import coefficient_table
from cfgd.apps.page.document import definitions, document, duration, escape, figures

MAX_ROWS = 1000  # of coefficients; coefficients.csv has all of them


def report_page(result: FitResult) -> str:
    """Return the report as an HTML document."""
    title = f"{result.target.name}: a linear model"
    facts = {
        key: printable(format_number(entry) if isinstance(entry, float) else str(entry))
        for key, entry in result.model.facts.items()
        if entry is not None and not isinstance(entry, dict)
    }
    ending = _safe(outcome(result))
    warning = "" if result.success else f'<p class="note">{ending}</p>'
    items = "".join(f"<li>{_safe(sentence)}</li>" for sentence in remarks(result))
    body = f"""<header>
<small>cfgd fit</small>
<h1>{_safe(title)}</h1>
<p class="soft">{_safe(summary(result))} {ending if not warning else ""}</p>
{warning}
{overview(result)}
</header>
<main>
<section id="remarks"><h2>Notes and warnings</h2>
<ul class="story">{items}</ul></section>
<section id="quality"><h2>Quality</h2>
<p>On {escape(result.measured_on)}.</p>{_quality_table(result)}{_confusion_table(result)}</section>
<section id="coefficients"><h2>Coefficients</h2>
<p>All of them are in the file <a href="coefficients.csv">coefficients.csv</a> in the same
folder.</p>
{_coefficient_table(result)}{_summary(result)}</section>
<section id="figures"><h2>Figures</h2>{figures(figures_of(result))}</section>
</main>
<footer>
<h2>Settings and run</h2>
{definitions(facts)}
<p class="soft">The fit took {duration(result.seconds)}. The model is in the file
<a href="model.json">model.json</a> in the same folder.</p>
</footer>"""
    return document(printable(title), "A linear model: coefficients, quality and figures.", body)


def _safe(text: str) -> str:
    return escape(printable(text))


def _summary(result: FitResult) -> str:
    """Return the table of --summary, if it is asked for."""
    if not result.options.summary:
        return ""
    return f'<div class="scroll"><pre>{escape(str(coefficient_table(result)))}</pre></div>'


def _quality_table(result: FitResult) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="number" data-label="model">{model}</td>'
        f'<td class="number" data-label="baseline">{baseline}</td></tr>'
        for name, model, baseline in quality_rows(result)
    )
    head = "<tr><th>measure</th><th>model</th><th>baseline</th></tr>"
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _confusion_table(result: FitResult) -> str:
    heads, rows = confusion_rows(result)
    if not rows:
        return ""
    head = "".join(f"<th>{_safe(text)}</th>" for text in heads)
    lines = "".join(
        f"<tr><td>{_safe(row[0])}</td>"
        + "".join(
            f'<td class="number" data-label="{_safe(label)}">{count}</td>'
            for label, count in zip(heads[1:], row[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _coefficient_table(result: FitResult) -> str:
    names = headings(result)
    lines: list[str] = []
    rows = list(coefficient_rows(result))
    heading = ""
    for row in rows[:MAX_ROWS]:
        if row.class_label != heading:
            heading = row.class_label
            span = len(names) + 1
            lines.append(f'<tr><th class="group" colspan="{span}">{_safe(heading)}</th></tr>')
        lines.append(_coefficient_line(row.term, names, cells(result, row)))
    more = ""
    if len(rows) > MAX_ROWS:
        more = f"<p>{len(rows) - MAX_ROWS:,} more are in coefficients.csv.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in ["column", *names])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll">{table}</div>{more}'


def _coefficient_line(term: str, names: list[str], numbers: list[str]) -> str:
    shown = "".join(
        f'<td class="number" data-label="{escape(name)}">{escape(number) or "–"}</td>'
        for name, number in zip(names, numbers, strict=True)
    )
    return f'<tr class="term"><td>{_safe(term)}</td>{shown}</tr>'
