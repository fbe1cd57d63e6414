"""Two quadratics, one of them almost flat in one direction, and runs on them."""

import numpy as np

import cfgd
from cfgd import FixedStep, GradientDescent
from problems import BOWL, A, identity

F, X0 = BOWL.objective, BOWL.x0
RECORD = {"x": identity}
HIGH = np.linalg.eigvalsh(A)[-1]
# almost flat along the last coordinate: no run converges there
FLAT = cfgd.Quadratic(np.diag([1.0, 1.0, 1e-13]), np.zeros(3))

LONG = 2 * 10**6  # iterations that take seconds


def bowl(**options):
    return cfgd.minimize(F, X0, GradientDescent(), record=RECORD, **options)


def fixed(eta, f=F, **options):
    return cfgd.minimize(f, X0, GradientDescent(FixedStep(eta)), record=RECORD, **options)
