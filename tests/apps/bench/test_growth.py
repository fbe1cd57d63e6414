"""Growth: exponents, rows and figure of given numbers, and one measurement."""

import json
import math

import numpy as np
import pytest

from cfgd.apps.bench.__main__ import SUITES
from cfgd.apps.bench.growth import fresh_process, jobs, runner
from cfgd.apps.bench.growth.figure import figure
from cfgd.apps.bench.growth.series import SYMBOLS, Series, exponent

SIZES = [100.0, 320.0, 1000.0, 3200.0, 10_000.0]


def make_series(
    name="made", against="rows", power=1.0, constant=1e-4, constant_bytes=5e7, numbers=True
):
    seconds = [constant + 1e-6 * size**power for size in SIZES]
    memory = [8.0 * 1000 * size + constant_bytes for size in SIZES]
    count = [1000 * size for size in SIZES] if numbers else None
    return Series(name, against, "1,000 columns", SIZES, seconds, seconds, memory, count)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_exponent_is_that_of_the_upper_decade(power):
    values = [7.0 * size**power for size in SIZES]
    values[:2] = [1e6, 1e-6]  # these belong to the lower decade
    assert exponent(SIZES, values) == pytest.approx(power, abs=1e-12)
    values[2] *= 2  # the first of the upper decade
    assert exponent(SIZES, values) < power - 0.2


def test_exponent_is_a_least_squares_fit_in_logarithms():
    values = np.random.default_rng(0).uniform(1, 2, size=5)
    slope = np.polyfit(np.log(SIZES[2:]), np.log(values[2:]), 1)[0]
    assert exponent(SIZES, list(values)) == pytest.approx(slope, rel=1e-12)


def test_exponent_needs_two_positive_values():
    assert math.isnan(exponent([1.0], [2.0]))
    assert math.isnan(exponent([1.0, 2.0], [2.0, None]))
    assert math.isnan(exponent([1.0, 2.0], [2.0, -1.0]))
    assert exponent([1.0, 2.0], [3.0, 1.5]) == pytest.approx(-1.0)  # two processes


def test_time_and_bytes_per_entry_of_the_data():
    series = make_series(constant=0.0)
    assert series.per_number == pytest.approx(1e-9)
    assert series.bytes_per_number == pytest.approx(8.0)  # without the constant part
    assert math.isnan(make_series(numbers=False).per_number)
    assert math.isnan(make_series(numbers=False).bytes_per_number)


def test_rows_have_time_and_memory_with_their_exponents():
    time, memory = (row.line() for row in make_series(constant=0.0, constant_bytes=0.0).rows())
    assert "made (1,000 columns): time at 10,000 rows" in time
    assert "m^1.00, 10 ms" in time
    assert "m^1.00, 80 MB" in memory


def test_every_job_covers_two_decades():
    assert {job.against for job in jobs.JOBS.values()} == set(SYMBOLS) - {"processes"}
    for job in jobs.JOBS.values():
        assert job.sizes[-1] >= 100 * job.sizes[0]


@pytest.mark.slow
def test_rows_and_files_from_given_measurements(tmp_path, monkeypatch):
    def given(name, size, repeats):
        assert repeats == runner.REPEATS
        return {"least": 1e-6 * size, "median": 2e-6 * size, "bytes": 1e3 * size}

    monkeypatch.setattr(runner, "measure_in_fresh_process", given)
    both = Series("gradient step", "processes", "2 cores", [1.0, 2.0], [2.0, 1.1], [2.0, 1.1],
                  [None, None])  # fmt: skip
    lines = [row.line() for row in runner.rows(tmp_path, [both])]
    assert len(lines) == 2 * len(jobs.JOBS) + 2
    assert any("p^-0.86, 1.1 s" in line for line in lines)
    found = json.loads((tmp_path / "growth.json").read_text())
    assert [one["name"] for one in found["series"]] == [*jobs.JOBS, "gradient step"]
    assert found["series"][0]["time"] == pytest.approx(1.0)
    assert "least squares" in found["how"]
    assert "cores of" in found["machine"]
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_figure_is_a_small_png():
    kinds = ("rows", "rows", "rows", "rows", "columns", "columns", "columns", "nodes", "settings")
    series = [make_series(f"number {k}", kind, 1 + k / 10) for k, kind in enumerate(kinds)]
    png = figure(series)
    assert png.startswith(b"\x89PNG")
    assert 20_000 < len(png) < 150_000
    assert len(png) > len(figure(series[:4]))


@pytest.mark.slow
def test_measure_returns_seconds_and_bytes():
    found = fresh_process.measure("adaptive terminal, Quadratic", 40, 2)
    assert math.isfinite(found["least"])
    assert math.isfinite(found["median"])
    assert found["bytes"] is None or found["bytes"] >= 0


@pytest.mark.slow
def test_measure_in_a_fresh_process():
    name = "Levenberg-Marquardt step, logistic"
    found = fresh_process.measure_in_fresh_process(name, 10_000, 2)
    assert 0 < found["least"] <= found["median"]
    assert found["bytes"] > 30 * 10_000 * 8


def test_growth_is_a_suite_of_make_bench():
    assert SUITES["growth"] is runner.rows
