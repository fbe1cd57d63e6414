# ruff: noqa: E501 - each file is one line
"""Files as people have them are read right, or refused with the cause and the remedy.

What a file holds is written beside it, or comes from pandas with the right arguments.
"""

import datetime
import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from messy_tables import (
    check_columns,
    check_message,
    columns_of,
    excel,
    jsonl,
    read,
    write,
    zstd,
)
from pyarrow import feather

from cfgd.apps.fit.table_formats import open_table

pytestmark = pytest.mark.every_case

NAN = float("nan")


GERMAN = "größe;stadt;y\n1,5;Köln;3\n2,25;Bonn;4\n-3;Köln;1,5\n"
GERMAN_COLUMNS = {"größe": [1.5, 2.25, -3], "stadt": ["Köln", "Bonn", "Köln"], "y": [3, 4, 1.5]}
PLAIN = "x,y\n1.5,3\n2,4\n"
PLAIN_COLUMNS = {"x": [1.5, 2], "y": [3, 4]}
DATE = datetime.datetime

# name of the file, content, options, columns, what is said
FILES = {
    "semicolons and decimal commas": ("a.csv", GERMAN, {}, GERMAN_COLUMNS, "a.csv is read as semicolon-separated UTF-8 with decimal commas."),
    "Latin-1": ("a.csv", GERMAN.encode("latin-1"), {}, GERMAN_COLUMNS, "a.csv is read as semicolon-separated Latin-1 with decimal commas."),
    "Windows-1252": ("a.csv", "stadt,y\n“Köln” – €,1\nBonn,2\nBonn,3\n".encode("cp1252"), {}, {"stadt": ["“Köln” – €", "Bonn", "Bonn"], "y": [1, 2, 3]}, "a.csv is read as comma-separated Latin-1."),
    "a byte order mark": ("a.csv", GERMAN.encode("utf-8-sig"), {}, GERMAN_COLUMNS, "UTF-8 with a byte order mark"),
    "UTF-16": ("a.csv", GERMAN.encode("utf-16"), {}, GERMAN_COLUMNS, "semicolon-separated UTF-16"),
    "UTF-16 without a mark": ("a.csv", PLAIN.encode("utf-16-be"), {}, PLAIN_COLUMNS, "comma-separated UTF-16"),
    "tabs": ("a.tsv", PLAIN.replace(",", "\t"), {}, PLAIN_COLUMNS, "a.tsv is read as tab-separated UTF-8."),
    "pipes": ("a.txt", PLAIN.replace(",", "|"), {}, PLAIN_COLUMNS, "pipe-separated"),
    "semicolons and decimal points": ("a.csv", "x;y\n1.5;3\n2;4\n", {}, PLAIN_COLUMNS, "a.csv is read as semicolon-separated UTF-8."),
    "plain CSV": ("a.csv", PLAIN, {}, PLAIN_COLUMNS, None),
    "spaces and blank lines": ("a.csv", "\n x , y \n 1.5 , 3 \n\n 2, 4\n", {}, PLAIN_COLUMNS, None),
    "Excel's line of the separator": ("a.csv", "sep=;\nx;y\n1,5;3\n2;4\n", {}, PLAIN_COLUMNS, "decimal commas"),
    "Windows' ends of lines": ("a.csv", PLAIN.replace("\n", "\r\n"), {}, PLAIN_COLUMNS, None),
    "quoted newlines and separators": ("a.csv", 'x,t,y\n1.5,"a, ""b""\nc",3\n2,d,4\n3,d,4\n', {}, {"x": [1.5, 2, 3], "t": ['a, "b"\nc', "d", "d"], "y": [3, 4, 4]}, None),
    "gzip": ("a.csv.gz", gzip.compress(GERMAN.encode("latin-1")), {}, GERMAN_COLUMNS, "Latin-1"),
    "Zstandard": ("a.tsv.zst", zstd(PLAIN.replace(",", "\t").encode()), {}, PLAIN_COLUMNS, "tab-separated"),
    "JSON lines": ("a.jsonl", jsonl({"x": 1.5, "t": "u", "y": 3}, {"y": 4, "t": None}, {"x": 2, "t": "u", "y": 5}), {}, {"x": [1.5, NAN, 2], "t": ["u", None, "u"], "y": [3, 4, 5]}, None),
    "compressed JSON lines": ("a.ndjson.gz", gzip.compress(jsonl({"x": True, "y": 3}, {"x": False, "y": 4}).encode()), {}, {"x": [1, 0], "y": [3, 4]}, None),
    "a list of JSON": ("a.json", json.dumps([{"x": 1.5, "y": "3"}, {"x": 2, "y": "4"}]), {}, PLAIN_COLUMNS, None),
    "Excel": ("a.xlsx", excel([["x", "t", "when", "y"], [1.5, "u", DATE(2024, 3, 1), 3], [2, "u", DATE(2024, 3, 2, 12), 4], [None, "v", None, 5]]), {}, {"x": [1.5, 2, NAN], "t": ["u", "u", "v"], "when": [0, 1.5, NAN], "y": [3, 4, 5]}, "The column 'when' is a date, read as days since 2024-03-01."),
    "another sheet of Excel": ("a.xlsx", excel([["z"], [1]], data=[["x", "y"], [1.5, 3], [2, 4], [None, None]]), {"sheet": "data"}, PLAIN_COLUMNS, None),
    "thousands with points": ("a.csv", "x;y\n1.234,5;3\n12;4\n1.234.567;5\n", {}, {"x": [1234.5, 12, 1234567], "y": [3, 4, 5]}, "decimal commas"),
    "thousands with commas": ("a.csv", 'x,y\n"1,234.5",3\n12,4\n"1,234,567",5\n', {}, {"x": [1234.5, 12, 1234567], "y": [3, 4, 5]}, None),
    "thousands with spaces": ("a.csv", "x;y\n1 234,5;3\n12;4\n1\u00a0234\u202f567;5\n", {}, {"x": [1234.5, 12, 1234567], "y": [3, 4, 5]}, "decimal commas"),
    "thousands of Switzerland": ("a.csv", "x,y\n1'234.5,3\n-12,4\n", {}, {"x": [1234.5, -12], "y": [3, 4]}, None),
    "thousands that other columns tell": ("a.csv", 'x,y\n"1,234",3.5\n"2,345",4\n', {}, {"x": [1234, 2345], "y": [3.5, 4]}, "In 'x' the sign ',' separates thousands, since other numbers have decimal points."),
    "points that other columns tell": ("a.csv", "x;y\n1.234;3,5\n2.345;4\n", {}, {"x": [1234, 2345], "y": [3.5, 4]}, "In 'x' the sign '.' separates thousands"),
    "commas by an option": ("a.csv", 'x,y\n"1,234",3\n"2,345",4\n', {"decimal": ","}, {"x": [1.234, 2.345], "y": [3, 4]}, "with decimal commas"),
    "no answer in German": ("a.csv", "x;y\n1,5;3\nk.A.;4\nk. A.;5\n", {}, {"x": [1.5, np.nan, np.nan], "y": [3, 4, 5]}, "with decimal commas"),
    "points by an option": ("a.csv", "x;y\n1.234;3\n2.345;4\n", {"decimal": "."}, {"x": [1.234, 2.345], "y": [3, 4]}, "semicolon-separated"),
    "currencies": ("a.csv", 'price,cost,y\n"$1,234.50",5 EUR,3\n-$2,7.5 EUR,4\n($3),1 EUR,5\n', {}, {"price": [1234.5, -2, -3], "cost": [5, 7.5, 1], "y": [3, 4, 5]}, "The column 'price' is a number, without the sign $."),
    "per cent": ("a.csv", "rate;y\n12%;3\n3,5 %;4\n0;5\n", {}, {"rate": [0.12, 0.035, 0], "y": [3, 4, 5]}, "The column 'rate' is divided by 100: 12 % is read as 0.12."),
    "marks of missing values": ("a.csv", "x,t,y\n1,u,1\nNA,NA,2\n n/a ,?,3\n?,-,4\n-,null,5\nNULL,,6\n,None,7\n.,N/A,8\nnan,v,9\n#N/A,u,10\n", {}, {"x": [1] + [NAN] * 9, "t": ["u"] + [None] * 7 + ["v", "u"], "y": list(range(1, 11))}, None),
    "other marks": ("a.csv", "x,t,u,y\n-999,unknown,a,1\n-999.0,a,b,2\n5,b,a,3\n6,b,a,4\n", {"na": ("-999", "unknown")}, {"x": [NAN, NAN, 5, 6], "t": [None, "a", "b", "b"], "u": ["a", "b", "a", "a"], "y": [1, 2, 3, 4]}, None),
    "plus and minus as texts": ("a.csv", "x,t,y\n1,+,1\n2,-,2\n4,+,3\n", {}, {"x": [1, 2, 4], "t": ["+", "-", "+"], "y": [1, 2, 3]}, None),
    "bad values as missing": ("a.csv", "x,y\n1,1\nabc,2\n3,3\n>100,4\n5,5\n6,6\n", {"bad_values": "missing"}, {"x": [1, NAN, 3, NAN, 5, 6], "y": [1, 2, 3, 4, 5, 6]}, "The column 'x' is a number in 4 rows; 2 values are not: 'abc' (row 2), '>100' (row 4), taken as missing."),
    "numbers as categories": ("a.csv", "zip,y\n01234,1\n5,2\n01234,3\n", {"category": ("zip",)}, {"zip": ["01234", "5", "01234"], "y": [1, 2, 3]}, None),
    "ISO dates": ("a.csv", "when,y\n2024-02-28,1\n2024-03-01T06:00:00Z,2\n2024-02-29,3\n", {}, {"when": [0, 2.25, 1], "y": [1, 2, 3]}, "The column 'when' is a date, read as days since 2024-02-28."),
    "German dates": ("a.csv", "when;y\n01.03.2024;1\n28.2.2024 12:00;2\n;3\n", {}, {"when": [2, 0.5, NAN], "y": [1, 2, 3]}, "days since 2024-02-28"),
    "American dates": ("a.csv", "when,y\n03/01/2024,1\n02/28/2024 12:00 PM,2\n", {}, {"when": [2, 0.5], "y": [1, 2]}, "The column 'when' is a date (month before day), read as days since 2024-02-28."),
    "British dates": ("a.csv", "when,y\n01/03/2024,1\n28/02/2024,2\n", {}, {"when": [2, 0], "y": [1, 2]}, "(day before month)"),
    "dates by an option": ("a.csv", "when,y\n01/03/2024,1\n02/03/2024,2\n", {"date_order": "mdy"}, {"when": [0, 31], "y": [1, 2]}, "(month before day)"),
    "names of months": ("a.csv", "when,y\n1 Mar 2024,1\n\"February 28, 2024\",2\n", {}, {"when": [2, 0], "y": [1, 2]}, "2024-02-28"),
    "parts of dates": ("a.csv", "when,y\n2024-03-01,1\n2023-02-27,2\nNA,3\n", {"dates": "parts"}, {"when year": [2024, 2023, NAN], "when month": ["Mar", "Feb", None], "when weekday": ["Fri", "Mon", None], "y": [1, 2, 3]}, "The column 'when' is a date, read as year, month, weekday."),
    "times of day": ("a.csv", "at,y\n06:30,1\n18:45:36,2\n", {}, {"at": [6.5, 18.76], "y": [1, 2]}, "The column 'at' is a time of day, read as hours since midnight."),
    "booleans": ("a.csv", "a,b,c,y\nTrue,yes,N,1\nfalse,no,Y,2\nTRUE,yes,,3\n", {}, {"a": [1, 0, 1], "b": [1, 0, 1], "c": [0, 1, NAN], "y": [1, 2, 3]}, "The column 'b' is read as 1 for 'yes' and 0 for 'no'."),
    "an id": ("a.csv", "id,x,y\n7,1,1\n7,3,2\n9,5,3\n", {}, {"x": [1, 3, 5], "y": [1, 2, 3]}, "The column 'id' is left out as an id: it is named 'id' (--keep id uses it)."),
    "unique texts": ("a.csv", "x,name,y\n1,ann,1\n3,bob,2\n5,cy,3\n", {}, {"x": [1, 3, 5], "y": [1, 2, 3]}, "The column 'name' is left out as an id: it has a different text in every row"),
    "an index without a name": ("a.csv", ",x,y\n0,1,1\n1,3,2\n2,5,3\n", {}, {"x": [1, 3, 5], "y": [1, 2, 3]}, "The column 'Unnamed: 0' is left out as an id: it has a different number in every row"),
    "a table of R": ("a.txt", '"x"\t"y"\n"a1"\t1\t1\n"a2"\t3\t2\n"a3"\t5\t3\n', {}, {"x": [1, 3, 5], "y": [1, 2, 3]}, "'Unnamed: 0' is left out as an id"),
    "numbered rows": ("a.csv", "customer,x,y\n" + "".join(f"{1000 + i},{i % 7},{i % 3}\n" for i in range(30)), {}, {"x": [i % 7 for i in range(30)], "y": [i % 3 for i in range(30)]}, "The column 'customer' is left out as an id: it numbers the rows"),
    "numbered weeks": ("a.csv", "week,x,y\n" + "".join(f"{1 + i},{i % 7},{i % 3}\n" for i in range(30)), {}, {"week": list(range(1, 31)), "x": [i % 7 for i in range(30)], "y": [i % 3 for i in range(30)]}, None),
    "a kept id": ("a.csv", "id,x,y\n7,1,1\n8,3,2\n9,5,3\n", {"keep": ("id",)}, {"id": [7, 8, 9], "x": [1, 3, 5], "y": [1, 2, 3]}, None),
    "a given id": ("a.csv", "who,x,y\n0070,1,1\n0070,3,2\n0090,5,3\n", {"id": ("who",)}, {"x": [1, 3, 5], "y": [1, 2, 3]}, None),
    "an empty column": ("a.csv", "x,y,\n1,1,\n3,2,\n", {}, {"x": [1, 3], "y": [1, 2]}, "The column 'Unnamed: 2' is left out: it has no value."),
    "decimals that other columns tell": ("a.csv", "x;z;y\n1.234;CHF 1'234.50;3\n2.345;CHF 2.5;4\n", {}, {"x": [1.234, 2.345], "z": [1234.5, 2.5], "y": [3, 4]}, "In 'x' the sign '.' is the decimal sign, since other numbers have decimal points."),
    "a text beside yes and no": ("a.csv", "x,t,y\n1.5,yes,3\n2,no,4\n2,perhaps,5\n2,yes,5\n", {}, {"x": [1.5, 2, 2, 2], "t": ["yes", "no", "perhaps", "yes"], "y": [3, 4, 5, 5]}, "The column 't' is taken as text, since it has 'perhaps' beside words for yes and no."),
    "two byte order marks": ("a.csv", "\ufeff\ufeffx,y\n1.5,3\n2,4\n", {}, PLAIN_COLUMNS, "byte order mark"),
    "single quotes": ("a.csv", "'x';'t';'y'\n'1,5';'a; b';'3'\n'2';'it''s';'4'\n'2';'a; b';'5'\n", {}, {"x": [1.5, 2, 2], "t": ["a; b", "it's", "a; b"], "y": [3, 4, 5]}, "a.csv is read as semicolon-separated UTF-8 in single quotes with decimal commas."),
    "a comment as wide as the table": ("a.csv", "# Instrument: A\n# Operator, Date: me, 2024\n#\n\nx,z,y\n" + 20 * "1.5,1,3\n2,5,4\n", {}, {"x": 20 * [1.5, 2], "z": 20 * [1, 5], "y": 20 * [3, 4]}, "The 3 lines above the header are left out: '# Instrument: A' and so on."),
    "a header that is a comment": ("a.csv", "# made by NumPy\n# x,z,y\n1.5,1,3\n2,5,4\n", {}, {"x": [1.5, 2], "z": [1, 5], "y": [3, 4]}, "'# made by NumPy'"),
    "a number far from all others": ("a.csv", "x,z,y\n1.5,7,3\n-999,7,4\n2,99,4\n-999.0,8,4\n3.5,99,4\n", {}, {"x": [1.5, -999, 2, -999, 3.5], "z": [7, 7, 99, 8, 99], "y": [3, 4, 4, 4, 4]}, "Warning: the column 'x' has the value -999 in 2 rows, far from all others: if it marks missing values, add --na -999."),
    "sixes and nines": ("a.csv", "x,z,y\n990,7,3\n999,999,4\n999,9,4\n", {}, {"x": [990, 999, 999], "z": [7, 999, 9], "y": [3, 4, 4]}, None),
    "texts of which some are numbers": ("a.csv", "code,y\nA1,1\n12,2\nA1,3\nB7,4\n12,5\nB7,6\nA1,6\n", {}, {"code": ["A1", "12", "A1", "B7", "12", "B7", "A1"], "y": [1, 2, 3, 4, 5, 6, 6]}, "The column 'code' is taken as text, though 2 of 7 values are numbers."),
    "texts that differ in case": ("a.csv", "x,t,y\n1,Aa,1\n2,aa,2\n3,b,2\n4,Aa,3\n", {}, {"x": [1, 2, 3, 4], "t": ["Aa", "aa", "b", "Aa"], "y": [1, 2, 2, 3]}, "Warning: the column 't' has 'Aa' and 'aa', which differ only in upper and lower case and are two levels."),
    "ordinals are no units": ("a.csv", "x,t,y\n1,1st,1\n2,2nd,2\n3,1st,2\n4,2nd,3\n", {}, {"x": [1, 2, 3, 4], "t": ["1st", "2nd", "1st", "2nd"], "y": [1, 2, 2, 3]}, None),
    "yes and Yes of a column": ("a.csv", "x,t,y\n1,yes,1\n2,Yes,2\n3,NO,2\n4,no,3\n", {}, {"x": [1, 2, 3, 4], "t": [1, 1, 0, 0], "y": [1, 2, 2, 3]}, "The column 't' is read as 1 for 'yes' and 0 for 'no'."),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_messy_files_are_read_right(tmp_path, case):
    check_columns(tmp_path, *FILES[case])


OPTION = "use --decimal . or --decimal , to say it."
REFUSED = {
    # name of the file, content, options, the message after the name of the file
    "a few texts among numbers": ("a.csv", "x,y\n1,1\nabc,2\n3,3\n>100,4\nabc,5\n6,6\n7,7\n", {}, ": the column 'x' is a number in 4 rows, but 3 values are not: 'abc' (rows 2, 5), '>100' (row 4): --bad-values missing takes them as missing values, --na TEXT one of them, and --category x takes the column as categories."),
    "a text in the target": ("a.csv", "x,y\n1,1\n5,?!\n3,3\n", {}, ": the column 'y' is a number in 2 rows, but 1 value is not: '?!' (row 2): --bad-values missing"),
    "a late text": ("a.csv", "x,y\n" + "".join(f"{i},{i}\n" for i in range(200_000)) + "oops,1\n", {}, ": the column 'x' is a number in 200,000 rows, but 1 value is not: 'oops' (row 200001)"),
    "a text among dates": ("a.csv", "x,y\n2024-01-01,1\nsoon,2\n2024-02-30,3\n2024-01-05,3\n2024-01-06,3\n", {}, ": the column 'x' is a date in 3 rows, but 2 values are not: 'soon' (row 2), '2024-02-30' (row 3)"),
    "thousands or decimals": ("a.csv", 'x,y\n"1,234",3\n"2,345",4\n', {}, f": the column 'x' is ambiguous, since no other number of the file tells whether '1,234' is in thousands: {OPTION}"),
    "points in a file of semicolons": ("a.csv", "x;y\n1.234;3\n2.345;4\n", {}, f": the column 'x' is ambiguous, since no other number of the file tells whether '1.234' is in thousands: {OPTION}"),
    "two decimal signs": ("a.csv", "x;y\n1,5;3.25\n2;4\n", {}, " has decimal points ('3.25' in the column 'y') and decimal commas (in the column 'x'): --decimal . or --decimal , says which it is, --drop leaves a column out."),
    "days or months": ("a.csv", "x,y\n01/02/2024,1\n03/04/2024,2\n", {}, ": the column 'x' is ambiguous: nothing tells whether '01/02/2024' has the month or the day first: use --date-order mdy or --date-order dmy to say it."),
    "two currencies": ("a.csv", "x,y\n$5,1\n€7,2\n", {}, ": the column 'x' has more than one currency: $, €: change the file, or leave the column out with --drop x."),
    "per cent of some": ("a.csv", "x,y\n5%,1\n7,2\n3%,3\n", {}, ": the column 'x' has percent signs, but not in all rows: '7' (row 2): change the file"),
    "a sheet that is not there": ("a.xlsx", excel([["x", "y"], [1, 2]]), {"sheet": "Data"}, "--sheet: {path} has no sheet 'Data', only 'Sheet'."),
    "a sheet of CSV": ("a.csv", PLAIN, {"sheet": "Data"}, "--sheet: {path} is no Excel file, so it has no sheets."),
    "decimal commas, said to be points": ("a.csv", "x;y\n142,60;3\n2,5;4\n", {"decimal": "."}, ": the column 'x' must be a number with --decimal ., got '142,60' in row 1."),
    "an unknown decimal sign": ("a.csv", PLAIN, {"decimal": ";"}, "--decimal must be . or ,, got ';'."),
    "a damaged archive": ("a.csv.zst", zstd(PLAIN.encode())[:-3], {}, " is damaged: it cannot be decompressed."),
    "plain text named zst": ("a.csv.zst", PLAIN, {}, " is not CSV, as its name says: it begins with b'x,y\\n1.5,3\\n2,'."),
    "nested JSON": ("a.jsonl", '{"x": [1], "y": 2}\n', {}, " cannot be read as JSON: 'x' in line 1 is a list, not a number or a text: a table has an object for each row"),
    "no JSON": ("a.jsonl", '{"x": 1}\n{"x": 1,}\n', {}, " cannot be read as JSON: line 2 is not JSON ("),
    "a list of numbers": ("a.jsonl", "[1, 2]\n3\n", {}, " cannot be read as JSON: line 2 is not JSON (Extra data)."),
    "a title above numbers": ("a.csv", "Report of 2024\n\n0,1\n1,2\n3,4\n", {}, ": the first line must have the names of the columns, got 'Report of 2024' above rows of 2 fields: delete the lines above the header."),
    "an id that is not there": ("a.csv", PLAIN, {"id": ("z",)}, "--id: {path} has no column 'z', only 'x', 'y'."),
    "an old Excel file": ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", {}, " is not Excel, as its name says: it is Excel's .xls of old, which Excel can save as .xlsx."),
    "two units": ("a.csv", "x,y\n1.5 kg,1\n700 g,2\n2 kg,3\n", {}, ": the column 'x' has numbers with the units 'kg' in 2 rows, 'g' in 1 rows: change the file"),
    "thousands and millions": ("a.csv", "x,y\n€1.5M,1\n€700k,2\n0,3\n", {}, ": the column 'x' has numbers with the units 'M' in 1 rows, 'k' in 1 rows, without in 1: change the file"),
    "two files put together": ("a.csv", 2 * "x,y\n1,1\n3,2\n", {}, ": the header is repeated in row 3, as in files that were put together: delete it there."),
    "a target in upper and lower case": ("a.csv", "x,y\n1,yes\n2,Yes\n3,no\n", {}, ": the target 'y' writes its two values in 3 ways ('Yes', 'no', 'yes'): write each in one way."),
    "a web page": ("a.csv", "<!DOCTYPE html>\n<html><body>Log in, please</body></html>\n", {}, " is a web page or XML, no table: save it as CSV."),
    "a damaged Excel file": ("a.xlsx", excel([["x"], [1]])[:-40], {}, " cannot be read as Excel: File is not a zip file."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_messy_files_are_refused_with_the_cause(tmp_path, case):
    check_message(tmp_path, *REFUSED[case])


def test_an_excel_file_that_expands_to_more_than_the_memory_is_refused(tmp_path):
    path = write(tmp_path, "a.xlsx", excel([["x", "y"]] + [[1, 2]] * 3000))
    with pytest.raises(ValueError, match=r"expands to .* save it as CSV or Parquet\.$"):
        open_table(path, 1e5)


def test_pandas_reads_the_same(tmp_path):
    """Of random tables in every combination of separator, encoding and decimal sign."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "größe": 1e4 * random.normal(size=40).round(3),
            "art": random.choice(["ä", "ö", "NA"], 40),
            "y": random.integers(0, 9, 40),
        }
    )
    frame.loc[::7, "größe"] = np.nan
    for separator in ",;\t|":
        for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
            for decimal in ".,":
                path, options = (
                    tmp_path / "a.csv",
                    {"sep": separator, "decimal": decimal, "encoding": encoding},
                )
                frame.to_csv(path, index=False, **options)
                wanted, found = pd.read_csv(path, **options), columns_of(read(path))
                np.testing.assert_array_equal(np.array(found["größe"], float), wanted["größe"])
                np.testing.assert_array_equal(found["y"], wanted["y"])
                assert (
                    found["art"]
                    == wanted["art"].astype(object).where(wanted["art"].notna(), None).tolist()
                )


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_arrow_types_of_dates_and_booleans(tmp_path, ending):
    days = [datetime.date(2024, 2, 28), datetime.date(2024, 3, 1), None]
    times = [DATE(2024, 2, 28, 18), DATE(2024, 2, 29, 6), None]
    table = pa.table({
        "date": pa.array(days, pa.date32()),
        "seconds": pa.array(times, pa.timestamp("s")),
        "zone": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
        "flag": pa.array([True, False, None]),
        "clock": pa.array([datetime.time(6, 30), datetime.time(18), None], pa.time64("us")),
        "lasts": pa.array([datetime.timedelta(hours=30), datetime.timedelta(minutes=6), None]),
        "tx": pa.array([2**60, 2**60 + 1, 2**60 + 2]),
        "__index_level_0__": pa.array([4, 2, 7]),
        "number": pa.array(["1,5", "2", "x"]),
        "y": [1, 2, 3],
    })  # fmt: skip
    path = tmp_path / f"a.{ending}"
    pq.write_table(table, path) if ending == "parquet" else feather.write_feather(table, path)
    found = columns_of(read(path, bad_values="missing"))
    for name, values in {
        "date": [0, 2, NAN],
        "seconds": [0.75, 1.25, NAN],
        "zone": [0.75, 1.25, NAN],
        "flag": [1, 0, NAN],
        "clock": [6.5, 18, NAN],
        "lasts": [30, 0.1, NAN],
        "number": [1.5, 2, NAN],
    }.items():
        np.testing.assert_allclose(np.array(found.pop(name), float), values, rtol=1e-12)
    assert list(found) == ["y"]  # no ids


def test_late_bytes_and_decimals_decide_about_the_whole_file(tmp_path):
    """The first megabyte is ASCII and has no decimals."""
    lines = [f"{i % 9};a;{i}" for i in range(200_000)]
    path = write(tmp_path, "a.csv", ("x;t;y\n" + "\n".join([*lines, "1,5;é;1"])).encode("latin-1"))
    table = read(path)
    assert table.sentences == ["a.csv is read as semicolon-separated Latin-1 with decimal commas."]
    last = list(table.blocks(["x", "t"], 10_000))[-1]
    assert (last.column("x")[-1].as_py(), last.column("t")[-1].as_py()) == (1.5, "é")
