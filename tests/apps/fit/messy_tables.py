"""Tables with rare texts, files with given content, and checks of how they are read."""

import io
import json

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cfgd.apps.fit.options import FitOptions
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.reading import read_for_fit
from cfgd.apps.fit.reading_options import ReadingOptions
from cfgd.apps.fit.run import fit
from cfgd.apps.fit.table_formats import open_table

MEMORY = 1e8  # bytes, more than any of the files needs


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def city_table(rows=400, seed=0):
    """Return a table whose cities are frequent or rare, with what each adds to y."""
    random = np.random.default_rng(seed)
    city = random.choice(["Bonn", "Köln", "Ulm"], rows, p=[0.5, 0.3, 0.2]).astype(object)
    city[:3] = ["Aa", "Bb", "Bb"]
    x = random.normal(size=rows)
    return pd.DataFrame(
        {
            "x": x,
            "city": city,
            "y": 1 + 2 * x + 3.0 * (city == "Köln") + 0.1 * random.normal(size=rows),
        }
    )


def fitted(path, **options):
    return fit(FitOptions(path, "y", **{"test": 0.0, **options}), ProgressReporter())


def read(path, target="y", **options):
    return read_for_fit(
        open_table(path, MEMORY, options.get("decimal"), options.get("sheet")),
        ReadingOptions(**options),
        target,
        (),
    )


def columns_of(table):
    batches = list(table.blocks(list(table.types), 3))  # of a few rows
    return {
        name: [value for batch in batches for value in batch.column(name).to_pylist()]
        for name in table.types
    }


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


def excel(rows, name="Sheet", **more):
    book = openpyxl.Workbook()
    book.active.title = name
    for title, content in ({name: rows} | more).items():
        sheet = book[title] if title in book.sheetnames else book.create_sheet(title)
        for row in content:
            sheet.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def parquet(columns):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def check_columns(folder, name, content, options, wanted, said):
    """Check the columns of a file, and that a sentence is said, or none."""
    table = read(write(folder, name, content), **options)
    found = columns_of(table)
    assert list(found) == list(wanted)
    for column, values in wanted.items():
        if table.kind(column) == "text":
            assert found[column] == values
        else:
            np.testing.assert_allclose(
                np.array(found[column], float), np.array(values, float), rtol=1e-13, atol=1e-10
            )
    sentences = " ".join(table.sentences)
    assert said in sentences if said else not sentences


def check_message(folder, name, content, options, message):
    """Check that a fit refuses a file with a message; it begins with the name, or has {path}."""
    path = write(folder, name, content)
    wanted = message.format(path=path) if message.startswith("--") else f"{path}{message}"
    with pytest.raises(ValueError, match=r"\.$") as error:
        fit(FitOptions(path, "y", test=0.0, memory=MEMORY, **options), ProgressReporter())
    assert str(error.value).startswith(wanted)
