"""Fixed, tied and bounded parameters against SciPy's fits of models that are written that way."""

import numpy as np
import pytest
import scipy.optimize
from curves import P0, SIGMA, T, Y, decay, decay_in_numpy, least_squares

import cfgd
from cfgd import Parameter, Parameters

NAMED = {"size": 1.0, "rate": 1.0, "rest": 0.0}


def reduced(model, start, sigma=1.0):
    return least_squares(lambda p: (model(*p) - Y) / sigma, start)


FIXED = {
    "values by name": lambda: cfgd.curve_fit(decay, T, Y, P0, SIGMA, fixed={"rest": 0.3}),
    "names": lambda: cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.3], SIGMA, fixed=["rest"]),
    "equal bounds": lambda: cfgd.curve_fit(decay, T, Y, P0, SIGMA, bounds={"rest": (0.3, 0.3)}),
    "not in p0": lambda: cfgd.curve_fit(
        decay, T, Y, Parameters(size=1.0, rate=1.0), SIGMA, fixed={"rest": 0.3}
    ),
    "a Parameter": lambda: cfgd.curve_fit(
        decay, T, Y, Parameters(size=1.0, rate=1.0, rest=Parameter(0.3, fixed=True)), SIGMA
    ),
}


@pytest.mark.parametrize("fit", FIXED.values(), ids=FIXED)
def test_a_fixed_parameter_is_as_if_the_model_had_its_value(fit):
    wanted, covariance = reduced(lambda a, b: decay_in_numpy(T, a, b, 0.3), [1.0, 1.0], SIGMA)
    found = fit()
    assert found.names == ["size", "rate"]
    assert found.dof == 6
    every = found.parameters
    every = every if isinstance(every, dict) else dict(zip(NAMED, every, strict=True))
    assert list(every) == ["size", "rate", "rest"]  # in the order in which they are written
    np.testing.assert_allclose([every[name] for name in NAMED], [*wanted, 0.3], rtol=1e-6)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-5)


def test_a_tied_parameter_is_as_if_the_model_had_its_formula():
    wanted, covariance = reduced(lambda a, b: decay_in_numpy(T, a, b, a / 10 + b), [1.0, 1.0])
    ties = {"rest": lambda p: p["tenth"] + p["rate"], "tenth": lambda p: p["size"] / 10}
    found = cfgd.curve_fit(decay, T, Y, {"size": 1.0, "rate": 1.0}, tied=ties)
    order = [found.names.index(name) for name in ("size", "rate")]
    np.testing.assert_allclose([found.parameters[name] for name in ("size", "rate")], wanted, 1e-6)
    np.testing.assert_allclose(found.covariance[np.ix_(order, order)], covariance, rtol=1e-5)
    assert found.parameters["tenth"] == pytest.approx(wanted[0] / 10, rel=1e-6)
    assert found.parameters["rest"] == pytest.approx(wanted[0] / 10 + wanted[1], rel=1e-6)


@pytest.mark.slow
def test_a_tie_in_a_list_and_in_a_parameter():
    by_list = cfgd.curve_fit(decay, T, Y, P0, tied={"rest": lambda p: p["size"] / 10})
    tied = Parameter(expression=lambda p: p["size"] / 10)
    by_name = cfgd.curve_fit(decay, T, Y, Parameters(rest=tied, size=1.0, rate=1.0))
    values = [by_name.parameters[name] for name in NAMED]
    np.testing.assert_allclose(by_list.parameters, values, rtol=1e-7)
    assert by_list.parameters[2] == pytest.approx(by_list.parameters[0] / 10, rel=1e-14)


BOUNDS = {
    "SciPy's": ([0, 0, 0.6], [10, 10, np.inf]),
    "by name": {"rest": (0.6, None)},
    "pairs": [(0, 10), (0, 10), (0.6, None)],
    "Bounds": scipy.optimize.Bounds([-np.inf, 0, 0.6], [10, 10, np.inf]),
}


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_an_active_bound(bounds):
    wanted, _ = scipy.optimize.curve_fit(
        decay_in_numpy, T, Y, [1, 1, 0.7], bounds=BOUNDS["SciPy's"], xtol=1e-15, ftol=1e-15
    )
    fit = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.7], bounds=bounds)
    np.testing.assert_allclose(fit.parameters, wanted, rtol=1e-6)
    assert fit.parameters[2] == 0.6
    np.testing.assert_array_equal(fit.solution.active_mask, [0, 0, -1])


def test_a_list_of_two_is_refused_for_two_parameters():
    """SciPy takes it for (lower, upper), and `minimize` for two pairs."""
    with pytest.raises(ValueError, match=r"be a tuple \(lower, upper\), or a dict of pairs"):
        cfgd.curve_fit(lambda t, a, b: a + b * t, T, Y, [1.0, 1.0], bounds=[[0, 0], [9, 9]])


def test_bounds_that_are_not_active_change_nothing():
    free = cfgd.curve_fit(decay, T, Y, P0)
    wide = cfgd.curve_fit(decay, T, Y, P0, bounds=(-50, 50))
    np.testing.assert_allclose(wide.parameters, free.parameters, rtol=1e-9)
    assert wide.solution.iterations == free.solution.iterations


def test_a_vector_parameter():
    def line(t, w):
        return w[0] + w[1] * t

    fit = cfgd.curve_fit(line, T, Y, {"w": [1.0, 1.0]}, bounds={"w": ([2.5, -9], None)})
    assert fit.names == ["w[0]", "w[1]"]
    slope = T @ (Y - 2.5) / (T @ T)  # least squares with the first number at its bound
    np.testing.assert_allclose(fit.parameters["w"], [2.5, slope], rtol=1e-7)


def test_the_start_where_p0_is_left_out():
    """One, or between the bounds: SciPy's rule."""
    problem = cfgd.curve_fit(
        decay, T, Y, bounds={"size": (2, 4), "rate": (0.5, None)}, max_iterations=1
    ).problem
    np.testing.assert_array_equal(problem.start, [3.0, 1.5, 1.0])


def test_a_single_number_as_p0():
    fit = cfgd.curve_fit(lambda t, a: a * t, T, Y, 1.0)
    np.testing.assert_allclose(fit.parameters, [T @ Y / (T @ T)], rtol=1e-9)


def test_defaults_of_a_model_are_kept():
    fit = cfgd.curve_fit(lambda t, a, b=2.0: a * t + b, T, Y, [1.0])
    np.testing.assert_allclose(fit.parameters, [T @ (Y - 2) / (T @ T)], rtol=1e-9)
    assert fit.names == ["a"]


def test_held_numbers_of_a_problem():
    """What profiles are made of: a fit with one number kept at a value."""
    problem = cfgd.curve_fit(decay, T, Y, P0).problem
    held = problem.minimize(held={1: 0.7})
    wanted, _ = reduced(lambda a, c: decay_in_numpy(T, a, 0.7, c), [1.0, 0.0])
    np.testing.assert_allclose(held.x, [wanted[0], 0.7, wanted[1]], rtol=1e-6)


def test_parameters_are_a_mapping():
    own = {"x": 1.0, "y": Parameter()}
    p = Parameters(a=Parameter(1.0, bounds=(0, None)), b=2.0, c=own)
    assert list(p) == ["a", "b", "c[x]", "c[y]"]
    assert p.free == list(p)
    assert repr(p) == "Parameters(a=1.0 in [0, inf], b=2.0, c[x]=1.0, c[y]=no value)"
    assert p["b"].value == 2.0
    assert len(p) == 4


def tie(p):
    return p["rest"]


REFUSED = {
    "circle": ({"tied": {"rest": lambda p: p["rate"], "rate": tie}}, "rate needs rest, rest needs"),
    "itself": ({"tied": {"rest": tie}}, "must not refer to each other in a circle, got rest needs"),
    "unknown": ({"tied": {"rest": lambda p: p["foo"]}}, r"tied\['rest'\].*got one of 'foo'"),
    "not JAX": ({"tied": {"rest": lambda p: float(p["rate"])}}, "tied.*must be written in JAX"),
    "no dict": ({"tied": tie}, "must be a dict of functions of the parameters"),
    "both": ({"tied": {"rest": lambda p: p["rate"]}, "fixed": ["rest"]}, "not be fixed as well"),
    "nothing free": ({"fixed": ["size", "rate", "rest"]}, "neither fixed nor tied, got none"),
    "fixed name": ({"fixed": ["rset"]}, "name one of the parameters rate, rest, size, got 'rset'"),
    "fixed value": ({"fixed": {"rest": "a"}}, "must be a number, got 'a'"),
    "not taken": ({"fixed": {"rset": 1.0}}, "fixed=.* got 'rset', which is not used"),
    "bounds name": ({"bounds": {"foo": (0, 1)}}, "bounds=.* must name one of the parameters"),
    "crossed": ({"bounds": {"rest": (2, 1)}}, r"lower <= upper, got \(2, 1\) for 'rest'"),
    "pairs": ({"bounds": [(0, 1), (0, 1)]}, "hold 3 pairs, one for each coordinate"),
    "crossed pairs": ({"bounds": [(0, 1), (0, 1), (2, 1)]}, "feasible, .* got 2 and 1 for size"),
    "count": ({"bounds": ([0, 0], [1, 1])}, r"numbers or arrays of shape \(3,\)"),
    "NaN": ({"bounds": (0, np.nan)}, "be numbers or None, got NaN"),
    "tied bounds": (
        {"tied": {"rest": lambda p: p["rate"]}, "bounds": {"rest": (0, 1)}},
        "must leave out 'rest', which is tied",
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("keywords", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        cfgd.curve_fit(decay, T, Y, NAMED, **keywords)


P0_REFUSED = {
    "too few": ([1.0, 1.0], "have a number for each of size, rate, rest, got 2"),
    "not in the model": ({**NAMED, "oops": 1.0}, "got 'oops', which is not used"),
    "not in p0": ({"size": 1.0, "rate": 1.0}, "have the argument `rest` of the model"),
    "a word": ("guesss", "be numbers, a dict, Parameters or \"guess\", got 'guesss'"),
    "data sets": ({**NAMED, "size": {"a": 1.0}}, "only by the names of data sets, got the names a"),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("p0", "message"), P0_REFUSED.values(), ids=P0_REFUSED)
def test_starts_that_are_refused(p0, message):
    with pytest.raises(ValueError, match=message):
        cfgd.curve_fit(decay, T, Y, p0)


def test_a_signature_without_names():
    with pytest.raises(ValueError, match="signature of the model does not name its parameters"):
        cfgd.curve_fit(lambda t, *p: p[0] * t, T, Y)


PARAMETER_REFUSED = {
    "fixed": (lambda: Parameter(fixed=True), "value=.* must be a number for a fixed parameter"),
    "tied and fixed": (
        lambda: Parameter(1.0, fixed=True, expression=tie),
        "must be None for a fixed",
    ),
    "tied bounds": (lambda: Parameter(expression=tie, bounds=(0, 1)), "left out for a tied"),
    "crossed": (lambda: Parameter(1.0, bounds=(1, 0)), "no lower bound above its upper"),
    "one": (lambda: Parameter(1.0, bounds=3.0), r"be a pair \(lower, upper\)"),
    "shape": (lambda: Parameter(1.0, bounds=([1.0, 2.0], None)), r"have the shape \(\) of value"),
    "none": (lambda: Parameters(), "hold at least one parameter"),
    "text": (lambda: Parameters(a="1"), r"Parameters\(a=...\)` must be a Parameter or a number"),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("make", "message"), PARAMETER_REFUSED.values(), ids=PARAMETER_REFUSED)
def test_parameters_that_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


INSTEAD = {
    "maxfev": "`max_iterations=`",
    "jac": "JAX differentiates",
    "full_output": "`fit.solution`",
    "nan_policy": "missing='drop'",
    "f_scale": "`scale=`",
    "ftol": "`tolerance=`",
    "x_scale": "units of the parameters",
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", INSTEAD)
def test_arguments_of_scipy_are_refused_by_name(name):
    with pytest.raises(TypeError, match=f"`curve_fit` has no argument `{name}`: .*{INSTEAD[name]}"):
        cfgd.curve_fit(decay, T, Y, P0, **{name: 1})


def test_unknown_arguments_name_curve_fit_and_not_what_it_calls():
    with pytest.raises(TypeError, match=r"^`curve_fit` has no argument `bound`: did you mean `bou"):
        cfgd.curve_fit(decay, T, Y, P0, bound={"a": (0, 1)})
    with pytest.raises(TypeError, match=r"^`curve_fit` has no argument `shared`\.$"):
        cfgd.curve_fit(decay, T, Y, P0, shared=["a"])


def test_methods_and_losses_of_scipy_are_refused():
    with pytest.raises(TypeError, match=r"method='trf'.*method of another library"):
        cfgd.curve_fit(decay, T, Y, P0, method="trf")
    with pytest.raises(ValueError, match=r"loss='linear'.*is called `loss='squared'`"):
        cfgd.curve_fit(decay, T, Y, P0, loss="linear")
    with pytest.raises(ValueError, match=r"^`curve_fit\(loss=\.\.\.\)` must be one of squared, "):
        cfgd.curve_fit(decay, T, Y, P0, loss="Tukey")
    with pytest.raises(ValueError, match=r"^`curve_fit\(scale=\.\.\.\)` must be positive"):
        cfgd.curve_fit(decay, T, Y, P0, loss="huber", scale=-1.0)
