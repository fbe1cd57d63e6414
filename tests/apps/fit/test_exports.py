# ruff: noqa: E501 - each file is one line
"""Exports of banks, instruments and spreadsheets: what stands around the table, and ends its rows."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from messy_tables import (
    check_columns,
    check_message,
    columns_of,
    excel,
    jsonl,
    parquet,
    read,
    write,
)

pytestmark = pytest.mark.every_case

TABLE = "x,city,y\n1.5,Ulm,3\n2,Bonn,4\n3,Ulm,5\n"
COLUMNS = {"x": [1.5, 2, 3], "city": ["Ulm", "Bonn", "Ulm"], "y": [3, 4, 5]}
GERMAN = TABLE.replace(",", ";").replace(".", ",")
ROWS = [["x", "city", "y"], [1.5, "Ulm", 3], [2, "Bonn", 4], [3, "Ulm", 5]]
RUSSIAN = "x;город;y\n1,5;Киев;3\n2;Москва;4\n3;Киев;5\n"


def padded(table, separator=";", end=";"):
    return "".join(f"{line}{end}\n" for line in table.splitlines())


# name of the file, content, options, columns, what is said
FILES = {
    "blank rows of a spreadsheet": ("a.csv", TABLE.replace("2,Bonn", ",,\n2,Bonn") + ",,\n , ,\n", {}, COLUMNS, "3 blank rows are left out."),
    "blank rows and dates": ("a.csv", "d;y\n20240101;1\n;\n20240103;2\n20240102;4\n;\n", {}, {"d": [0, 2, 1], "y": [1, 2, 4]}, "2 blank rows are left out."),
    "a value in one column of a row": ("a.csv", "x,y\n1.5,1\n,\n,3\n2.5,4\n", {}, {"x": [1.5, float("nan"), 2.5], "y": [1, 3, 4]}, "1 blank row is left out."),
    "facts of a bank": ("a.csv", "Kontoauszug\nKontonummer;DE12 3456\nZeitraum;1.1.2024 - 31.1.2024\n\n" + GERMAN, {}, COLUMNS, "The 3 lines above the header are left out: 'Kontoauszug' and so on."),
    "a title with a comma": ("a.csv", "Sales, by city\n" + GERMAN, {}, COLUMNS, "The line above the header is left out: 'Sales, by city'."),
    "a title with the separator": ("a.csv", "Export,v1\nCreated,2024-01-01\n" + TABLE, {}, COLUMNS, "The 2 lines above the header are left out: 'Export,v1' and so on."),
    "a title padded by a spreadsheet": ("a.csv", "Report;;\n;;\n" + GERMAN, {}, COLUMNS, "'Report;;'"),
    "comments": ("a.csv", "# instrument: X\n# units: mm, s\n" + TABLE, {}, COLUMNS, "'# instrument: X' and so on."),
    "a header that is a comment": ("a.csv", "# instrument: X\n#" + TABLE, {}, COLUMNS, "'# instrument: X'."),
    "a header of NumPy": ("a.txt", "# x,y\n1.5,3\n2,4\n", {}, {"x": [1.5, 2], "y": [3, 4]}, None),
    "a quoted title of two lines": ("a.csv", '"Report\nof 2024"\n\n' + TABLE, {}, COLUMNS, "The line above the header is left out"),
    "a title and ends of lines of old": ("a.csv", ("Report\n" + TABLE).replace("\n", "\r"), {}, COLUMNS, "'Report'."),
    "a title in UTF-16": ("a.csv", ("Report\n\n" + GERMAN).encode("utf-16"), {}, COLUMNS, "'Report'."),
    "a title and packed rows": ("a.csv.gz", gzip.compress(("Report\n" + TABLE).encode()), {}, COLUMNS, "'Report'."),
    "a title in a sheet": ("a.xlsx", excel([["Sales report"], [], *ROWS]), {}, COLUMNS, "The line above the header is left out: 'Sales report'."),
    "the first of two sheets": ("a.xlsx", excel(ROWS, notes=[["nothing"]]), {}, COLUMNS, "The first sheet 'Sheet' is read; --sheet reads another: 'notes'."),
    "separators at the ends of rows": ("a.csv", "x;city;y\n" + padded(GERMAN.partition("\n")[2]), {}, COLUMNS, "The column 'Unnamed: 3' is left out: it has no value."),
    "separators at all ends": ("a.csv", padded(GERMAN), {}, COLUMNS, "'Unnamed: 3'"),
    "a separator at the end of the header": ("a.csv", "x;city;y;\n" + GERMAN.partition("\n")[2], {}, COLUMNS, "a.csv is read as semicolon-separated UTF-8 with decimal commas."),
    "a line for Excel below a blank one": ("a.csv", "\nsep=;\r\n" + GERMAN.replace("\n", "\r\n"), {}, COLUMNS, "decimal commas"),
    "few letters of ASCII": ("a.csv", RUSSIAN.encode("utf-16-le"), {}, {"x": [1.5, 2, 3], "город": ["Киев", "Москва", "Киев"], "y": [3, 4, 5]}, "semicolon-separated UTF-16"),
    "JSON in UTF-16": ("a.jsonl", jsonl({"x": 1, "y": 2}, {"x": 3, "y": 4}).encode("utf-16"), {}, {"x": [1, 3], "y": [2, 4]}, "a.jsonl is read as UTF-16."),
    "JSON in Latin-1": ("a.json", json.dumps([{"t": "ä", "y": 1}, {"t": "b", "y": 2}, {"t": "b", "y": 3}], ensure_ascii=False).encode("latin-1"), {}, {"t": ["ä", "b", "b"], "y": [1, 2, 3]}, "a.json is read as Latin-1."),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_exports_are_read_right(tmp_path, case):
    check_columns(tmp_path, *FILES[case])


DELETED = "a text with the separator in it must be in quotes, and a row that is none of the table must be deleted."
REFUSED = {
    # name of the file, content, options, the message after the name of the file
    "a total": ("a.csv", TABLE + "Total,,12\n", {}, ": the last row (4) seems to be a total: it has 'Total' in the column 'x': delete it."),
    "a total among texts": ("a.csv", "city,x,y\nUlm,1,3\nUlm,2,4\nBonn,3,5\nSumme:,6,12\n", {}, ": the last row (4) seems to be a total: it has 'Summe:' in the column 'city': delete it."),
    "a total in a sheet": ("a.xlsx", excel([*ROWS, [None, "Grand total", 12]]), {}, ": the last row (4) seems to be a total"),
    "a line of units": ("a.csv", "t,v,y\ns,V,m\n" + "1,2,3\n2,3,5\n3,5,4\n", {}, ": the column 't' is a number in 3 rows, but 's' (row 1) is not, and this row seems to belong to the header, with units or a second line of names: delete it."),
    "questions and ids of a survey": ("a.csv", 'Q1,y\nHow old?,Score\n"{""ImportId"":1}",x\n' + "1,2\n2,3\n3,5\n", {}, """: the column 'Q1' is a number in 3 rows, but 'How old?' (row 1), '{"ImportId":1}' (row 2) are not, and these rows seem to belong to the header, with units or a second line of names: delete them."""),
    "a bad value in the first row": ("a.csv", "t,v,y\nn.b.,2,3\n2,3,5\n3,5,4\n", {}, ": the column 't' is a number in 2 rows, but 1 value is not: 'n.b.' (row 1): --bad-values missing"),
    "two lines of names": ("a.xlsx", excel([["Sales", None, "Result"], ["north", "south", "y"], [1, 2, 3], [2, 5, 4], [4, 1, 7]]), {}, "--target: {path} has no column 'y', only 'Sales', 'Unnamed: 1', 'Result' (row 1 below has 'y': if it is the header, delete what is above it)."),
    "formulas without values": ("a.xlsx", excel([["x", "f", "y"], [1, "=A2*2", 3], [2, "=A3*2", 4], [4, "=A4*2", 7]]), {}, ": the column 'f' has formulas without their values, as programs other than a spreadsheet write them: open the file in one and save it."),
    "debit and credit": ("a.csv", "x,y\n5.50 CR,1\n7.25 DR,2\n1.00 CR,4\n", {}, ": the column 'x' has numbers with the units 'CR' in 2 rows, 'DR' in 1 rows: "),
    "a noun and its plural": ("a.csv", "x,y\n1 day,1\n2 days,2\n3 days,4\n1 day,4\n", {}, ": the column 'x' has numbers with the units 'day' in 2 rows, 'days' in 2 rows: "),
    "dates that begin with a short year": ("a.csv", "x,y\n" + "".join(f"24-{1 + i % 3:02d}-{1 + i:02d},{i % 4}\n" for i in range(20)), {}, ": the column 'x' has dates such as '24-01-01', which seem to begin with a year of two digits: write it with four; if they do not, use --date-order mdy or --date-order dmy to say it."),
    "a PDF": ("a.csv", b"%PDF-1.4\n1 0 obj", {}, " is not CSV, as its name says: it is PDF."),
    "a file of SPSS": ("a.csv", b"$FL2@(#) SPSS DATA FILE", {}, " is not CSV, as its name says: it is SPSS's .sav, which pandas.read_spss reads."),
    "lists in Parquet": ("a.parquet", parquet({"x": [[1, 2]] * 3, "y": [1, 2, 4]}), {}, ": the column 'x' has the type list<"),
    "a source below": ("a.csv", TABLE + "\nSource: office\n", {}, f": row 4 has 1 field where the header has 3: 'Source: office': {DELETED}"),
    "a long row": ("a.csv", TABLE + "4,Ulm, north,6\n", {}, f": row 4 has 4 fields where the header has 3: '4,Ulm, north,6': {DELETED}"),
    "a long row below a title": ("a.csv", "Report\n" + TABLE + "4,Ulm, north,6\n", {}, ": row 4 has 4 fields"),
    "decimal commas between commas": ("a.csv", "x,y\n1,5,3\n2,5,4\n1,7,4\n", {}, ": row 1 has 3 fields where the header has 2: '1,5,3'"),
    "no names of columns": ("a.csv", TABLE.partition("\n")[2], {}, "--target: {path} has no column 'y', only '1.5', 'Ulm', '3' (does the first line have the names of the columns?)."),
    "spaces between the fields": ("a.txt", TABLE.replace(",", "  "), {}, "--target: {path} has no column 'y', only 'x  city  y' (known separators are comma, semicolon, tab, pipe)."),
    "zeros in a text": ("a.csv", TABLE + "4,U\0lm,6\n", {}, " is text of an unknown encoding, or damaged: save it as UTF-8, UTF-16 or Latin-1."),
    "letters of Japan": ("a.csv", TABLE.replace("Ulm", "大阪").encode("shift_jis"), {}, " is text of an unknown encoding"),
    "JSON of columns": ("a.json", json.dumps({"x": [1, 2], "y": [3, 4]}), {}, " cannot be read as JSON: 'x' in line 1 is a list, not a number or a text: a table has an object for each row, as pandas writes it with orient='records'."),
    "a late line that is not UTF-8": ("a.jsonl", jsonl(*[{"x": 1, "y": 2}] * 20_000).encode() + b'{"t": "\xe4", "y": 3}\n', {}, " cannot be read as JSON: line 20001 is not UTF-8."),
    "no row": ("a.csv", "x,y\n", {}, " has no rows."),
    "one row": ("a.csv", "x,y\n1,2\n", {}, " has one row to fit to, which is too few."),
    "no value of the target": ("a.csv", "x,y\n1,\n2,\n3,NA\n", {"missing": "drop"}, ": the target 'y' has no value."),
    "nothing that varies": ("a.csv", "x,t,y\n1,a,1\n1,a,2\n1,a,3\n", {}, ": no column varies in the training rows besides the target 'y': 'x', 't'."),
    "infinity": ("a.csv", "x,y\n1,1\ninf,2\n3,3\n", {}, ": the column 'x' must be finite, got inf in row 2: --na inf takes it as missing."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_exports_are_refused_with_the_cause(tmp_path, case):
    check_message(tmp_path, *REFUSED[case])


def test_a_total_within_the_table_is_a_text(tmp_path):
    """Not in the last row, or in several rows: such a text describes rows."""
    text = "sex,y\nTotal,1\nf,2\nm,3\nTotal,4\nf,5\nm,6\nTotal,7\n"
    table = read(write(tmp_path, "a.csv", text))
    assert columns_of(table)["sex"] == ["Total", "f", "m"] * 2 + ["Total"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_titles_of_every_form_above_random_tables(tmp_path, separator, end):
    """The table comes from pandas: whatever stands above it, the same columns are read."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a b": random.normal(size=30).round(3),
            "ö": random.choice(["u", "v w", 'x"y'], 30),
            "y": random.integers(0, 99, 30),
        }
    )
    table = frame.to_csv(index=False, sep=separator, decimal=",", lineterminator=end)
    titles = [
        "",
        "Title",
        "# a",
        "Title\n\n",
        "a: 1\nb: 2, 3\n",
        '"a, b"\nc',
        f"k{separator}v\n\n",
        "= 1 =\n" * 9,
    ]
    for title in titles:
        content = (title.replace("\n", end) + end * bool(title) + table).encode("cp1252")
        table_read = read(write(tmp_path, "a.csv", content))
        found = columns_of(table_read)
        assert list(found) == ["a b", "ö", "y"]
        np.testing.assert_array_equal(found["a b"], frame["a b"])
        assert found["ö"] == frame["ö"].tolist()
        assert ("above the header" in " ".join(table_read.sentences)) == bool(title)
