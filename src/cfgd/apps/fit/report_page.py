"""The file report.html: one page with coefficients, quality, figures, and how it was made."""

from __future__ import annotations

from cfgd._core.files import printable
from cfgd.apps.fit.figures import figures_of
from cfgd.apps.fit.report_text import (
    CoefficientRow,
    coefficient_tables,
    confusion_rows,
    format_number,
    outcome,
    quality_rows,
    remarks,
    summary,
)
from cfgd.apps.fit.result import FitResult
from cfgd.apps.fit.summary_table import coefficient_table
from cfgd.apps.page.document import definitions, document, duration, escape, figures

MAX_ROWS = 1000  # of coefficients; model.json has all of them


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
<ul class="counts"><li><b>{result.statistics.training_count:,}</b>training rows</li>
<li><b>{result.statistics.held_out_count:,}</b>held-out rows</li></ul>
<ul class="story">{items}</ul>
</header>
<main>
<section id="quality"><h2>Quality</h2>
<p>On {escape(result.measured_on)}.</p>{_quality_table(result)}{_confusion_table(result)}</section>
<section id="coefficients"><h2>Coefficients</h2>
<p>In the units of the columns: the change of the linear predictor for a column that grows by
one.</p>
{_coefficient_table(result)}{_summary(result)}</section>
<section id="figures"><h2>Figures</h2>{figures(figures_of(result))}</section>
</main>
<footer>
<h2>How this page was made</h2>
{definitions(facts)}
<p class="soft">In {duration(result.seconds)}. The model is in the file
<a href="model.json">model.json</a> in the same folder.</p>
</footer>"""
    return document(printable(title), "A linear model: coefficients, quality and figures.", body)


def _safe(text: str) -> str:
    return escape(printable(text))


def _summary(result: FitResult) -> str:
    """Return the table of --summary, if it is asked for."""
    if not result.options.summary:
        return ""
    return f"<pre>{escape(str(coefficient_table(result)))}</pre>"


def _quality_table(result: FitResult) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="number" data-label="model">{model}</td>'
        f'<td class="number" data-label="baseline">{baseline}</td></tr>'
        for name, model, baseline in quality_rows(result)
    )
    head = "<tr><th>measure</th><th>model</th><th>baseline</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


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
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _coefficient_table(result: FitResult) -> str:
    lines: list[str] = []
    count = 0
    for heading, rows in coefficient_tables(result):
        if heading:
            lines.append(f'<tr><th class="group" colspan="4">{_safe(heading)}</th></tr>')
        lines += [_coefficient_line(row) for row in rows[: max(0, MAX_ROWS - count)]]
        count += len(rows)
    more = ""
    if count > MAX_ROWS:
        more = f"<p>{count - MAX_ROWS:,} more are in model.json.</p>"
    head = (
        "<tr><th>column</th><th>coefficient</th><th>standard error</th><th>95 % interval</th></tr>"
    )
    return f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>{more}"


def _coefficient_line(row: CoefficientRow) -> str:
    term, *numbers = row
    labels = ("coefficient", "standard error", "95 % interval")
    cells = "".join(
        f'<td class="number" data-label="{label}">{number or "–"}</td>'
        for label, number in zip(labels, numbers, strict=True)
    )
    return f'<tr class="term"><td>{_safe(term)}</td>{cells}</tr>'
