"""Poisson models whose likelihood has no maximum: all counts of a level, or of one side, are 0."""

import numpy as np
import pytest
from fit_tables import write

from cfgd.apps.fit.options import FitOptions
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.report_text import outcome
from cfgd.apps.fit.run import fit


def table(rows=160):
    random = np.random.default_rng(8)
    x, city = random.normal(size=rows), random.choice(["Bonn", "Ulm", "Trier"], rows)
    return {"x": x, "city": city, "y": random.poisson(np.exp(0.4 * x + 1)).astype(float)}


def fitted(folder, columns, **options):
    path = write(folder / "t.parquet", columns)
    return fit(FitOptions(path, "y", loss="poisson", test=0.0, **options), ProgressReporter())


@pytest.mark.every_case
@pytest.mark.parametrize("memory", [None, 1000.0])
@pytest.mark.parametrize("reference", ["Ulm", "Bonn"])
def test_a_level_without_counts_is_named(tmp_path, reference, memory):
    """Also where it is the reference level."""
    columns = table()
    columns["y"][columns["city"] == "Ulm"] = 0.0
    options = {"reference": (f"city={reference}",), "memory": memory}
    result = fitted(tmp_path, columns, **options)
    assert not result.success
    assert result.model.errors is None
    assert "All training rows with 'city = Ulm' have the target 0." in outcome(result)
    assert "'city = Bonn'" not in outcome(result)
    penalised = fitted(tmp_path, columns, **options, l2=1.0)
    assert penalised.success


@pytest.mark.parametrize("memory", [None, 1000.0])
@pytest.mark.parametrize("reference", ["Ulm", "Bonn"])
def test_a_level_without_a_class_is_named(tmp_path, reference, memory):
    columns = table()
    is_ulm = columns["city"] == "Ulm"
    columns["y"] = np.where(is_ulm | (columns["y"] > 2), "many", "few")
    path = write(tmp_path / "t.parquet", columns)
    options = {"reference": (f"city={reference}",), "memory": memory, "test": 0.0}
    text = outcome(fit(FitOptions(path, "y", **options), ProgressReporter()))
    rows = int(is_ulm.sum())
    assert f"None of the {rows} training rows with 'city = Ulm' has the target 'few'." in text
    assert text.count("None of the") == 1
    assert "quasi-complete" in text


def test_a_number_beyond_which_there_are_no_counts_is_named(tmp_path):
    columns = table() | {"late": np.zeros(160)}
    columns["late"][100:] = np.linspace(1, 2, 60)
    columns["y"][100:] = 0.0
    text = outcome(fitted(tmp_path, columns))
    assert (
        "All training rows with a larger 'late' than those with counts have the target 0." in text
    )


def test_one_count_in_the_level_is_enough(tmp_path):
    columns = table()
    places = np.flatnonzero(columns["city"] == "Ulm")
    columns["y"][places] = 0.0
    columns["y"][places[3]] = 1.0
    result = fitted(tmp_path, columns)
    assert result.success
    assert np.all(np.isfinite(result.model.errors))
