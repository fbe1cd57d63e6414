"""`curve_fit_many` against SciPy and `curve_fit`, fit by fit.

Most tests use one model, one shape of data and so one compiled program.
"""

import signal

import dask.array as da
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from curves import decay, decay_in_numpy, least_squares

import cfgd
from cfgd.fitting.many import inputs, run
from cfgd.fitting.many.regions import regions

SHAPE = (7, 11)
T = np.array([0.0, 0.2, 0.5, 0.6, 1.1, 1.5, 2.2, 2.9, 3.1, 4.3])
P0 = [1.0, 1.0, 0.0]
EMPTY, INFINITE, HOLEY, SHORT = (1, 2), (2, 2), (3, 4), (6, 10)


def cube():
    random = np.random.default_rng(3)
    parameters = [random.uniform(*ends, SHAPE) for ends in ((1, 5), (0.4, 2), (-0.5, 0.5))]
    curves = decay_in_numpy(T, *(each[..., None] for each in parameters))
    Y = curves + 0.02 * random.normal(size=curves.shape)
    Y[EMPTY], Y[INFINITE][3], Y[HOLEY][[0, 4]], Y[SHORT][2:] = np.nan, np.inf, np.nan, np.nan
    return Y, np.stack(parameters, -1)


Y, TRUTH = cube()


def fit(data=Y, p0=P0, **options):
    return cfgd.curve_fit_many(decay, T, data, p0, **options)


@pytest.fixture(scope="module")
def fits():
    return fit()


def same(one, other):
    np.testing.assert_array_equal(np.asarray(one.table), np.asarray(other.table))


def expected_of(y):
    counts = np.isfinite(y)
    return least_squares(lambda p: decay_in_numpy(T[counts], *p) - y[counts], [1.0, 1.0, 0.0])


@pytest.mark.parametrize("at", [(0, 0), (4, 7), (6, 9), HOLEY])
def test_parameters_and_errors(fits, at):
    parameters, covariance = expected_of(Y[at])
    np.testing.assert_allclose(fits.parameters[at], parameters, rtol=1e-8, atol=1e-9)
    errors = [fits.errors[name][at] for name in fits.names]
    np.testing.assert_allclose(errors, np.sqrt(np.diagonal(covariance)), rtol=1e-6)
    counts = np.isfinite(Y[at])
    residuals = (decay_in_numpy(T, *parameters) - Y[at])[counts]
    np.testing.assert_allclose(fits.chi_square[at], residuals @ residuals, rtol=1e-10)
    assert fits.n_points[at] == counts.sum()
    assert fits.status[at] == "converged"
    assert 2 < fits.iterations[at] < 30


def test_shapes(fits):
    assert fits.shape == fits.status.shape == fits.chi_square.shape == SHAPE
    assert fits.parameters.shape == (*SHAPE, 3)
    assert list(fits.values) == list(fits.errors) == fits.names == ["size", "rate", "rest"]
    np.testing.assert_array_equal(fits.values["rate"], fits.parameters[..., 1])


def test_bad_fits(fits):
    assert fits.failed == {"no_data": 1, "nonfinite": 1}
    assert fits.status[EMPTY] == "no_data"
    assert fits.status[INFINITE] == "nonfinite"
    assert np.isnan(fits.parameters[EMPTY]).all()
    assert np.isnan(fits.parameters[INFINITE]).all()
    assert fits.converged.sum() == 75
    # two points do not determine three parameters
    assert np.isinf([fits.errors[name][SHORT] for name in fits.names]).all()


def test_a_bad_fit_touches_no_other(fits):
    spoilt = Y.copy()
    spoilt[4, 4], spoilt[5, 5] = np.nan, 1e300
    found = fit(spoilt)
    others = np.ones(SHAPE, bool)
    others[4, 4] = others[5, 5] = False
    np.testing.assert_array_equal(found.table[others], fits.table[others])


def test_one_of_them_is_a_fit(fits):
    one, alone = fits[4, 7], cfgd.curve_fit(decay, T, Y[4, 7], P0)
    assert isinstance(one, cfgd.Fit)
    np.testing.assert_array_equal(one.parameters, fits.parameters[4, 7])
    np.testing.assert_allclose(one.parameters, alone.parameters, rtol=1e-6)
    np.testing.assert_allclose(one.covariance, alone.covariance, rtol=1e-5)
    assert one.solution.status is cfgd.Status.converged
    assert one.freedom == 7
    assert one.intervals(0.9, "normal")["rate"][0] < one.values["rate"]
    assert fits[HOLEY].n_points == 8
    assert fits[-1, -2].chi_square == pytest.approx(fits.chi_square[6, 9], rel=1e-12)


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (EMPTY, ValueError, r"^The fit at \(1, 2\) has no result\. There is nothing to fit"),
        (3, IndexError, r"2 integers, one for each axis of \(7, 11\)"),
        ((1, slice(2)), IndexError, "Its fields take slices"),
        ((7, 0), IndexError, "out of bounds"),
    ],
)
def test_what_is_no_fit(fits, index, error, words):
    with pytest.raises(error, match=words):
        fits[index]


def test_what_is_printed(fits):
    lines = str(fits).splitlines()
    assert lines[0] == "Fits: 75 of 77 converged"
    assert lines[1].startswith("  1 no_data: There is nothing to fit")
    assert lines[-2].split()[0] == "rate"
    assert len(fits) == 7


def test_maps(fits):
    ax = fits.plot("rate")
    (image,) = ax.get_images()
    shown = image.get_array()
    np.testing.assert_array_equal(shown.mask, ~fits.converged)
    np.testing.assert_array_equal(shown[~shown.mask], fits.values["rate"][fits.converged])
    with pytest.raises(ValueError, match=r"one of the parameters size, rate, rest, got 'speed'"):
        fits.plot("speed")


def test_new_numbers_do_not_compile_again(fits, caplog):
    assert fits.shape == SHAPE  # the same shapes have been fitted
    with jax.log_compiles():
        fit(Y[::-1] + 0.1, [2.0, 1.5, 0.3], tolerance=1e-9, max_iterations=77)
    assert not [message for message in caplog.messages if message.startswith("Compiling")]


class Stored:
    """An array on a disk: it has a shape and slices, and counts what was read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.read = array, array.shape, array.dtype, 0
        self.ndim = array.ndim

    def __getitem__(self, index):
        part = self.array[index]
        self.read += part.size
        return part


def test_arrays_that_are_read_by_slices(fits, tmp_path):
    stored = Stored(Y)
    same(fit(stored), fits)
    assert stored.read == Y.size
    np.save(tmp_path / "Y.npy", Y)
    same(fit(np.load(tmp_path / "Y.npy", mmap_mode="r")), fits)


def test_masks(fits):
    visible = np.where(np.isnan(Y), 7.0, Y)
    same(fit(visible, mask=np.isnan(Y)), fits)
    same(fit(np.ma.masked_array(visible, np.isnan(Y))), fits)
    found = fit(mask=np.arange(10) < 2)
    np.testing.assert_array_equal(found.n_points[4], 8)
    whole = np.zeros(SHAPE, bool)
    whole[5] = True
    found = fit(mask=whole)
    assert found.failed["no_data"] == 12
    np.testing.assert_array_equal(found.table[0], fits.table[0])


def test_starts(fits):
    """One for each fit, in three forms, and by a function."""
    close = {"rtol": 1e-8, "atol": 1e-9}
    good = fits.converged & (fits.n_points > 3)
    by_array = fit(p0=TRUTH)
    assert by_array.iterations[good].mean() < fits.iterations[good].mean()
    np.testing.assert_allclose(by_array.parameters[good], fits.parameters[good], **close)
    by_guess = fit(p0=lambda t, y: [jnp.nanmax(y), 1.0, jnp.nanmin(y)])
    np.testing.assert_allclose(by_guess.parameters[good], fits.parameters[good], **close)
    by_name = fit(p0={"size": TRUTH[..., 0], "rate": 1.0, "rest": 0.0})
    assert isinstance(by_name.parameters, dict)
    np.testing.assert_allclose(by_name.values["rate"][good], fits.values["rate"][good], **close)


def test_everything_of_its_own():
    """Bounds, a sigma for each point, x for each fit, a parameter fixed at its own start."""
    random = np.random.default_rng(8)
    X = T * random.uniform(0.9, 1.1, (*SHAPE, 1))
    sigma = random.uniform(0.01, 0.05, Y.shape)
    bounds = {"rest": (0.0, 0.3)}
    options = {"fixed": ["size"], "bounds": bounds, "absolute_sigma": True}
    found = cfgd.curve_fit_many(decay, X, Y, TRUTH, sigma, **options)
    assert found.failed == {"no_data": 1, "nonfinite": 1}
    np.testing.assert_array_equal(found.values["size"][0], TRUTH[0, :, 0])
    np.testing.assert_array_equal(found.errors["size"][0], 0.0)
    rest = found.values["rest"]
    sides = {float(side): tuple(np.argwhere(rest == side)[1]) for side in (0.0, 0.3)}
    inside = tuple(np.argwhere((rest > 0) & (rest < 0.3) & (found.n_points == 10))[0])
    for at in (*sides.values(), inside):
        alone = cfgd.curve_fit(decay, X[at], Y[at], TRUTH[at], sigma[at], missing="drop", **options)
        np.testing.assert_allclose(found.parameters[at], alone.parameters, rtol=1e-6)
        for name in ("rate", "rest"):
            np.testing.assert_allclose(found.errors[name][at], alone.errors[name], rtol=1e-5)
    assert np.isnan(found.errors["rest"][sides[0.0]])
    assert found[inside].errors["rest"] == pytest.approx(found.errors["rest"][inside], rel=1e-9)


def test_parameters_may_have_the_names_of_arguments():
    """x0 and sigma are a centre and a width; a fit of each has its own start and fixed number."""

    def peak(t, y, x0, sigma):
        return y * jnp.exp(-(((t - x0) / sigma) ** 2) / 2)

    centres = np.array([1.1, 2.3, 3.0])
    data = 2 * np.exp(-(((T - centres[:, None]) / 0.9) ** 2) / 2) + 0.01 * np.cos(9 * T)
    starts = np.stack([np.ones(3), centres, np.full(3, 0.9)], 1)
    found = cfgd.curve_fit_many(peak, T, data, starts, 0.1, fixed=["x0"], absolute_sigma=True)
    np.testing.assert_array_equal(found.values["x0"], centres)
    for i in range(3):
        alone = cfgd.curve_fit(peak, T, data[i], starts[i], 0.1, fixed=["x0"], absolute_sigma=True)
        np.testing.assert_allclose(found.parameters[i], alone.parameters, rtol=1e-6)
        np.testing.assert_allclose(found.errors["sigma"][i], alone.errors["sigma"], rtol=1e-5)
    begun = cfgd.curve_fit_many(peak, T, data, starts, max_iterations=0)
    np.testing.assert_array_equal(begun.parameters, starts)
    guessed = cfgd.curve_fit_many(peak, T, data, lambda t, y: starts[1], max_iterations=0)
    np.testing.assert_array_equal(guessed.parameters, np.tile(starts[1], (3, 1)))


@pytest.mark.slow
def test_many_parameters():
    """More than those for which products of columns are formed one by one."""
    basis = np.cos(np.arange(15) * np.linspace(0, 3, 40)[:, None])
    truth = np.random.default_rng(4).normal(size=(3, 15))
    data = truth @ basis.T + 0.01 * np.sin(np.arange(40.0) ** 2)
    found = cfgd.curve_fit_many(lambda A, *p: A @ jnp.stack(p), basis, data, [0.0] * 15)
    expected, _, _, _ = np.linalg.lstsq(basis, data.T)
    np.testing.assert_allclose(found.parameters, expected.T, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_tied_parameters_and_several_variables():
    def model(x, size, rate, rest):
        return size * jnp.exp(-rate * x["t"] * x["speed"]) + rest

    speed = np.random.default_rng(9).uniform(0.5, 2, (*SHAPE, 1))
    tied = {"rest": lambda p: p["size"] / 50}
    x = {"t": T, "speed": speed}
    found = cfgd.curve_fit_many(model, x, Y, P0, tied=tied)
    np.testing.assert_allclose(found.values["rest"], found.values["size"] / 50, rtol=1e-12)
    at = (4, 7)
    alone = cfgd.curve_fit(model, {"t": T, "speed": speed[at]}, Y[at], P0, tied=tied)
    for name in ("size", "rate", "rest"):
        np.testing.assert_allclose(found.values[name][at], alone.values[name], rtol=1e-6)
        np.testing.assert_allclose(found.errors[name][at], alone.errors[name], rtol=1e-5)


@pytest.mark.slow
def test_what_the_data_do_not_determine():
    """size and scale have only a product; the others have their errors all the same."""

    def model(t, size, scale, rate):
        return size * scale * jnp.exp(-rate * t)

    found = cfgd.curve_fit_many(model, T, Y[:2], [1.0, 1.5, 1.0])
    at = (0, 3)
    assert np.isinf([found.errors["size"][at], found.errors["scale"][at]]).all()
    alone = cfgd.curve_fit(lambda t, size, rate: size * jnp.exp(-rate * t), T, Y[at], [1.0, 1.0])
    variance = alone.chi_square / 7  # one parameter more
    expected = alone.errors["rate"] * np.sqrt(variance / (alone.chi_square / 8))
    np.testing.assert_allclose(found.errors["rate"][at], expected, rtol=1e-5)


@pytest.mark.slow
def test_float32():
    found = cfgd.curve_fit_many(decay, T.astype(np.float32), Y.astype(np.float32), P0)
    assert found.parameters.dtype == np.float32
    assert found.failed == {"no_data": 1, "nonfinite": 1}
    exact = fit()
    good = exact.converged & (exact.n_points > 3)
    difference = abs(found.parameters - exact.parameters)[good]
    errors = np.stack([exact.errors[name] for name in exact.names], -1)[good]
    assert np.max(difference / errors) < 0.02


# ---------------------------------------------------------------------- labelled and Dask arrays


def test_labelled_arrays(fits):
    data = xr.DataArray(Y, dims=("row", "column", "time"), coords={"time": T, "row": range(7)})
    found = cfgd.curve_fit_many(decay, "time", data, P0)
    assert found.values["rate"].dims == found.status.dims == ("row", "column")
    assert list(found.chi_square.coords) == ["row"]
    assert found.parameters.dims == ("row", "column", "parameter")
    same_rate = found.parameters.sel(parameter="rate", row=4)
    np.testing.assert_array_equal(same_rate, fits.parameters[4, :, 1])
    turned = data.transpose("time", "row", "column")
    same(cfgd.curve_fit_many(decay, data.time, turned, P0), fits)
    mask = xr.DataArray(np.zeros((11, 7), bool), dims=("column", "row"))
    mask[3, 5] = True
    assert cfgd.curve_fit_many(decay, "time", data, P0, mask=mask).status[5, 3] == "no_data"
    with pytest.raises(ValueError, match=r"must name a coordinate of Y: time, row, got 'wave'"):
        cfgd.curve_fit_many(decay, "wave", data, P0)


def test_dask_arrays(fits):
    data = da.from_array(np.stack([Y, Y[::-1]]), chunks=(1, 7, 11, 10))
    found = fit(data)
    assert repr(found) == "Fits: (2, 7, 11), not computed yet"
    assert found.values["rate"].chunks == ((1, 1), (7,), (11,))
    np.testing.assert_array_equal(found.table[0], fits.table)
    np.testing.assert_array_equal(found.table[1], fits.table[::-1])
    assert found.status.compute()[0, 1, 2] == "no_data"
    assert found.failed == {"no_data": 2, "nonfinite": 2}
    assert found[1, 6, 0].parameters == pytest.approx(fits.parameters[0, 0])
    assert fit(data, np.stack([TRUTH, TRUTH[::-1]])).converged.sum().compute() == 150
    with pytest.raises(ValueError, match=r"Y\.rechunk\(\{-1: -1\}\), got 2 chunks along its last"):
        fit(data.rechunk((1, 7, 11, 5)))
    with pytest.raises(ValueError, match=r"progress=\.\.\.\)` must be left out for a Dask array"):
        fit(data, progress=True)


# ---------------------------------------------------------------------- runs in several blocks


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 32 fits, of which 16 take steps at a time: the cube has three of them."""
    monkeypatch.setattr(inputs, "MOST_SLOTS", 16)
    monkeypatch.setattr(run, "PER_SLOT", 2)


@pytest.mark.usefixtures("small_blocks")
class TestBlocks:
    def test_blocks_and_threads_change_nothing(self, fits):
        one, two = fit(threads=1), fit(threads=2)
        same(one, two)
        for name in fits.names:
            np.testing.assert_allclose(one.values[name], fits.values[name], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(one.status, fits.status)

    def test_progress(self, capsys):
        fit(progress=True)
        lines = capsys.readouterr().err.split("\r")
        assert "77/77  2 failed" in lines[-1]
        assert "fits/s" in lines[-1]

    @pytest.fixture(autouse=True)
    def usual_handler(self):
        """Ctrl-C may be ignored, where a shell has started the tests in the background."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    def interrupted(self, **options):
        class Interrupting(Stored):
            def __getitem__(self, index):
                if self.read > 2 * T.size:  # what a checkpoint compares
                    signal.raise_signal(signal.SIGINT)
                return super().__getitem__(index)

        return fit(Interrupting(Y), threads=1, **options)

    def test_ctrl_c_returns_what_is_done(self, fits):
        found = self.interrupted()
        stopped = found.status == "interrupted"
        assert 0 < stopped.sum() < 77
        assert np.isnan(found.parameters[stopped]).all()
        np.testing.assert_allclose(
            found.parameters[~stopped], fits.parameters[~stopped], rtol=1e-8, atol=1e-9
        )
        assert found.failed["interrupted"] == stopped.sum()

    def test_a_checkpoint_goes_on(self, tmp_path):
        path = tmp_path / "fits.npz"
        self.interrupted(checkpoint=path)
        stored = Stored(Y)
        found = fit(stored, checkpoint=path)
        same(found, fit())
        assert stored.read < Y.size  # the first block is in the file
        again = Stored(Y)
        same(fit(again, checkpoint=path), found)
        assert again.read == 2 * T.size  # the first and the last fit, which are compared

    def test_the_checkpoint_of_other_fits_is_refused(self, tmp_path):
        path = tmp_path / "fits.npz"
        fit(checkpoint=path)
        for other in ({"p0": [1.0, 2.0, 0.0]}, {"data": 2 * Y}, {"max_iterations": 7}):
            with pytest.raises(ValueError, match=r"checkpoint=.* of another one"):
                fit(checkpoint=path, **other)
        path.write_bytes(path.read_bytes()[:-50])
        with pytest.raises(ValueError, match=r"The checkpoint .* is damaged"):
            fit(checkpoint=path)


@pytest.mark.parametrize(
    ("shape", "largest"), [((10,), 4), ((3, 5), 4), ((3, 5), 7), ((2, 3, 4), 12), ((2, 3), 100)]
)
def test_regions_cover_all_fits_in_order(shape, largest):
    numbers = np.arange(np.prod(shape))
    array = numbers.reshape(*shape, 1) * np.ones(2)
    parts = list(regions(shape, largest))
    assert max(region.size for region in parts) <= largest
    np.testing.assert_array_equal(np.concatenate([p.read(array)[:, 1] for p in parts]), numbers)
    assert [p.start for p in parts[1:]] == [p.stop for p in parts[:-1]]


# ---------------------------------------------------------------------- wrong arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"Y": Y[0, 0]}, r"Y=.*one row of points for each fit \(`curve_fit` fits a single one\)"),
        ({"Y": Y[:0]}, r"Y=.*at least one fit and one point, got shape \(0, 11, 10\)"),
        ({"Y": Y + 1j}, r"Y=.*must be real: fit real and imaginary parts"),
        ({"Y": [["a", "b"]]}, r"Y=.*must be an array of numbers"),
        ({"x": T[:4]}, r"model=.*one number for each of the 10 points.*got shape \(4,\)"),
        ({"x": "time"}, r"x=.*must be numbers where Y is not a DataArray, got 'time'"),
        ({"p0": np.ones((4, 3))}, r"p0=.*the leading shape \(7, 11\) of Y, got shape \(4, 3\)"),
        ({"p0": "guess"}, r"p0=.*must be numbers, a dict, Parameters or a function, got 'guess'"),
        ({"p0": [1.0, 1.0]}, r"p0=.*a number for each of size, rate, rest, got 2 numbers"),
        ({"p0": lambda t, y: float(y[0])}, r"p0=.*must be written in JAX"),
        ({"p0": {"size": [1.0, 2.0], "rate": 1.0, "rest": 0.0}}, r"one number for 'size'"),
        ({"sigma": np.ones(4)}, r"sigma=.*\(7, 11, 10\) or \(7, 11, 1\), got shape \(4,\)"),
        ({"sigma": -1.0}, r"sigma=.*must be positive"),
        ({"mask": np.ones(4, bool)}, r"mask=.*got shape \(4,\)"),
        ({"mask": Y}, r"mask=.*must be True for points to leave out, got dtype float64"),
        ({"bounds": {"a": (0, 1)}}, r"bounds=.*one of the parameters size, rate, rest, got 'a'"),
        ({"threads": 0}, r"threads=.*at least 1, got 0"),
        ({"tolerance": -1}, r"tolerance=.*must be positive"),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        cfgd.curve_fit_many(**{"model": decay, "x": T, "Y": Y, "p0": P0} | arguments)


def test_arguments_of_other_functions():
    with pytest.raises(TypeError, match=r"no argument `maxfev`: `max_iterations=` limits"):
        fit(maxfev=100)
    with pytest.raises(TypeError, match=r"has no argument 'loss'"):
        fit(loss="huber")
