"""Open a table by the ending of its name, after a check that its first bytes agree."""

from __future__ import annotations

import glob
import stat
from collections.abc import Sequence
from pathlib import Path

from cfgd._core.files import reason
from cfgd.apps.fit.arrow_table import Feather, Parquet
from cfgd.apps.fit.compression import CODECS, codec, first_bytes
from cfgd.apps.fit.csv_table import Csv
from cfgd.apps.fit.excel_table import Excel
from cfgd.apps.fit.files_table import Files
from cfgd.apps.fit.json_table import JsonLines
from cfgd.apps.fit.npz_table import Npz
from cfgd.apps.fit.sniffing import BOMS, detect_encoding
from cfgd.apps.fit.table import Table
from cfgd.apps.fit.workers import THIS_PROCESS, Workers

TEXT_FORMATS: dict[str, type[Csv | JsonLines]] = {
    ".csv": Csv,
    ".tsv": Csv,
    ".txt": Csv,
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".json": JsonLines,
}
# for each ending the class of the table and the first bytes of such files
BINARY_FORMATS: dict[str, tuple[type[Parquet | Feather | Npz | Excel], bytes]] = {
    ".xlsx": (Excel, b"PK"),
    ".parquet": (Parquet, b"PAR1"),
    ".feather": (Feather, b"ARROW1"),
    ".npz": (Npz, b"PK"),
}
IN_MEMORY = (".xlsx",)  # whose tables are in memory while they are open
ENDINGS = [
    *(ending + more for ending in TEXT_FORMATS for more in ("", *CODECS)),
    *BINARY_FORMATS,
]
# first bytes of files by which an error message names their true format
SIGNATURES = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"FEA1": "Feather of version 1",
    b"PK\x03\x04": "a zip archive, as NPZ and Excel's .xlsx are",
    b"\xd0\xcf\x11\xe0": "Excel's .xls of old, which Excel can save as .xlsx",
    b"%PDF": "PDF",
    b"{\\rtf": "RTF",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "HDF5",
    b"$FL2": "SPSS's .sav, which pandas.read_spss reads",
    b"<stata_dta>": "Stata's .dta, which pandas.read_stata reads",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
HEAD = 64  # bytes that are enough to recognise a format


def files_of(data: Path | Sequence[Path]) -> list[Path]:
    """Return the files of a path, which may be a folder or have wildcards, or of several paths.

    The files of a folder, or of wildcards, are in the order of their names.
    """
    if isinstance(data, Path):
        return _files_of_path(data)
    found = [file for path in data for file in _files_of_path(path)]
    for path in found:
        if found.count(path) > 1:
            raise ValueError(f"{path} is given twice.")
    return found


def _files_of_path(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            found = [one for one in sorted(path.iterdir()) if has_ending(one) and one.is_file()]
            if not found:
                raise ValueError(f"The folder {path} has no file of {', '.join(ENDINGS)}.")
            return found
        if not path.exists() and any(sign in str(path) for sign in "*?["):
            found = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
            if not found:
                raise ValueError(f"There is no file {path}.")
            return found
    except OSError:  # a name that is too long, a folder that may not be read: opening it says so
        pass
    return [path]


def has_ending(path: Path) -> bool:
    """Return whether the name of a file has the ending of a format, and does not begin with a dot.

    Programs that write folders of Parquet files add others, such as _SUCCESS and .crc files.
    """
    return path.name[0] not in "._" and any(map(path.name.lower().endswith, ENDINGS))


def name_of(data: Path | Sequence[Path]) -> Path:
    """Return how messages name data that may be several files."""
    if isinstance(data, Path):
        return data
    if len(data) == 1:
        return data[0]
    others = f"{len(data) - 1} other{'s' if len(data) > 2 else ''}"
    return data[0].with_name(f"{data[0].name} and {others}")


def open_tables(
    data: Path | Sequence[Path],
    memory: float,
    decimal: str | None = None,
    sheet: str | None = None,
    workers: Workers = THIS_PROCESS,
) -> Table:
    """Open the files of `data` as one table, whose passes the workers compute.

    The other parameters are those of `open_table`.
    """
    paths = files_of(data)
    if len(paths) == 1:
        table = open_table(paths[0], memory, decimal, sheet)
    else:
        endings = sorted({_ending(path) for path in paths})
        if len(endings) > 1:
            raise ValueError(
                f"{name_of(data)}: the files of a table must be of one format, got "
                f"{' and '.join(endings)}."
            )
        share = memory / len(paths) if endings[0] in IN_MEMORY else memory
        table = Files(name_of(data), [open_table(path, share, decimal, sheet) for path in paths])
    table.workers = workers
    return table


def open_table(
    path: Path, memory: float, decimal: str | None = None, sheet: str | None = None
) -> Table:
    """Open the table in a file; raise a `ValueError` if it is not what its name says.

    Parameters
    ----------
    memory
        The number of bytes that reading may take.
    decimal
        The decimal sign of a text file; None for that of its first rows.
    sheet
        The sheet of an Excel file; None for the first.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}.") from None
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise ValueError(f"{path} cannot be read: {reason(error)}.") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise ValueError(f"{path} is {kind}, not a file.")
    ending = _ending(path)
    if sheet is not None and ending != ".xlsx":
        raise ValueError(f"--sheet: {path} is no Excel file, so it has no sheets.")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        if ending in BINARY_FORMATS:
            return _open_binary(path, ending, head, memory, sheet)
        return _open_text(path, TEXT_FORMATS[ending], head, memory, decimal)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {reason(error)}.") from None


def _ending(path: Path) -> str:
    """Return the ending of a name, without that of a compression."""
    try:
        ending = matching_ending(path, ENDINGS)
    except ValueError:
        texts, others = ", ".join(TEXT_FORMATS), ", ".join(BINARY_FORMATS)
        raise ValueError(
            f"{path}: the name must end in {texts} (each also with {' or '.join(CODECS)}), "
            f"{others}."
        ) from None
    for compressed in CODECS:
        ending = ending.removesuffix(compressed)
    return ending


def _open_binary(path: Path, ending: str, head: bytes, memory: float, sheet: str | None) -> Table:
    table_class, signature = BINARY_FORMATS[ending]
    if not head.strip():
        raise ValueError(f"{path} is empty.")
    if not head.startswith(signature):
        raise _wrong_format(path, table_class.format, head)
    return Excel(path, memory, sheet) if table_class is Excel else table_class(path, memory)


def _open_text(
    path: Path, table_class: type[Csv | JsonLines], head: bytes, memory: float, decimal: str | None
) -> Table:
    if not head.strip():
        raise ValueError(f"{path} is empty.")
    if not head.startswith(codec(path)[1]):
        raise _wrong_format(path, table_class.format, head)
    content = first_bytes(path, HEAD)
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    if _is_binary(content) or content.startswith(tuple(SIGNATURES)):
        raise _wrong_format(path, table_class.format, content)
    return Csv(path, memory, decimal) if table_class is Csv else JsonLines(path, memory)


def _wrong_format(path: Path, format: str, head: bytes) -> ValueError:
    return ValueError(f"{path} is not {format}, as its name says: it {_describe(head)}.")


def matching_ending(path: Path, endings: list[str]) -> str:
    """Return the longest of the endings that the name has; raise a `ValueError` for none."""
    found = [ending for ending in endings if path.name.lower().endswith(ending)]
    if not found:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise ValueError(f"{path}: the name must end in {known}.")
    return max(found, key=len)


def _is_binary(head: bytes) -> bool:
    """Return whether there are control characters, unknown in tables, but NUL is in UTF-16.

    `sniff` refuses NUL in other texts.
    """
    if any(head.startswith(mark) for mark, _ in BOMS) or str(detect_encoding(head)).startswith(
        "utf-16"
    ):
        return False
    return any(0 < byte < 9 or 13 < byte < 32 for byte in head)


def _describe(head: bytes) -> str:
    for signature, name in SIGNATURES.items():
        if head.startswith(signature):
            return f"is {name}"
    return f"begins with {head[:12]!r}"
