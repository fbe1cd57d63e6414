"""Fit a table with `cfgd fit`, and predict with `cfgd predict`."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from typer.testing import CliRunner

from cfgd.apps.cli import app

folder = Path(tempfile.mkdtemp())
data = load_diabetes(scaled=False)
rows = np.column_stack([data.data, data.target])
header = ",".join([*data.feature_names, "progression"])
np.savetxt(folder / "diabetes.csv", rows, "%.10g", ",", header=header, comments="")


def cfgd(command: str) -> None:
    """Run a command as in a shell."""
    print(f"$ cfgd {command}")
    print(CliRunner().invoke(app, command.split()).output)


cfgd(f"fit {folder}/diabetes.csv --target progression --out {folder}")
cfgd(f"predict {folder}/model.json {folder}/diabetes.csv -o {folder}/predictions.csv")
print((folder / "predictions.csv").read_text().splitlines()[:3])
