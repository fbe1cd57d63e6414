"""The report: a page with figures, a table in Markdown, and the data as CSV and JSON."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cfgd import __version__
from cfgd._core.files import json_safe, write
from cfgd.apps.bench.fractional.competitors import OTHERS, RATES
from cfgd.apps.bench.fractional.conclusions import DESCENT, Comparison, sentences
from cfgd.apps.bench.fractional.saved import ProblemResult
from cfgd.apps.bench.fractional.scores import Judged, median_solved, profile
from cfgd.apps.page.document import definitions, document, escape, figures
from cfgd.apps.page.drawing import LIGHT, Panel, line, svgs
from cfgd.apps.resumable import machine

FILES = ("fractional.html", "fractional.md", "fractional.csv", "fractional.json")
SHOWN = {
    "gradient descent": "ink",
    "heavy ball": "blue",
    "Adam": "purple",
    "L-BFGS": "yellow",
    "16 Shin, by momentum": "orange",
}  # lines with a colour of their own; the best other rule is green, and the rest is faint
WORST = 1e3  # the right end of a profile
HOW = (
    "Every rule has the same number of settings, {settings} ({quick}), tried on {tuning} tuning "
    "seeds; the best median is judged on {seeds} other seeds. A seed decides the data of "
    "quadratics, random least squares and logistic regressions, and elsewhere the start and the "
    "minibatches. "
    "Work is counted in gradients (of "
    "minibatches where there are any); second derivatives are counted in units of them. A number "
    "is the median of the gradients until f - f* is at most the accuracy times f(x0) - f*, with "
    "the smallest and the largest in brackets, or in decades the median of the part of f(x0) - f* "
    "that is left, where most seeds did not get there."
)


def write_report(out: Path, plan: Any, results: Sequence[ProblemResult]) -> None:
    """Write `FILES` for the finished problems."""
    comparison = Comparison.of(plan.problems, plan.competitors, results)
    told = sentences(comparison)
    how = HOW.format(
        settings=len(plan.competitors[0].settings),
        quick="--quick, a third of the rates" if plan.quick else f"{RATES} rates times {OTHERS}",
        tuning=plan.tuning_seeds,
        seeds=plan.seeds,
    )
    write(out / FILES[0], page(comparison, told, how))
    write(out / FILES[1], markdown(comparison, told, how))
    write(out / FILES[2], as_csv(comparison))
    data: dict[str, Any] = {
        "version": __version__,
        "machine": {"processor": machine(), "jax": jax.__version__},
        "size": "quick" if plan.quick else "full",
        "how": how,
        "seeds": list(range(plan.seeds)),
        "tuning_seeds": [1000 + i for i in range(plan.tuning_seeds)],
        "sentences": told,
        "grids": {
            one.name: {"names": one.names, "settings": one.settings} for one in plan.competitors
        },
        "problems": [
            {
                "name": p.name,
                "group": p.group,
                "what": p.what,
                "gradients": p.gradients,
                "accuracy": p.accuracy,
                "rules": {k: dataclasses.asdict(v) for k, v in comparison.results[p.name].items()},
            }
            for p in comparison.problems
        ],
    }
    write(out / FILES[3], json.dumps(json_safe(data, not_finite=lambda _: None)) + "\n")


def as_csv(comparison: Comparison) -> str:
    """Return one row for each problem, rule and seed."""
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    rows.writerow(
        [
            "problem",
            "group",
            "rule",
            "seed",
            "gradients",
            "gap",
            "last_gap",
            "gradient_norm",
            "setting",
        ]
    )
    for p in comparison.problems:
        for rule, one in comparison.results[p.name].items():
            setting = " ".join(f"{name}={value:.6g}" for name, value in one.setting.items())
            for seed, solved in enumerate(one.solved):
                rows.writerow(
                    [
                        p.name,
                        p.group,
                        rule,
                        seed,
                        "" if solved is None else f"{solved:g}",
                        f"{one.gaps[seed]:.6g}",
                        f"{one.ends[seed]:.6g}",
                        f"{one.norms[seed]:.6g}",
                        setting,
                    ]
                )
    return buffer.getvalue()


def cell(one: Judged) -> str:
    """Return a result in a few characters: gradients with their spread, or decades."""
    middle = median_solved(one)
    if middle is not None:
        each = [np.inf if n is None else n for n in one.solved]
        high = "never" if np.isinf(max(each)) else f"{max(each):.0f}"
        return f"{middle:.0f} ({min(each):.0f} to {high})"
    return f"10^{np.log10(np.median(one.gaps)):.1f}"


def markdown(comparison: Comparison, told: Sequence[str], how: str) -> str:
    """Return the sentences and the tables as Markdown."""
    lines = [*(f"{i}. {sentence}" for i, sentence in enumerate(told, 1)), "", how, ""]
    lines.append("| rule | solved | better than gradient descent, equal, worse | nearest control |")
    lines.append("|---|---|---|---|")
    for name in (*comparison.rules, *comparison.controls):
        count = comparison.count(name, DESCENT)
        control, equal = comparison.nearest(name)
        near = f"{control}, on {equal}" if name in comparison.rules else ""
        signs = f"{count.better}, {count.equal}, {count.worse}"
        lines.append(f"| {name} | {solved(comparison, name)} | {signs} | {near} |")
    for group in dict.fromkeys(p.group for p in comparison.problems):
        names = [p.name for p in comparison.problems if p.group == group]
        lines += ["", f"## {group}", "", f"| rule | {' | '.join(names)} |"]
        lines.append("|---" * (1 + len(names)) + "|")
        for rule in (*comparison.rules, *comparison.controls):
            cells = " | ".join(cell(comparison.results[name][rule]) for name in names)
            lines.append(f"| {rule} | {cells} |")
    return "\n".join(lines) + "\n"


def solved(comparison: Comparison, rule: str) -> str:
    """Return on how many problems most seeds reached the accuracy."""
    found = [median_solved(by[rule]) is not None for by in comparison.results.values()]
    return f"{sum(found)} of {len(found)}"


def page(comparison: Comparison, told: Sequence[str], how: str) -> str:
    """Return the page: the sentences first."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in told)
    body = [
        "<h1>Fractional rules at equal gradients</h1>",
        f'<ol class="story">{items}</ol>',
        f'<p class="soft">{escape(how)}</p>',
    ]
    if comparison.results:
        body += ["<h2>Performance profiles</h2>", _profiles(comparison)]
        body += ["<h2>All results</h2>", *_tables(comparison)]
        body += ["<h2>Curves</h2>", _curves(comparison)]
    about = {
        "version": __version__,
        "processor": machine(),
        "data": f"{FILES[2]} and {FILES[3]}, with all seeds and settings",
    }
    body.append(definitions(about))
    return document("Fractional rules at equal gradients", "A comparison by cfgd", "\n".join(body))


def _tables(comparison: Comparison) -> list[str]:
    parts = []
    for group in dict.fromkeys(p.group for p in comparison.problems):
        chosen = [p for p in comparison.problems if p.group == group]
        head = "".join(f"<th>{escape(p.name)}</th>" for p in chosen)
        rows = "".join(
            f"<tr><td>{escape(rule)}</td>"
            + "".join(
                f'<td class="number">{escape(cell(comparison.results[p.name][rule]))}</td>'
                for p in chosen
            )
            + "</tr>"
            for rule in (*comparison.rules, *comparison.controls)
        )
        parts.append(
            f'<h3>{escape(group)}</h3><div class="scroll"><table><thead><tr><th>rule</th>{head}'
            f"</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    return parts


def _profiles(comparison: Comparison) -> str:
    """Return a profile for each group, and one of all problems."""
    groups = ["all problems", *dict.fromkeys(p.group for p in comparison.problems)]
    panels, data = [], {}
    for group in groups:
        names = [p.name for p in comparison.problems if group in ("all problems", p.group)]
        found = profile({name: comparison.results[name] for name in names})
        if found:
            data[group] = found
            panels.append(Panel(group, functools.partial(_draw_named, _draw_profile, group)))
    rows = [panels[i : i + 3] for i in range(0, len(panels), 3)]
    return _figure("profile", rows, data)


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
    axis.set(xlabel="gradients over the fewest", ylabel="share solved")
    axis.legend()


def _curves(comparison: Comparison) -> str:
    panels = [
        Panel(p.name, functools.partial(_draw_named, _draw_curves, p.name))
        for p in comparison.problems
    ]
    rows = [panels[i : i + 3] for i in range(0, len(panels), 3)]
    return _figure("curve", rows, comparison.results)


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
    axis.set(xscale="symlog", yscale="log", xlabel="gradients", ylabel="f - f*, first = 1")
    axis.set_ylim(top=3)
    axis.legend()


def _figure(name: str, rows: Sequence[Sequence[Panel]], data: Mapping[str, Any]) -> str:
    drawn = svgs(name, rows, data)
    return figures(
        [
            [(panel.title, svg) for panel, svg in zip(row, texts, strict=True)]
            for row, texts in zip(rows, drawn, strict=True)
        ]
    )
