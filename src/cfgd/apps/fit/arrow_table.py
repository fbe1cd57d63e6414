"""Parquet and Feather files, read one record batch at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from cfgd.apps.fit.table import Table, is_text, read_errors

BUFFER = (
    2**16
)  # bytes of a column that are read at once, so that memory is bounded for any row group


# No column of measurements is compressed by more: it is the largest ratio of gzip.
MOST_EXPANSION = 1032


class Parquet(Table):
    """A Parquet file.

    Texts are read as categories: a page that names one long text for each of many rows would
    otherwise expand to more than the memory.
    """

    format: ClassVar[str] = "Parquet"
    groups: range  # row groups

    def __init__(self, path: Path, memory: float) -> None:
        self.texts: list[str] = []
        with read_errors(path, self.format):
            with self._open(path) as file:
                self._check_metadata(path, file.metadata, memory)
                schema = file.schema_arrow
                self.groups = range(file.metadata.num_row_groups)
                self._sizes = [file.metadata.row_group(i).num_rows for i in self.groups]
            self.texts = [field.name for field in schema if is_text(field.type)]
            super().__init__(path, memory, schema.names, schema.types)
            self.row_count = sum(self._sizes)

    def divided(self, count: int) -> list[Table]:
        size = max(1, -(-len(self.groups) // count))
        if len(self.groups) <= size:
            return [self]
        ranges = [self.groups[i : i + size] for i in range(0, len(self.groups), size)]
        return [
            self.part(groups=groups, row_count=sum(self._sizes[i] for i in groups))
            for groups in ranges
        ]

    def _open(self, path: Path) -> pq.ParquetFile:
        return pq.ParquetFile(
            path, buffer_size=BUFFER, pre_buffer=False, read_dictionary=self.texts
        )

    def _check_metadata(self, path: Path, metadata: pq.FileMetaData, memory: float) -> None:
        """Raise a `ValueError` for sizes that the file does not have, or that are not plausible."""
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        if metadata.num_rows < 0 or metadata.num_rows != sum(group.num_rows for group in groups):
            raise ValueError(
                f"{path}: its parts do not have the {metadata.num_rows:,} rows of all."
            )
        size = path.stat().st_size
        for group in groups:
            for j in range(group.num_columns):
                column = group.column(j)
                expanded, stored = column.total_uncompressed_size, column.total_compressed_size
                if not 0 <= stored <= size:
                    raise ValueError(
                        f"{path}: the column {column.path_in_schema!r} is said to have {stored:,} "
                        f"bytes, in a file of {size:,}."
                    )
                if expanded > max(memory, MOST_EXPANSION * stored):
                    raise ValueError(
                        f"{path}: the column {column.path_in_schema!r} expands from {stored:,} to "
                        f"{expanded:,} bytes, more than the {memory:.3g} that may be used."
                    )

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        with self._open(self.path) as file:
            yield from file.iter_batches(rows, row_groups=list(self.groups), columns=names)


class Feather(Table):
    """A Feather file of version 2, which is the IPC file format of Arrow."""

    format: ClassVar[str] = "Feather"
    indices: range  # of the record batches

    def __init__(self, path: Path, memory: float) -> None:
        with read_errors(path, self.format), pa.OSFile(str(path)) as raw:
            file = pa.ipc.open_file(raw)
            self.indices = range(file.num_record_batches)
            super().__init__(path, memory, file.schema.names, file.schema.types)

    def divided(self, count: int) -> list[Table]:
        size = max(1, -(-len(self.indices) // count))
        if len(self.indices) <= size:
            return [self]
        ranges = [self.indices[i : i + size] for i in range(0, len(self.indices), size)]
        return [
            self.part(indices=indices, row_count=sum(self._sizes[i] for i in indices))
            for indices in ranges
        ]

    @functools.cached_property
    def _sizes(self) -> list[int]:
        """The rows of the record batches, which their headers have."""
        options = pa.ipc.IpcReadOptions(included_fields=[0])
        with pa.OSFile(str(self.path)) as raw, pa.ipc.open_file(raw, options=options) as file:
            return [file.get_batch(i).num_rows for i in self.indices]

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        indices = [list(self.types).index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=indices)
        with pa.OSFile(str(self.path)) as raw, pa.ipc.open_file(raw, options=options) as file:
            for i in self.indices:
                yield file.get_batch(i)
