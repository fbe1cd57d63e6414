"""Detect how a file of delimited text is written: its encoding, its separator and its header."""

from __future__ import annotations

import codecs
import contextlib
import csv
import dataclasses
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from cfgd.apps.fit.compression import codec, first_bytes
from cfgd.apps.fit.header import LOOKED_ROWS, MOST, find_header

HEAD_BYTES = 2**18  # of the beginning of a file: hundreds of rows, and a few hundredths of a second
TAIL_BYTES = 2**16  # of the end
# The share of ASCII characters from which on text without a mark is taken as UTF-16: a file of few
# Cyrillic texts has half of them.
ASCII_SHARE = 0.3
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
DOUBLE, SINGLE = '"', "'"  # quotes
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
ENCODING_NAMES = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with a byte order mark",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "Latin-1",  # of Windows: the letters are those of Latin-1
}
WEB_PAGE = re.compile(r"\s*<(?:!doctype html|html|\?xml)\b", re.IGNORECASE)
EXCEL_LINE = re.compile(r"(\s*)sep=([^\r\n]?)[^\r\n]*", re.IGNORECASE)  # a line for Excel


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How a file of delimited text is written.

    `quote` is around texts. `skipped` lines precede the header, of which `above` are not blank;
    `names` are those of the columns, with names for those that have none; `rows` are the first
    rows.
    """

    encoding: str
    separator: str
    skipped: int
    above: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    quote: str = DOUBLE

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to say: commas, double quotes and UTF-8."""
        return (self.separator, self.encoding, self.quote) == (",", "utf-8", DOUBLE)

    def describe(self) -> str:
        """Return the separator, the encoding and unusual quotes in words."""
        quotes = "" if self.quote == DOUBLE else " in single quotes"
        return f"{SEPARATORS[self.separator]}-separated {ENCODING_NAMES[self.encoding]}{quotes}"


def sniff(path: Path, encoding: str | None = None) -> Dialect:
    """Return how the file is written, as its beginning tells; `encoding` is known if given."""
    raw = first_bytes(path, HEAD_BYTES)
    is_whole = len(raw) < HEAD_BYTES
    encoding = encoding or _encoding(path, raw)
    # the last character may be cut in two
    text = codecs.getincrementaldecoder(encoding)("replace").decode(raw, final=is_whole)
    if WEB_PAGE.match(text):
        raise ValueError(f"{path} is a web page or XML, no table: save it as CSV.")
    told = EXCEL_LINE.match(text)
    if told is not None:
        text = told[1] + text[told.end() :]
    separator = "" if told is None else told[2]
    if separator not in SEPARATORS:
        separator = detect_separator(text, is_whole)
    found, quote = _parse(text, separator, is_whole), DOUBLE
    if _is_in_single_quotes(found):
        quote = SINGLE
        found = _parse(text, separator, is_whole, quote)
    rows = [row for _, row in found]
    header = find_header(rows)
    if len(header.names) == 1:
        _check_header(path, header.names[0], text, is_whole)
    above = [separator.join(row).strip() for row in rows[: header.index]]
    names = header.names
    if names and _is_comment(names[0], above):
        names = (names[0].lstrip("# ") or names[0], *names[1:])
    return Dialect(
        encoding,
        separator,
        found[header.index][0] if found else 0,
        tuple(line for line in above if line),
        names,
        tuple(map(tuple, rows[header.index + 1 :])),
        quote,
    )


def _is_in_single_quotes(found: list[tuple[int, list[str]]]) -> bool:
    """Return whether most fields are in single quotes, and none has double ones."""
    fields = [field.strip() for _, row in found for field in row if field.strip()]
    single = sum(len(text) > 1 and text[0] == text[-1] == SINGLE for text in fields)
    return 2 * single > len(fields) and not any(DOUBLE in text for text in fields)


def last_rows(path: Path, dialect: Dialect) -> list[list[str]]:
    """Return rows from the end of a file that is longer than its first rows, if it is not packed.

    The first one may be a part of a row: those that have not as many fields as the header are left
    out.
    """
    size = path.stat().st_size
    if size <= HEAD_BYTES or codec(path)[0] is not None or dialect.encoding.startswith("utf-16"):
        return []
    with path.open("rb") as file:
        file.seek(size - TAIL_BYTES)
        text = file.read().decode(dialect.encoding, "replace")
    found = _parse(text, dialect.separator, is_whole=True, quote=dialect.quote)
    rows = (row for _, row in found[1:])
    return [row for row in rows if len(row) == len(dialect.names)]


def _is_comment(header: str, above: list[str]) -> bool:
    """Return whether the header is a comment, as NumPy writes it, like the lines above it."""
    return header.startswith("# ") or (bool(above) and all(line[:1] == "#" for line in above))


def _encoding(path: Path, raw: bytes) -> str:
    encoding = detect_encoding(raw)
    if encoding is None:
        raise ValueError(
            f"{path} is text of an unknown encoding, or damaged: save it as UTF-8, UTF-16 or "
            "Latin-1."
        )
    return encoding


def detect_encoding(raw: bytes) -> str | None:
    """Return the encoding of the beginning of a text file, as a name of Python's codecs.

    None stands for bytes that are no text: zeros, or what Windows-1252 has no character for.

    >>> [detect_encoding(text) for text in ("é".encode(), b"\\xe9", "a".encode("utf-16"))]
    ['utf-8', 'cp1252', 'utf-16']
    """
    for mark, encoding in BOMS:
        if raw.startswith(mark):
            return encoding
    # separators, digits and ends of lines are ASCII: these bytes of UTF-16 are then zero
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        half, other = raw[start:2000:2], raw[1 - start : 2000 : 2]
        if len(half) > 1 and half.count(0) > ASCII_SHARE * len(half) and not other.count(0):
            return encoding
    if b"\0" in raw:
        return None
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(raw, final=len(raw) < HEAD_BYTES)
        except UnicodeDecodeError:
            continue
        return encoding
    return None


def detect_separator(text: str, is_whole: bool) -> str:
    """Return the separator by which most rows have as many fields as the header.

    >>> detect_separator("a;b\\n1,5;2,5\\n", True)
    ';'
    """

    def score(separator: str) -> tuple[float, int, int]:
        header = find_header(
            [row for _, row in _parse(text, separator, is_whole, most=LOOKED_ROWS)]
        )
        return header.agreement, -header.index, len(header.names)

    best = max(SEPARATORS, key=score)
    return best if score(best)[0] > 0 else _any_separator(text, is_whole)


def _any_separator(text: str, is_whole: bool) -> str:
    """Return the separator that divides most first lines, where the rows have any widths."""

    def fields(separator: str) -> tuple[int, int]:
        rows = [row for _, row in _parse(text, separator, is_whole)[:LOOKED_ROWS]]
        return min(1, len(rows[0]) - 1) if rows else 0, sum(map(len, rows))

    return max(SEPARATORS, key=fields)


def _check_header(path: Path, header: str, text: str, is_whole: bool) -> None:
    """Raise a `ValueError` if one field is above rows of several: it is a title, no header."""
    for separator in SEPARATORS:
        widths = Counter(len(row) for _, row in _parse(text, separator, is_whole)[1:])
        width, rows = widths.most_common(1)[0] if widths else (1, 0)
        if width > 1 and rows > MOST * widths.total():
            raise ValueError(
                f"{path}: the first line must have the names of the columns, got {header[:40]!r} "
                f"above rows of {width} fields: delete the lines above the header."
            )


def _parse(
    text: str, separator: str, is_whole: bool, quote: str = DOUBLE, most: int | None = None
) -> list[tuple[int, list[str]]]:
    """Return the rows that are not empty, or the first ones, each with the lines before it.

    The last one is left out if it may be cut.
    """
    found: list[tuple[int, list[str]]] = []
    with contextlib.suppress(csv.Error):  # a field that is too long
        rows = rows_of(io.StringIO(text, newline=""), separator, quote)
        found.extend(rows if most is None else itertools.islice(rows, most))
    return found if is_whole or len(found) == most else found[:-1]


def rows_of(
    text: Iterable[str], separator: str, quote: str = DOUBLE
) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the rows that are not blank, each with the number of lines before it."""
    reader, before = csv.reader(text, delimiter=separator, quotechar=quote), 0
    for row in reader:
        if len(row) > 1 or (row and row[0].strip()):
            yield before, row
        before = reader.line_num
