"""The rows of a table as rows of the design matrix, in blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from cfgd.apps.fit.columns import Column, EncodedRows, encode
from cfgd.apps.fit.formula import Formula
from cfgd.apps.fit.missing_values import left_out_rows
from cfgd.apps.fit.row_block import CodedBlock, RowBlock
from cfgd.apps.fit.row_roles import ClusterCodes, RowRoles
from cfgd.apps.fit.split import Split
from cfgd.apps.fit.table import Table
from cfgd.apps.fit.table_statistics import NO_ROLES, Standardisation
from cfgd.apps.fit.target import Target
from cfgd.apps.fit.workers import Report


@dataclasses.dataclass(frozen=True)
class Encoder:
    """How the rows of a table become rows of the design matrix, in blocks of `block_rows`.

    `missing` is the policy for missing values.
    """

    columns: list[Column]
    standardisation: Standardisation
    target: Target
    split: Split
    missing: str
    block_rows: int
    roles: RowRoles = NO_ROLES
    formula: Formula | None = None
    cluster_codes: ClusterCodes = dataclasses.field(default_factory=dict)

    def blocks(self, table: Table, report: Report) -> Iterator[CodedBlock]:
        """Iterate over the rows of a part of the table."""
        next_codes = self.split.code_generator(table.rows_before)
        names = [*(column.name for column in self.columns), self.target.name, *self.roles.names]
        for batch in table.blocks(names, self.block_rows):
            codes = next_codes(batch.num_rows)
            y = self.target.encode(batch.column(self.target.name))
            encoded = encode(self.columns, batch)
            undefined = np.zeros_like(encoded.missing)
            if self.formula is not None:
                X, undefined = self.formula(self.columns, encoded.X)
                encoded = EncodedRows(X, encoded.missing, encoded.unknown)
            roles = self.roles.read(batch, self.cluster_codes)
            left_out = left_out_rows(self.missing, encoded.missing | np.isnan(y)) | roles.unused
            unknown_rows = int(np.sum(encoded.unknown & ~left_out))
            undefined_rows = int(np.sum(undefined & ~left_out))
            used = ~left_out & ~undefined
            offset = None if roles.offset is None else roles.offset / self.target.scale
            about = RowBlock(encoded.X, y, roles.weight, offset, roles.cluster)
            if not used.all():
                about, codes = about.select(used), codes[used]
            about = about._replace(X=self.standardisation(about.X))
            yield CodedBlock(about, codes, unknown_rows, undefined_rows)
            report(batch.num_rows)


@dataclasses.dataclass(frozen=True)
class EncodedPart:
    """A part of a table whose blocks are encoded; `rows` is the number of those in use."""

    table: Table
    encoder: Encoder
    report: Report
    rows: int

    def __call__(self) -> Iterator[CodedBlock]:
        return self.encoder.blocks(self.table, self.report)


def no_rows() -> Iterator[CodedBlock]:
    """Iterate over no blocks: the part of a process for which there is no other one."""
    return iter(())
