"""Texts that mark a missing value, and those that the user adds with --na."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# What R, pandas, SAS, SPSS, Excel and people write. Spaces around them do not count.
MARKS = (
    "", "NA", "na", "Na", "N/A", "n/a", "N.A.", "n.a.", "#N/A", "#n/a", "<NA>", "NaN", "nan",
    "NAN", "-nan", "-NaN", "NaT", "#NA", "null", "NULL", "Null", "(null)", "\\N", "None", "?", "-",
    "--", "–", "—", ".", "k.A.", "k. A.",
)  # fmt: skip
MINUS, PLUS = "-", "+"


@dataclasses.dataclass(frozen=True)
class MissingMarks:
    """The marks of missing values: those above, and `more`, which are those of --na.

    A text of `more` that is a number, with a decimal point or comma, stands for that number in any
    notation; "inf" stands for infinity.
    """

    more: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[float]:
        """The marks that are numbers."""
        found = []
        for text in self.more:
            try:
                found.append(float(text.replace(",", ".") if "." not in text else text))
            except ValueError:
                continue
        return [value for value in found if not np.isnan(value)]

    def in_texts(self, texts: pa.Array, kept: tuple[str, ...] = ()) -> np.ndarray:
        """Return which of the texts are marks; those in `kept` are not."""
        marks = [mark for mark in (*MARKS, *map(str.strip, self.more)) if mark not in kept]
        found = pc.is_in(pc.utf8_trim_whitespace(texts), pa.array(marks, pa.string()))
        return np.asarray(found.to_numpy(zero_copy_only=False), bool)

    def in_numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the numbers with NaN in the place of marks."""
        numbers = self.numbers
        return np.where(np.isin(values, numbers), np.nan, values) if numbers else values
