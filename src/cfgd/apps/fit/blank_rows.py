"""Rows without a value, which spreadsheets write at the end of a table and between its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class BlankRows:
    """The rows of a file that have no value in any of some columns, and a filter that drops them.

    A pass over all of these columns finds the rows, and passes over some of them use what it found.

    >>> blank = BlankRows(["a", "b"])
    >>> batch = pa.RecordBatch.from_pydict({"a": [1, None, None], "b": ["u", "", "v"]})
    >>> [kept] = blank.left_out(["a", "b"], iter([batch]))
    >>> kept.column("b").to_pylist(), blank.count
    (['u', 'v'], 1)
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self._places: list[np.ndarray] = []  # of each batch that has some, in the file

    @property
    def count(self) -> int:
        """How many rows are blank."""
        return sum(map(len, self._places))

    def left_out(
        self, names: Sequence[str], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of the columns `names` without the rows."""
        finds, places = self.names <= set(names), list[np.ndarray]()
        known = np.concatenate(self._places) if self._places else np.zeros(0, int)
        before = 0
        for batch in batches:
            if finds:
                blank = self._find(batch)
                if len(blank):
                    places.append(before + blank)
            else:
                inside = slice(*np.searchsorted(known, [before, before + batch.num_rows]))
                blank = known[inside] - before
            before += batch.num_rows
            if len(blank):
                kept = np.ones(batch.num_rows, bool)
                kept[blank] = False
                batch = batch.filter(pa.array(kept))
            yield batch
        if finds:  # the pass has read all rows
            self._places = places

    def _find(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the indices of the blank rows of a batch."""
        found = np.arange(batch.num_rows)
        for name in self.names:
            column = batch.column(name)
            is_text = pa.types.is_string(column.type)
            if not is_text and not column.null_count:
                return found[:0]
            column = column if len(found) == len(column) else column.take(pa.array(found))
            empty = np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)
            if is_text:
                texts = pc.fill_null(pc.utf8_trim_whitespace(column), "")
                empty = np.asarray(pc.equal(texts, "").to_numpy(zero_copy_only=False), bool)
            found = found[empty]
            if not len(found):
                break
        return found
