"""Options of `cfgd fit` that say how to read a file."""

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
        help="A mark of missing values besides NA, N/A, NaN, null, None, ?, -, . and nothing,"
        " such as -999; may be given several times.",
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="The decimal sign: . or ,", show_default="as the file tells"),
]
BadValues = Annotated[
    str,
    typer.Option(help="What a few texts among numbers are: refuse (the file), or missing."),
]
Dates = Annotated[
    str,
    typer.Option(
        help="What dates become: days (since the first one), or parts (year, month, weekday)."
    ),
]
DateOrder = Annotated[
    str | None,
    typer.Option(
        help="Which of day and month 3/4/2024 has first: dmy or mdy.",
        show_default="as the file tells",
    ),
]
Id = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that names the rows: it is left out, and written to the predictions.",
        show_default="unique texts, row numbers, a column called id",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Use a column that looks like an id.", show_default=False),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Take a column as categories, also if its values are numbers.",
        show_default=False,
    ),
]
Number = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Take a column as numbers, also if they look like codes (01234) or dates (20240131).",
        show_default=False,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The sheet of an Excel file.", show_default="the first"),
]
Reference = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LEVEL",
        help="The reference level of a column of texts.",
        show_default="the most frequent",
    ),
]
Rare = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Pool texts that fewer training rows have as the level 'other'; 0 pools none.",
        show_default="10, or 1 % of the rows",
    ),
]
IdOfPrediction = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="A column of DATA to write beside the predictions.",
        show_default="the ids of the training data",
    ),
]
