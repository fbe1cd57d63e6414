"""Command-line options of `cfgd fit` that say how to read a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA...",
        help="A table: .csv, .tsv or .jsonl, also compressed (.gz, .zst), .xlsx, .parquet,"
        " .feather or .npz (a vector is a column, a matrix X the columns X_0, X_1, ...). It may be"
        " several files with the same columns, a folder of them, or a pattern in quotes such as"
        " 'data/*.csv'.",
    ),
]
DataOfPrediction = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA...",
        help="A table with the columns of the training data: files, a folder, or a pattern.",
    ),
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="A text or number that marks a missing value, such as -999, in addition to NA, N/A,"
        " NaN, null, None, ?, -, . and empty fields; may be given several times.",
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="The decimal sign: . or ,", show_default="detected"),
]
BadValues = Annotated[
    str,
    typer.Option(
        help="What to do about a few texts in a column of numbers: refuse (stop with an error), or"
        " missing (take them as missing values)."
    ),
]
Dates = Annotated[
    str,
    typer.Option(
        help="What a column of dates becomes: days (the number since the first date), or parts"
        " (columns for year, month and weekday)."
    ),
]
DateOrder = Annotated[
    str | None,
    typer.Option(
        help="The order of day and month in dates such as 3/4/2024: dmy (day first) or mdy.",
        show_default="detected",
    ),
]
Id = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that identifies the rows: it is left out of the model, and written to the"
        " predictions.",
        show_default="detected: unique texts, row numbers, a column called id",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Use a column in the model although it looks like an id.",
        show_default=False,
    ),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Treat a column as categorical, even if its values are numbers.",
        show_default=False,
    ),
]
Number = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Treat a column as numbers, even if they look like codes (01234) or dates (20240131).",
        show_default=False,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The sheet of an Excel file.", show_default="the first one"),
]
Reference = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LEVEL",
        help="The reference level of a categorical column.",
        show_default="the most frequent level",
    ),
]
Rare = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Levels of a categorical column with fewer training rows than this are pooled as the"
        " level 'other'; 0 pools none.",
        show_default="10, or 1 % of the rows if that is less",
    ),
]
IdOfPrediction = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="A column of DATA to write beside the predictions.",
        show_default="the id columns of the training data",
    ),
]
