"""NIST's StRD, facts of a public agency: nonlinear regressions with certified values."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np

NIST = json.loads((Path(__file__).parent / "nist.json").read_text())
WORDS = {name: getattr(jnp, name) for name in ("exp", "sin", "cos", "arctan", "sqrt", "pi")}


def residuals(name):
    problem = NIST[name]
    code = compile(problem["formula"], name, "eval")
    data = {key: np.array(problem[key]) for key in ("x", "x1", "x2") if key in problem}
    y = np.array(problem["y"])
    y = np.log(y) if problem.get("log_y") else y

    def r(b):
        betas = {f"b{i + 1}": b[i] for i in range(len(problem["certified"]))}
        return eval(code, WORDS | data | betas) - y

    return r


def sum_of_squares(name):
    r = residuals(name)
    return lambda b: jnp.sum(r(b) ** 2) / 2


def correct_digits(name, b):
    certified = np.array(NIST[name]["certified"])
    return -np.log10(np.max(np.abs(b - certified) / np.abs(certified)) + 1e-16)
