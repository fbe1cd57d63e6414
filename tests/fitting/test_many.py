"""`curve_fit_many` against SciPy and `curve_fit`, fit by fit."""

import dask.array as da
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from curves import decay, decay_in_numpy, least_squares
from many_decays import EMPTY, HOLEY, INFINITE, P0, SHAPE, SHORT, TRUTH, Stored, T, Y, fit, same

import cfgd


@pytest.fixture(scope="module")
def fits():
    return fit()


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
    assert one.dof == 7
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
