"""The report of a fit: text for a terminal, Markdown, or LaTeX for a paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cfgd._core import checks
from cfgd.fitting.digits import exact, plain, with_error
from cfgd.objectives.parameter_layout import numbers_of

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

# Correlations of a smaller size are left out, as in lmfit's reports.
LEAST_CORRELATION = 0.1


class Table(NamedTuple):
    """A table with its title; names and numbers in its cells are written for the style."""

    title: str
    header: list[str]
    rows: list[list[str]]


class Report(NamedTuple):
    """The content of a report: how the solver ended, warnings, tables, and notes."""

    verdict: str
    warnings: list[str]
    tables: list[Table]
    notes: list[str]


def report(fit: Fit, style: str) -> str:
    """Return the report of a fit in a style."""
    return STYLES[checks.choice("Fit.report", "style", style, STYLES)](_content(fit, style))


def summary(fit: Fit) -> str:
    """Return the parameters with more digits than are known, for `print(fit)`.

    Fixed and tied numbers are below the free ones.
    """
    free = zip(fit.names, fit.numbers, fit.standard_errors, strict=True)
    held = [
        (name, float(value), float(fit.errors[name]))
        for name, value in fit.values.items()
        if np.ndim(value) == 0 and name not in fit.names
    ]
    width = max(9, *(len(name) for name in (*fit.names, *(name for name, _, _ in held))))
    head = (
        f"Fit: {fit.solution.status.name}, residual standard deviation "
        f"{_number(fit.residual_std, 'text')} with {fit.dof} degrees of freedom"
    )
    title = f"  {'parameter':<{width}}  {'value':>14}  {'standard error':>14}  {'relative':>9}"
    rows = []
    for name, value, error in free:
        remark = _remark(fit, name, name, error)
        row = f"  {name:<{width}}  {value:>14.8g}"
        if name in fit.at_bound:
            rows.append(f"{row}  {remark}")
        else:
            rows.append(f"{row}  {error:>14.4g}  {relative(error, value):>9}  {remark}".rstrip())
    for name, value, error in held:
        remark = _remark(fit, name, name, error)
        errors = f"  {error:>14.4g}  {relative(error, value):>9}" if remark == "tied" else ""
        rows.append(f"  {name:<{width}}  {value:>14.8g}{errors}  {remark}")
    return "\n".join([head, title, *rows])


def relative(error: float, value: float) -> str:
    """Return the relative error in percent, as text."""
    return f"{100 * error / abs(value):.3g} %" if value != 0 and np.isfinite(error) else "-"


def _content(fit: Fit, style: str) -> Report:
    tables = [_parameters(fit, style), _statistics(fit, style)]
    correlations = _correlations(fit, style)
    if correlations.rows:
        tables.insert(1, correlations)
    count = int(fit.solution.iterations)
    how = f"{fit.solution.how}, {count} iteration{'' if count == 1 else 's'}."
    unfinished = "The fit did not converge"  # the first sentence says that already
    warnings = [each for each in fit.warnings if not each.startswith(unfinished)]
    notes = [_about_errors(fit, style), *(fit.problem.notes if fit.problem is not None else [])]
    return Report(f"{fit.solution.message} {how}", warnings, tables, notes)


def _parameters(fit: Fit, style: str) -> Table:
    """Return all parameters in order: values with errors, bounds, and what is special."""
    rows = []
    for name, value in fit.values.items():
        numbers = zip(
            numbers_of(name, np.shape(value)),
            np.ravel(value).tolist(),
            np.ravel(fit.errors[name]).tolist(),
            strict=True,
        )
        for number, at, error in numbers:
            remark = _remark(fit, name, number, error)
            text = exact(at, style) if remark == "fixed" else with_error(at, error, style)
            rows.append([_name(number, style), text, _bounds(fit, number, style), remark])
    header = ["parameter", "value", "bounds", "remark"]
    kept = [i for i in range(len(header)) if i < 2 or any(row[i] for row in rows)]
    return Table("Parameters", [header[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _remark(fit: Fit, name: str, number: str, error: float) -> str:
    if number in fit.at_bound:
        mask = fit.solution.active_mask
        side = 0 if mask is None else int(np.ravel(mask)[fit.names.index(number)])
        return f"at its {('', 'upper ', 'lower ')[side]}bound"
    if number not in fit.names:
        kind = None if fit.problem is None else fit.problem.parameters[name].kind
        return kind or ("fixed" if error == 0 else "tied")
    return "not determined by the data" if np.isinf(error) else ""


def _bounds(fit: Fit, number: str, style: str) -> str:
    """Return the bounds of a free number; empty where there are none or they are not known."""
    if fit.problem is None or number not in fit.names:
        return ""
    i = fit.names.index(number)
    ends = float(fit.problem.lower[i]), float(fit.problem.upper[i])
    if not np.isfinite(ends).any():
        return ""
    return f"[{exact(ends[0], style)}, {exact(ends[1], style)}]"


def _correlations(fit: Fit, style: str) -> Table:
    """Return the pairs of parameters whose correlation is not small, the strongest first."""
    matrix, names = fit.correlations, [_name(each, style) for each in fit.names]
    pairs = [
        (float(matrix[i, j]), f"{names[i]}, {names[j]}")
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if abs(matrix[i, j]) > LEAST_CORRELATION  # False for NaN
    ]
    pairs.sort(key=lambda pair: -abs(pair[0]))
    rows = [[pair, _math(f"{value:+.3f}", style)] for value, pair in pairs]
    title = f"Correlations (sizes below {LEAST_CORRELATION} are left out)"
    return Table(title, ["parameters", "correlation"], rows)


def _statistics(fit: Fit, style: str) -> Table:
    chi, r = (r"$\chi^2$", "$R^2$") if style == "latex" else ("chi-square", "R^2")
    numbers = {
        "points": fit.n_points,
        "free parameters": len(fit.names),
        "degrees of freedom": fit.dof,
        chi: fit.chi_square,
        f"reduced {chi}": fit.reduced_chi_square,
        "AIC": fit.aic,
        "BIC": fit.bic,
        r: fit.r_squared,
    }
    rows = [
        [name, _math(str(value), style) if isinstance(value, int) else _number(value, style)]
        for name, value in numbers.items()
    ]
    return Table("Quality of the fit", ["quantity", "value"], rows)


def _number(value: float, style: str) -> str:
    return plain(value, style) if np.isfinite(value) else "not defined"


def _about_errors(fit: Fit, style: str) -> str:
    example = _math("1.234(56)", style)
    meaning = f"{example} means the value 1.234 with the standard error 0.056."
    if fit.covariance_kind == "sandwich":
        return (
            f"{meaning} The loss is robust: the standard errors are those of the sandwich "
            "covariance, and AIC and BIC are not defined."
        )
    if fit.absolute_sigma:
        return (
            f"{meaning} The standard errors are computed from sigma alone (absolute_sigma=True), "
            "not from the size of the residuals."
        )
    if fit.dof <= 0:
        return (
            f"{meaning} Standard errors need more points than parameters, or a known sigma with "
            "absolute_sigma=True."
        )
    deviation = plain(fit.residual_std, style)
    return (
        f"{meaning} The standard errors are scaled with the standard deviation {deviation} of the "
        "residuals (absolute_sigma=False)."
    )


def _name(name: str, style: str) -> str:
    if style == "latex":
        return rf"\texttt{{{_escaped(name)}}}"
    return f"`{name.replace('|', chr(92) + '|')}`" if style == "markdown" else name


def _math(text: str, style: str) -> str:
    return f"${text}$" if style == "latex" else text


def _escaped(text: str) -> str:
    """Return text for LaTeX, with code between backticks in a typewriter font."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {each: f"\\{each}" for each in "&%$#_{}"}
    special |= {"<": "$<$", ">": "$>$", "|": "$|$"}
    text = "".join(special.get(each, each) for each in text)
    return re.sub(r"`([^`]*)`", r"\\texttt{\1}", text)


def _text(content: Report) -> str:
    lines = [content.verdict, *(f"Warning: {each}" for each in content.warnings)]
    for title, header, rows in content.tables:
        widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
        lines += ["", title]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join([*lines, "", *content.notes])


def _markdown(content: Report) -> str:
    parts = [content.verdict, *(f"**Warning:** {each}" for each in content.warnings)]
    for title, header, rows in content.tables:
        lines = [f"**{title}**", "", _row(header), _row(["---"] * len(header))]
        parts.append("\n".join([*lines, *map(_row, rows)]))
    return "\n\n".join([*parts, *content.notes])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex(content: Report) -> str:
    parts = [_escaped(content.verdict)]
    parts += [rf"\textbf{{Warning:}} {_escaped(each)}" for each in content.warnings]
    for title, header, rows in content.tables:
        lines = [
            rf"\textbf{{{title}}}",
            "",
            rf"\begin{{tabular}}{{{'l' * len(header)}}}",
            r"\hline",
            f"{' & '.join(header)} \\\\",
            r"\hline",
            *(f"{' & '.join(row)} \\\\" for row in rows),
            r"\hline",
            r"\end{tabular}",
        ]
        parts.append("\n".join(lines))
    about_errors, *others = content.notes  # which has formulas
    return "\n\n".join([*parts, about_errors, *map(_escaped, others)])


STYLES: dict[str, Callable[[Report], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
}
