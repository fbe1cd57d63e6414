"""Detect how a file of delimited text is written: its encoding, its separator and its header."""

from __future__ import annotations

import codecs
import csv
import dataclasses
import io
from collections import Counter
from pathlib import Path

from cfgd.apps.fit.compression import first_bytes

HEAD_BYTES = 2**18  # of the beginning of a file: hundreds of rows, and a few hundredths of a second
HEAD_ROWS = 500  # that are looked at for the separator
MOST = 0.9  # the share of rows that have the same number of fields below a title
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
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
    "latin-1": "Latin-1",
}
UNNAMED = "Unnamed: {}"  # the name that pandas gives to column i without one


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How a file of delimited text is written.

    `skipped` lines precede the header; `names` are those of the columns, with names for those that
    have none; `rows` are the first rows.
    """

    encoding: str
    separator: str
    skipped: int
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to say: commas and UTF-8."""
        return self.separator == "," and self.encoding == "utf-8"

    def describe(self) -> str:
        """Return the separator and the encoding in words."""
        return f"{SEPARATORS[self.separator]}-separated {ENCODING_NAMES[self.encoding]}"


def sniff(path: Path, encoding: str | None = None) -> Dialect:
    """Return how the file is written, as its beginning tells; `encoding` is known if given."""
    raw = first_bytes(path, HEAD_BYTES)
    is_whole = len(raw) < HEAD_BYTES
    encoding = encoding or detect_encoding(raw)
    # the last character may be cut in two
    text = codecs.getincrementaldecoder(encoding)("replace").decode(raw, final=is_whole)
    lines = text.splitlines(keepends=True)
    skipped, separator = 0, None
    while skipped < len(lines) and (
        not lines[skipped].strip() or lines[skipped].lower().startswith("sep=")
    ):
        if lines[skipped].lower().startswith("sep="):  # a line for Excel
            separator = lines[skipped].strip()[4:5] or "\t"
        skipped += 1
    body = "".join(lines[skipped:])
    if separator not in SEPARATORS:
        separator = detect_separator(body, is_whole)
    rows = _parse(body, separator, is_whole)
    header = [name.strip() for name in rows[0]] if rows else []
    rows = rows[1:]
    if len(header) == 1:
        _check_header(path, header[0], body, is_whole)
    widths = Counter(map(len, rows))
    if len(header) > 1 and widths and widths.most_common(1)[0][0] == len(header) + 1:
        header = ["", *header]  # as R writes tables: the names of rows have no name
    names = tuple(name or UNNAMED.format(i) for i, name in enumerate(header))
    return Dialect(encoding, separator, skipped, names, tuple(map(tuple, rows)))


def detect_encoding(raw: bytes) -> str:
    """Return the encoding of the beginning of a text file, as a name of Python's codecs.

    >>> [detect_encoding(text) for text in ("é".encode(), b"\\xe9", "a".encode("utf-16"))]
    ['utf-8', 'cp1252', 'utf-16']
    """
    for mark, encoding in BOMS:
        if raw.startswith(mark):
            return encoding
    # most characters of a table are ASCII: every other byte of UTF-16 is then zero
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        half, other = raw[start:2000:2], raw[1 - start : 2000 : 2]
        if len(half) > 1 and half.count(0) > 0.9 * len(half) and not other.count(0):
            return encoding
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(raw, final=len(raw) < HEAD_BYTES)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"  # in which every byte is a character


def detect_separator(text: str, is_whole: bool) -> str:
    """Return the separator by which most rows have as many fields as the header.

    >>> detect_separator("a;b\\n1,5;2,5\\n", True)
    ';'
    """

    def agreement(separator: str) -> tuple[float, int]:
        widths = [len(row) for row in _parse(text, separator, is_whole)[:HEAD_ROWS]]
        if not widths or widths[0] < 2:
            return 0.0, 0
        agreeing = sum(width in (widths[0], widths[0] + 1) for width in widths)
        return agreeing / len(widths), widths[0]

    best = max(SEPARATORS, key=agreement)
    return best if agreement(best) > (0, 0) else ","


def _check_header(path: Path, header: str, text: str, is_whole: bool) -> None:
    """Raise a `ValueError` if one field is above rows of several: it is a title, no header."""
    for separator in SEPARATORS:
        widths = Counter(len(row) for row in _parse(text, separator, is_whole)[1:])
        width, rows = widths.most_common(1)[0] if widths else (1, 0)
        if width > 1 and rows > MOST * widths.total():
            raise ValueError(
                f"{path}: the first line must have the names of the columns, got {header[:40]!r} "
                f"above rows of {width} fields: delete the lines above the header."
            )


def _parse(text: str, separator: str, is_whole: bool) -> list[list[str]]:
    """Return the rows that are not empty, without the last one if it may be cut."""
    found: list[list[str]] = []
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        found.extend(row for row in reader if row)
    except csv.Error:  # a field that is too long
        pass
    return found if is_whole else found[:-1]
