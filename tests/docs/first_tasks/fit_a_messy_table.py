"""Fit a messy table, from docs/guides/tables.md and shell.md: German, with a known model."""

import csv
import json
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from cfgd.apps.cli import app

folder = Path(tempfile.mkdtemp())
rows = ["Nr;Preis;Datum;Stadt;y"]
for i in range(120):
    price, city = 1000 + 13 * ((i * 37) % 120), ("Köln", "Bonn", "Köln", "Jena")[i % 4]
    day, month = 1 + i % 28, 1 + (i * 5) % 12
    effect = {"Köln": 0.0, "Bonn": 4.0, "Jena": -3.0}[city]
    y = 2.0 + 0.01 * price + effect
    shown = "n/a" if i == 7 else f"{price:,}".replace(",", ".") + ",00 €"
    rows.append(f"{i};{shown};{day}.{month}.2024;{city};{str(round(y, 4)).replace('.', ',')}")
(folder / "data.csv").write_text("\n".join(rows), encoding="cp1252")


def run(command):
    words = [
        str(folder / word) if "." in word or word == "fit_" else word for word in command.split()
    ]
    return CliRunner().invoke(app, words)


refused = run("fit data.csv --target y --out fit_")
assert refused.exit_code == 2  # a value is missing
done = run("fit data.csv --target y --missing drop --out fit_")
assert done.exit_code == 0, done.output
assert "semicolon-separated Latin-1 with decimal commas" in " ".join(done.output.split())
assert json.loads((folder / "fit_" / "model.json").read_text(encoding="utf-8"))
assert (folder / "fit_" / "report.html").exists()

new = ["Nr;Preis;Datum;Stadt", "900;1.500,00 €;3.4.2024;Bonn", "901;2.000,00 €;3.4.2024;Jena"]
(folder / "new.csv").write_text("\n".join(new), encoding="cp1252")
predicted = run("predict fit_/model.json new.csv -o out.csv")
assert predicted.exit_code == 0, predicted.output
with (folder / "out.csv").open(encoding="utf-8") as file:
    first, second = csv.reader(list(file)[1:])
assert abs(float(first[-1]) - (2.0 + 15.0 + 4.0)) < 1e-4
assert abs(float(second[-1]) - (2.0 + 20.0 - 3.0)) < 1e-4
