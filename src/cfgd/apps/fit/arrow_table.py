"""Parquet and Feather files, read one record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from cfgd.apps.fit.table import Table, read_errors

BUFFER = (
    2**16
)  # bytes of a column that are read at once, so that memory is bounded for any row group


class Parquet(Table):
    """A Parquet file."""

    format: ClassVar[str] = "Parquet"

    def __init__(self, path: Path) -> None:
        with read_errors(path, self.format), self._open(path) as file:
            schema = file.schema_arrow
            super().__init__(path, schema.names, schema.types)

    def _open(self, path: Path) -> pq.ParquetFile:
        return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        with self._open(self.path) as file:
            yield from file.iter_batches(rows, columns=names)


class Feather(Table):
    """A Feather file of version 2, which is the IPC file format of Arrow."""

    format: ClassVar[str] = "Feather"

    def __init__(self, path: Path) -> None:
        with read_errors(path, self.format), pa.OSFile(str(path)) as raw:
            schema = pa.ipc.open_file(raw).schema
            super().__init__(path, schema.names, schema.types)

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        indices = [list(self.types).index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=indices)
        with pa.OSFile(str(self.path)) as raw, pa.ipc.open_file(raw, options=options) as file:
            for i in range(file.num_record_batches):
                yield file.get_batch(i)
