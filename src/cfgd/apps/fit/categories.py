"""Count the levels of a column of texts, pool the rare ones, and choose the reference level.

- A level is rare if fewer than ten training rows have it, and fewer than one in a hundred. If two
  or more are rare, they are pooled as the level "other". `--rare N` sets another number of rows.
- The reference level is the most frequent one of all rows, held-out ones included, so that it does
  not depend on the seed; of equally frequent ones it is the first by alphabet. `--reference
  COLUMN=LEVEL` chooses another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.columns import MISSING, POOL, TextColumn
from cfgd.apps.fit.formats import typed

RARE_ROWS, RARE_SHARE = 10, 0.01
MAX_LEVELS = 1000  # levels of a column: each becomes a column of the design matrix
MAX_TEXTS = 20_000  # different texts that are counted, so that memory is bounded


class LevelCounts:
    """How many training rows, and how many rows in all, have each text of a column."""

    def __init__(self) -> None:
        self.training: Counter[str] = Counter()
        self.all: Counter[str] = Counter()

    def add(self, values: pa.Array, used: pa.Array, training: pa.Array) -> None:
        """Add rows; missing texts are a level, unless their rows are not used."""
        values = pc.fill_null(values, MISSING)
        for counts, mask in ((self.training, training), (self.all, used)):
            for entry in pc.value_counts(values.filter(mask)):
                counts[entry["values"].as_py()] += entry["counts"].as_py()

    def merge(self, other: LevelCounts) -> None:
        """Add the rows of other counts."""
        self.training.update(other.training)
        self.all.update(other.all)

    def column(self, path: Path, name: str, reference: str | None, rare: int | None) -> TextColumn:
        """Return the column with its levels.

        Raises
        ------
        ValueError
            If the reference level is not one of the training rows, or levels are too many.
        """
        if reference is not None and reference not in self.training:
            known = ", ".join(map(repr, sorted(self.training)[:20]))
            raise ValueError(
                f"--reference: no training row has {name!r} = {reference!r}, only {known}."
            )
        base = reference
        if base is None:
            base = min(self.training, key=lambda level: (-self.all[level], level))
        few = self._rare_levels({base, MISSING}, rare)
        levels = self.training.keys() - {base, *few} | ({POOL} if few and base != POOL else set())
        if len(levels) > MAX_LEVELS:
            raise ValueError(
                f"{path}: the column {name!r} has more than {MAX_LEVELS} different texts, too many "
                f"for categories: leave it out with {typed('--drop', name)}, or pool rare ones "
                "with --rare."
            )
        return TextColumn(name, base, tuple(sorted(levels)), few)

    def _rare_levels(self, kept: set[str], rare: int | None) -> tuple[str, ...]:
        least = min(RARE_ROWS, RARE_SHARE * self.training.total()) if rare is None else rare
        few = [level for level, n in self.training.items() if n < least and level not in kept]
        return tuple(sorted({*few} - {POOL})) if len(few) > 1 else ()

    def shares(self, column: TextColumn) -> list[float]:
        """Return for each level of the column the share of the training rows that have it."""
        total = self.training.total()
        pooled = sum(self.training[level] for level in column.rare)
        counts = (self.training[level] + pooled * (level == POOL) for level in column.levels)
        return [count / total for count in counts]


def parse_references(given: Sequence[str]) -> dict[str, str]:
    """Return the columns and levels of --reference COLUMN=LEVEL.

    >>> parse_references(["city=Bonn"])
    {'city': 'Bonn'}
    """
    found = {}
    for text in given:
        name, equals, level = text.partition("=")
        if not equals or not name:
            raise ValueError(f"--reference must be COLUMN=LEVEL, got {text!r}.")
        found[name] = level
    return found
