"""`minimize` with `Parameters`: fixed, tied and bounded ones by name."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import cfgd

T = np.linspace(0, 4, 9)
Y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])


def decay(p, t, y):
    return p["size"] * jnp.exp(-2 * p["half"] * t) + p["rest"] - y


def parameters(**changed):
    given = {
        "size": cfgd.Parameter(1.0, bounds=(0, 2.0)),
        "rate": 1.0,
        "rest": cfgd.Parameter(0.3, fixed=True),
        "half": cfgd.Parameter(expression=lambda p: p["rate"] / 2),
    }
    return cfgd.Parameters(**given | changed)


def test_residuals_take_fixed_tied_and_bounded_parameters():
    seen = []
    found = cfgd.minimize(
        cfgd.Residuals(decay, args=(T, Y)),
        parameters(),
        record={"half": lambda p: p["half"]},
        callback=lambda so_far: seen.append(so_far.x),
    )
    want = least_squares(
        lambda z: z[0] * np.exp(-z[1] * T) + 0.3 - Y,
        [1.0, 1.0],
        bounds=([0, -np.inf], [2.0, np.inf]),
        xtol=1e-14, ftol=1e-14, gtol=1e-14,
    )  # fmt: skip
    assert found.success
    assert set(found.x) == {"size", "rate", "rest", "half"}
    assert found.x["size"] == 2.0
    assert found.x["rest"] == 0.3
    assert found.x["rate"] == pytest.approx(want.x[1], rel=1e-7)
    assert found.x["half"] == found.x["rate"] / 2
    assert found.active_mask == {"size": 1, "rate": 0}
    assert "At the upper bound: x['size']." in found.message
    assert found.history["half"][-1] == found.x["half"]
    assert set(seen[0]) == set(found.x)


def test_a_function_takes_them_too():
    def f(p, c):
        return (p["a"] - c) ** 2 + jnp.sum(p["b"] ** 2)

    b = cfgd.Parameter([2.0, 2.0], bounds=([1.0, -np.inf], None))
    found = cfgd.minimize(f, cfgd.Parameters(a=1.0, b=b), args=(3.0,))
    assert found.x["a"] == pytest.approx(3.0)
    np.testing.assert_allclose(found.x["b"], [1.0, 0.0], atol=1e-8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: cfgd.minimize(cfgd.LeastSquares(np.eye(2), T[:2]), parameters()), "a LeastSq"),
        (lambda f: cfgd.minimize(f, parameters(), bounds=(0, 1)), "Parameters have their own"),
        (lambda f: cfgd.minimize(f, parameters(rate=cfgd.Parameter())), "none for 'rate'"),
        (
            lambda f: cfgd.minimize(f, cfgd.Parameters(size=cfgd.Parameter(1.0, fixed=True))),
            "have a free parameter",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(cfgd.Residuals(decay, args=(T, Y)))
