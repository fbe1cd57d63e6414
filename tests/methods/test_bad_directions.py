"""Bad input of `fractional_gradient`: one sentence."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd

OWNER = "`fractional_gradient"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"objective": 3}, f"{OWNER}(objective=...)` must be an objective or a function, got 3."),
        ({"alpha": 1.0}, f"{OWNER}(alpha=...)` must lie in (0, 1), got 1.0."),
        ({"beta": np.nan}, f"{OWNER}(beta=...)` must be finite, got nan."),
        ({"nodes": 0}, f"{OWNER}(nodes=...)` must be an integer of at least 1, got 0."),
        ({"x": [1.0, np.inf]}, f"{OWNER}(x=...)` must be finite, got inf at index 1."),
        (
            {"terminal": np.zeros(3)},
            f"{OWNER}(terminal=...)` must be a number or have the structure of x, got [0. 0. 0.].",
        ),
        (
            {"alpha": np.array([0.3, 0.4, 0.5])},
            f"{OWNER}(alpha=...)` must be a number or have shape (2,), got shape (3,).",
        ),
        (
            {"beta": np.array([[0.3, 0.4]])},
            f"{OWNER}(beta=...)` must be a number or have shape (2,), got shape (1, 2).",
        ),
    ],
    ids=lambda row: next(iter(row)) if isinstance(row, dict) else "",
)
@pytest.mark.usefixtures("unchecked")
def test_message(changed, message):
    given = {"objective": jnp.sum, "x": [1.0, 2.0], "terminal": 0.0, "alpha": 0.3, "beta": 0.2}
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cfgd.fractional_gradient(**(given | changed))
