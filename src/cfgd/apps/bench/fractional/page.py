"""The HTML page of the comparison: summary, performance profiles, tables and curves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cfgd import __version__
from cfgd.apps.bench.fractional.competitors import Competitor
from cfgd.apps.bench.fractional.conclusions import Comparison
from cfgd.apps.bench.fractional.scores import Judged, profile
from cfgd.apps.bench.fractional.tables import (
    GRIDS,
    HYPERPARAMETERS,
    PROBLEMS,
    SUMMARY,
    accuracy_and_budget,
    capitalised,
    cell,
    grid_rows,
    groups,
    problem_rows,
    summary_rows,
)
from cfgd.apps.page.document import definitions, document, escape, figures
from cfgd.apps.page.drawing import LIGHT, Panel, line, svgs
from cfgd.apps.resumable import machine

TITLE = "Fractional update rules at equal numbers of gradients"
SHOWN = {
    "gradient descent": "ink",
    "heavy ball": "blue",
    "Adam": "purple",
    "L-BFGS": "yellow",
    "16 Shin by momentum": "orange",
}  # lines with a colour of their own; the best other rule is green, all others are faint
WORST = 1e3  # the right end of the axis of a performance profile


def page(
    comparison: Comparison,
    competitors: Sequence[Competitor],
    conclusions: Sequence[str],
    how: str,
    data: str,
) -> str:
    """Return the page, with the summary first; `data` says which files have the numbers."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in conclusions)
    body = [f"<h1>{TITLE}</h1>", f'<ol class="story">{items}</ol>']
    body.append(f'<p class="soft">{escape(how)}</p>')
    if comparison.results:
        body += ["<h2>Performance profiles</h2>", _profiles(comparison)]
        body += ["<h2>Summary over all problems</h2>", _table(SUMMARY, summary_rows(comparison))]
        body += ["<h2>Results by problem</h2>", *_tables(comparison)]
        body += ["<h2>Convergence curves</h2>", _curves(comparison)]
        problems = [(name, escape(what)) for name, what in problem_rows(comparison)]
        body += ["<h2>Problems</h2>", _table(PROBLEMS, problems)]
        body += ["<h2>Hyperparameter grids</h2>", f"<p>{GRIDS}</p>"]
        body.append(_table(HYPERPARAMETERS, grid_rows(competitors)))
    about = {"version": __version__, "processor": machine(), "data": data}
    body.append(definitions(about))
    return document(TITLE, "A comparison by cfgd", "\n".join(body))


def _tables(comparison: Comparison) -> list[str]:
    parts = []
    for group, problems in groups(comparison.problems).items():
        rows = [
            [rule, *(cell(comparison.results[p.name][rule]) for p in problems)]
            for rule in (*comparison.rules, *comparison.baselines)
        ]
        table = _table(["rule", *(p.name for p in problems)], rows)
        parts.append(
            f"<h3>{escape(capitalised(group))}</h3><p>{accuracy_and_budget(problems)}</p>{table}"
        )
    return parts


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls; the cells after the first are HTML."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><td>{escape(first)}</td>"
        + "".join(f'<td class="number">{text}</td>' for text in others)
        + "</tr>"
        for first, *others in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{names}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _profiles(comparison: Comparison) -> str:
    """Return a performance profile of all problems and one of each group."""
    panels, data = [], {}
    every = {"all problems": comparison.problems, **groups(comparison.problems)}
    for group, problems in every.items():
        found = profile({p.name: comparison.results[p.name] for p in problems})
        if found:
            data[group] = found
            panels.append(Panel(group, functools.partial(_draw_named, _draw_profile, group)))
    return _figure("profile", panels, data)


def _draw_named(
    draw: Callable[[Any, Any], None], name: str, axis: Any, data: Mapping[str, Any]
) -> None:
    """Draw one entry of the data."""
    draw(axis, data[name])


def _draw_profile(axis: Any, found: Mapping[str, list[float]]) -> None:
    area = {
        name: float(np.mean([np.log(min(f, WORST)) for f in factors]))
        for name, factors in found.items()
    }
    others = [name for name in found if name not in SHOWN]
    colours = dict(SHOWN)
    if others:
        colours[min(others, key=lambda name: area[name])] = "green"
    for name in sorted(found, key=lambda name: name in colours):
        factors = np.sort(found[name])
        share = np.arange(1, len(factors) + 1) / len(factors)
        reached = factors <= WORST
        x = np.concatenate([[1.0], factors[reached], [WORST]])
        y = np.concatenate([[0.0], share[reached], [np.mean(reached)]])
        axis.step(
            x,
            y,
            where="post",
            color=LIGHT[colours.get(name, "faint")],
            linewidth=1.6 if name in colours else 0.7,
            label=name if name in colours else None,
        )
    axis.set(xscale="log", xlim=(1, WORST), ylim=(0, 1.02))
    axis.set(xlabel="gradients / gradients of the fastest rule", ylabel="fraction of runs solved")
    _legend(axis)


def _curves(comparison: Comparison) -> str:
    """Return the convergence curves, one panel for each problem."""
    panels = [
        Panel(p.name, functools.partial(_draw_named, _draw_curves, p.name))
        for p in comparison.problems
    ]
    return _figure("curve", panels, comparison.results)


def _draw_curves(axis: Any, results: Mapping[str, Judged]) -> None:
    others = [name for name in results if name not in SHOWN]
    colours = dict(SHOWN)
    if others:
        colours[min(others, key=lambda name: float(np.median(results[name].gaps)))] = "green"
    for name in sorted(results, key=lambda name: name in colours):
        gradients, gaps = results[name].curve
        line(
            axis,
            gradients,
            gaps,
            colours.get(name, "faint"),
            linewidth=1.6 if name in colours else 0.7,
            label=name if name in colours else None,
        )
    axis.set(xscale="symlog", yscale="log", xlabel="gradients", ylabel="(f - f*) / (f(x0) - f*)")
    axis.set_ylim(top=3)
    _legend(axis)


def _legend(axis: Any) -> None:
    """Draw the legend below the axes, so that it hides no line."""
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncol=2, fontsize=7.5)


def _figure(name: str, panels: Sequence[Panel], data: Mapping[str, Any]) -> str:
    """Return the panels with their titles; the width of the page decides how many form a row."""
    (drawn,) = svgs(name, [panels], data)
    return figures([[(panel.title, svg) for panel, svg in zip(panels, drawn, strict=True)]])
