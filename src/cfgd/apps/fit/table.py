"""A table in a file: columns by name, whose rows are read in blocks, as often as one likes."""

from __future__ import annotations

import abc
import contextlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd._core.files import reason

Kind = Literal["number", "text"]
LONGEST = 160  # characters of what a library says


class Table(abc.ABC):
    """`types` has the columns in their order; `blocks` begins at the first row."""

    format: ClassVar[str]

    def __init__(self, path: Path, names: Sequence[str], types: Sequence[Any]) -> None:
        self.path = path
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise ValueError(f"{path} has more than one column {name!r}: rename all but one.")
            seen.add(name)
        self.types = dict(zip(names, types, strict=True))

    @abc.abstractmethod
    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Record batches of these columns, in any order; of about `rows` rows where it can be."""

    def blocks(self, names: list[str], rows: int) -> Iterator[Any]:
        """Record batches of at most `rows` rows of these columns."""
        with reading(self.path, self.format):
            for batch in self.batches(names, rows):
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    def kind(self, name: str) -> Kind:
        """What can be done with a column, or why nothing can."""
        of = self.types[name]
        inner = of.value_type if pa.types.is_dictionary(of) else of
        if pa.types.is_string(inner) or pa.types.is_large_string(inner):
            return "text"
        if is_number(inner):
            return "number"
        raise ValueError(
            f"{self.path}: the column {name!r} holds {of}; numbers, texts and booleans can be "
            f"used: leave it out with --drop {name}."
        )


def is_number(of: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(of) for test in tests)


def numbers(column: Any) -> np.ndarray:
    """float64, NaN where a value is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def texts(column: Any) -> Any:
    """As strings; an empty one is missing, as in CSV."""
    column = column.cast(pa.string())
    if not pc.any(pc.equal(column, "")).as_py():
        return column
    # pyarrow's own `if_else` is wrong on slices of a column, in version 16
    return pa.array([text or None for text in column.to_pylist()], pa.string())


@contextlib.contextmanager
def reading(path: Path, format: str) -> Iterator[None]:
    """What a library says of a file it cannot read, as one sentence."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {shortened(reason(error))}.") from None
    except (pa.ArrowException, zipfile.BadZipFile, zlib.error, EOFError) as error:
        said = shortened(str(error)) or "it ends too early"
        raise ValueError(f"{path} cannot be read as {format}: {said}.") from None


def shortened(said: str) -> str:
    return said.partition("\n")[0][:LONGEST].strip().rstrip(".")
