"""Growth: exponents, table and figure of numbers that are known, and one measurement."""

import json
import math

import numpy as np
import pytest

from cfgd.apps.bench.__main__ import SUITES
from cfgd.apps.bench.growth import jobs, one, runner
from cfgd.apps.bench.growth.figure import figure
from cfgd.apps.bench.growth.series import SYMBOLS, Series, exponent

SIZES = [100.0, 320.0, 1000.0, 3200.0, 10_000.0]


def made(name="made", against="rows", power=1.0, constant=1e-4, kept=5e7, numbers=True):
    seconds = [constant + 1e-6 * size**power for size in SIZES]
    more = [8.0 * 1000 * size + kept for size in SIZES]
    count = [1000 * size for size in SIZES] if numbers else None
    return Series(name, against, "1,000 columns", SIZES, seconds, seconds, more, count)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_an_exponent_is_found_from_the_upper_decade(power):
    values = [7.0 * size**power for size in SIZES]
    values[:2] = [1e6, 1e-6]  # are of the lower one
    assert exponent(SIZES, values) == pytest.approx(power, abs=1e-12)
    values[2] *= 2  # at its end, which counts
    assert exponent(SIZES, values) < power - 0.2


def test_it_is_that_of_least_squares_in_logarithms():
    values = np.random.default_rng(0).uniform(1, 2, size=5)
    slope = np.polyfit(np.log(SIZES[2:]), np.log(values[2:]), 1)[0]
    assert exponent(SIZES, list(values)) == pytest.approx(slope, rel=1e-12)


def test_without_two_values_there_is_none():
    assert math.isnan(exponent([1.0], [2.0]))
    assert math.isnan(exponent([1.0, 2.0], [2.0, None]))
    assert math.isnan(exponent([1.0, 2.0], [2.0, -1.0]))
    assert exponent([1.0, 2.0], [3.0, 1.5]) == pytest.approx(-1.0)  # two processes


def test_what_a_number_of_the_data_takes():
    series = made(constant=0.0)
    assert series.per_number == pytest.approx(1e-9)
    assert series.bytes_per_number == pytest.approx(8.0)  # whatever does not grow
    assert math.isnan(made(numbers=False).per_number)
    assert math.isnan(made(numbers=False).bytes_per_number)


def test_the_table_has_time_and_memory_with_their_exponents():
    time, memory = (row.line() for row in made(constant=0.0, kept=0.0).rows())
    assert "made (1,000 columns): time" in time
    assert "m^1.00, 10 ms" in time
    assert "at 10,000 rows" in time
    assert "m^1.00, 80 MB" in memory


def test_two_decades_of_everything_are_measured():
    assert {job.against for job in jobs.JOBS.values()} == set(SYMBOLS) - {"processes"}
    for job in jobs.JOBS.values():
        assert job.sizes[-1] >= 100 * job.sizes[0]


def test_all_of_it_on_made_up_measurements(tmp_path, monkeypatch):
    def pretended(name, size, repeats):
        assert repeats == runner.REPEATS
        return {"least": 1e-6 * size, "median": 2e-6 * size, "bytes": 1e3 * size}

    monkeypatch.setattr(runner, "in_fresh_process", pretended)
    both = Series("gradient step", "processes", "2 cores", [1.0, 2.0], [2.0, 1.1], [2.0, 1.1],
                  [None, None])  # fmt: skip
    told = [row.line() for row in runner.rows(tmp_path, [both])]
    assert len(told) == 2 * len(jobs.JOBS) + 2
    assert any("p^-0.86, 1.1 s" in line for line in told)
    found = json.loads((tmp_path / "growth.json").read_text())
    assert [one["name"] for one in found["series"]] == [*jobs.JOBS, "gradient step"]
    assert found["series"][0]["time"] == pytest.approx(1.0)
    assert "least squares" in found["how"]
    assert "cores of" in found["machine"]
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_figure_is_small():
    kinds = ("rows", "rows", "rows", "rows", "columns", "columns", "columns", "nodes", "settings")
    series = [made(f"number {k}", kind, 1 + k / 10) for k, kind in enumerate(kinds)]
    png = figure(series)
    assert png.startswith(b"\x89PNG")
    assert 20_000 < len(png) < 150_000
    assert len(png) > len(figure(series[:4]))


@pytest.mark.slow
def test_one_measurement():
    found = one.measure("adaptive terminal, Quadratic", 40, 2)
    assert -1e-3 < found["least"] < 1e-2
    assert found["bytes"] is None or found["bytes"] >= 0


@pytest.mark.slow
def test_one_in_a_process_of_its_own():
    found = one.in_fresh_process("Tikhonov step, logistic", 10_000, 2)
    assert 1e-5 < found["least"] <= found["median"] < 10
    assert found["bytes"] > 30 * 10_000 * 8


def test_make_bench_has_it():
    assert SUITES["growth"] is runner.rows
