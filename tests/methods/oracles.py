"""Objectives as Auto's solvers see them."""

import numpy as np

import cfgd
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.host import host_objective


def oracle_for(objective, x0):
    """Return an oracle for an objective at its start."""
    return Oracle(host_objective(objective), np.asarray(x0, float))


def quadratic_oracle(A, b, x0):
    """Return an oracle for x'Ax / 2 + b'x that knows values and gradients alone."""
    return oracle_for(cfgd.External(lambda x: x @ A @ x / 2 + b @ x, lambda x: A @ x + b), x0)


def evaluation_of(A, b, x):
    """Return the evaluation of x'Ax / 2 + b'x at x, and a start there."""
    at = Evaluation(x, np.float64(x @ A @ x / 2 + b @ x), A @ x + b)
    return at, Start.of(at)


def random_spd(random, d, condition=1e3):
    """Return a random positive definite matrix with this condition number."""
    axes, _ = np.linalg.qr(random.normal(size=(d, d)))
    return (axes * np.geomspace(1, condition, d)) @ axes.T


def inverse_bfgs(pairs, start):
    """Return the inverse BFGS matrix after the updates by all pairs, by the definition."""
    H = start
    for s, y in pairs:
        V = np.eye(len(s)) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    return H
