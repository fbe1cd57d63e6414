"""A fit in words and rows, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfgd.apps.fit.columns import Text
from cfgd.apps.fit.conditioning import SINGULAR
from cfgd.apps.fit.figures import SURE
from cfgd.apps.fit.quality import said
from cfgd.apps.fit.run import Fitted
from cfgd.apps.fit.survey import SAMPLE
from cfgd.apps.fit.target import OF_LABELS

Row = tuple[str, str, str, str]  # term, coefficient, standard error, interval


def number(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.5g}"


def label(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value!r}"


def groups(done: Fitted) -> Iterator[tuple[str, list[Row]]]:
    """Rows of coefficients; of several classes those of each, under its name."""
    w, errors = done.model.coefficients, done.model.errors
    if done.target.classes == 1:
        yield "", _rows(done, w, errors)
        return
    for k, name in enumerate(done.target.labels):
        yield label(name), _rows(done, w[:, k], None if errors is None else errors[:, k])


def _rows(done: Fitted, w: np.ndarray, errors: np.ndarray | None) -> list[Row]:
    if errors is None:
        return [(term, number(one), "", "") for term, one in zip(done.model.terms, w, strict=True)]
    return [
        (term, number(one), number(e), f"{number(one - SURE * e)} to {number(one + SURE * e)}")
        for term, one, e in zip(done.model.terms, w, errors, strict=True)
    ]


def measures(done: Fitted) -> list[tuple[str, str, str]]:
    found = done.quality
    return [(name, number(found.model[name]), number(found.baseline[name])) for name in found.model]


def summary(done: Fitted) -> str:
    """What was fitted to what."""
    survey, target = done.survey, done.target
    of = f"{survey.train:,} rows of {done.asked.data.name}"
    held = f", {survey.test:,} more held out" if survey.test else ""
    left = f", {survey.dropped:,} with missing values left out" if survey.dropped else ""
    return f"{_loss(done)} {target.why}, fitted to {of}{held}{left}."


def _loss(done: Fitted) -> str:
    target = done.target
    if target.loss == "logistic":
        no, yes = map(label, target.labels)
        return f"Loss logistic (that {target.name!r} is {yes} and not {no})"
    if target.loss in OF_LABELS:
        return f"Loss multinomial (which of {len(target.labels)} labels {target.name!r} has)"
    if target.loss == "huber":
        return f"Loss huber (residuals count by their size beyond {number(target.scale)})"
    return f"Loss {target.loss}"


def sentences(done: Fitted) -> list[str]:
    """What a reader of the coefficients should know."""
    return [
        *_penalty(done),
        *_errors(done),
        _conditioning(done),
        f"The baseline is {said(done.target)}; on {done.measured_on}, {standing(done)}.",
        *_sample(done),
        *_bases(done),
        *_reading(done),
    ]


def standing(done: Fitted) -> str:
    """The model beside the baseline."""
    share, name = done.quality.explained, next(iter(done.quality.model))
    if share > 0:
        return f"the model takes away {100 * share:.1f} % of its {name}"
    return f"the {name} of the model is no lower"


def _sample(done: Fitted) -> list[str]:
    if done.quality.rows <= SAMPLE:
        return []
    area = "The area under the ROC curve and the" if done.target.loss == "logistic" else "The"
    return [f"{area} figures are of the first {SAMPLE:,} of these rows."]


def _penalty(done: Fitted) -> list[str]:
    if not done.l2:
        return []
    chosen = " as cross-validation in five folds chose it" if done.validated else ""
    return [
        f"The penalty is l2 = {number(done.l2)}{chosen}, on the coefficients of standardised "
        "columns: they are shrunk, and the standard errors are those of the shrunken ones."
    ]


def _errors(done: Fitted) -> list[str]:
    if done.model.errors is not None:
        return []
    return [
        "There are no standard errors: the rows do not determine the coefficients, or there are "
        "too many of them."
    ]


def _conditioning(done: Fitted) -> str:
    found = done.conditioning
    if found is None:
        return "There are too many columns to say how well they are told apart."
    worst = done.model.terms[found.worst]
    if found.words == SINGULAR:
        return f"The columns are singular: {worst!r} follows from others but for the penalty."
    like = ""
    if found.inflation > 2:
        like = (
            f"; {worst!r} is most like the others, which makes its variance "
            f"{number(found.inflation)} times as large"
        )
    return (
        f"The conditioning of the columns is {found.words}: condition number "
        f"{found.standardised:.3g} standardised, {found.raw:.3g} as they are{like}."
    )


def _bases(done: Fitted) -> list[str]:
    texts = [column for column in done.model.columns if isinstance(column, Text)]
    if not texts:
        return []
    bases = ", ".join(f"{column.name!r} to {column.base!r}" for column in texts[:10])
    return [f"Coefficients of texts compare {bases}{' and so on' if len(texts) > 10 else ''}."]


def _reading(done: Fitted) -> list[str]:
    found = []
    if done.streamed:
        found.append(
            f"The rows do not fit into --memory: the file was read {done.passes + 1:,} times, "
            "block by block."
        )
    if done.unseen:
        found.append(
            f"{done.unseen:,} rows were left out of the measures: they have a text that no row "
            "of the fit has."
        )
    return found


def ending(done: Fitted) -> str:
    """How the run ended."""
    ends = done.solution
    if done.separated:
        return (
            "The columns tell the labels of all rows that are fitted to apart: without a penalty "
            "coefficients grow without end, so that these mean nothing: --l2 1 or --cross-validate."
        )
    if ends.success:
        return f"Converged in {ends.iterations} iterations, {done.seconds:.1f} s in all."
    return (
        f"Not converged, so take care ({ends.status.name} after {ends.iterations} iterations): "
        f"{ends.details}"
    )
