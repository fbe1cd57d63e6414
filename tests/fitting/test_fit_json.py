"""A fit from its file, from a pickle, and damaged files."""

import functools
import json
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd

T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
Y = np.array([2.94, 2.41, 1.62, 1.30, 0.97, 0.83, 0.71, 0.55])


def line(t, a, b):
    return a + b * t


@functools.cache
def fitted():
    return cfgd.curve_fit(line, T, Y, [0.0, 0.0])


def test_a_fit_is_restored_bit_for_bit(tmp_path):
    fit, path = fitted(), tmp_path / "fit.json"
    fit.to_json(path)
    again = cfgd.Fit.from_json(path)
    assert again == fit
    assert repr(again) == repr(fit)
    assert dict(again.intervals(method="normal")) == dict(fit.intervals(method="normal"))
    assert again.aic == fit.aic
    assert again.compare(fit).p_value is not None
    again.to_json(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_numbers_that_are_not_finite_and_dicts(tmp_path):
    with pytest.warns(UserWarning, match="do not determine"):
        fit = cfgd.curve_fit(
            *(lambda t, a, b, w: a + b + w[0] * t + 0 * w[1], T, Y),
            {"a": 1.0, "b": 1.0, "w": np.array([0.0, 3.0])},
        )
    fit.to_json(tmp_path / "fit.json")
    again = cfgd.Fit.from_json(tmp_path / "fit.json")
    assert again == fit
    assert again.warnings == fit.warnings
    assert again.names == ["a", "b", "w[0]", "w[1]"]


@pytest.mark.parametrize(
    "call",
    [
        lambda fit: fit.intervals(),
        lambda fit: fit.band(T),
        lambda fit: fit.derived(lambda p: p["a"]),
    ],
    ids=["intervals", "band", "derived"],
)
@pytest.mark.every_case
def test_what_needs_the_model_says_so(call, tmp_path):
    fitted().to_json(tmp_path / "fit.json")
    with pytest.raises(ValueError, match="needs the model, which a stored fit does not have"):
        call(cfgd.Fit.from_json(tmp_path / "fit.json"))


def test_a_file_with_former_names_is_read(tmp_path):
    fit = fitted()
    fit.to_json(tmp_path / "fit.json")
    text = (tmp_path / "fit.json").read_text(encoding="utf-8")
    text = text.replace('"dof"', '"freedom"', 1).replace('"residual_std"', '"deviation"')
    (tmp_path / "fit.json").write_text(text, encoding="utf-8")
    assert cfgd.Fit.from_json(tmp_path / "fit.json") == fit


@pytest.mark.parametrize(("former", "name"), [("freedom", "dof"), ("deviation", "residual_std")])
def test_former_names_warn(former, name):
    fit = fitted()
    with pytest.warns(DeprecationWarning, match=f"`Fit.{former}` is now called `{name}`"):
        assert getattr(fit, former) == getattr(fit, name)


def test_pickles():
    """A model that can be pickled stays; a lambda is left behind."""
    fit = fitted()
    again = pickle.loads(pickle.dumps(fit))
    assert again == fit
    np.testing.assert_array_equal(again.band(T), fit.band(T))
    fit = cfgd.curve_fit(lambda t, a: a * jnp.exp(-t), T, Y, [1.0])
    again = pickle.loads(pickle.dumps(fit))
    assert again == fit
    assert again.problem is None


DAMAGE = {
    "format": (lambda d: d.update(format="cfgd solution 1"), "`format` must be 'cfgd fit 1'"),
    "missing": (lambda d: d.pop("dof"), "`dof` must be present"),
    "unknown": (lambda d: d.update(more=1), "`more` must be one of"),
    "names": (lambda d: d.update(names="ab"), "`names` must be a list of strings"),
    "shape": (lambda d: d["names"].append("c"), r"`covariance` must have shape \(3, 3\)"),
    "kind": (lambda d: d.update(covariance_kind="x"), "`covariance_kind` must be one of"),
    "flag": (lambda d: d.update(absolute_sigma=1), "`absolute_sigma` must be true or false"),
    "count": (lambda d: d.update(dof=1.5), "`dof` must be an integer"),
    "number": (lambda d: d.update(chi_square=None), "`chi_square` must be a number"),
    "matrix": (lambda d: d.update(covariance=1.0), "`covariance` must be an array of real"),
    "dict": (lambda d: d.update(values=1.0), "`values` must be a dict"),
    "solution": (lambda d: d["solution"].pop("status"), "`solution: status` must be present"),
    "x": (lambda d: d["solution"].update(x=1.0), "`solution` must have an x of at least 2"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
@pytest.mark.every_case
def test_damaged_files_name_the_field(damage, message, tmp_path):
    path = tmp_path / "fit.json"
    fitted().to_json(path)
    content = json.loads(path.read_text())
    damage(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        cfgd.Fit.from_json(path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ValueError, match="must hold a fit in JSON"):
        cfgd.Fit.from_json(path)
