"""Bad input to objectives is refused in a sentence with owner, field, what is wanted and given."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import cfgd

# without the type checker, which would refuse some of the arguments first
pytestmark = pytest.mark.usefixtures("unchecked")

X = np.array([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0], [0.3, 0.0, 0.0], [0.0, 0.0, 1.5]])
Y = np.array([1.0, 0.0, 0.0, 1.0])
Z = np.array([0.1, -0.4, 0.9])
T = np.array([1.0, 2.0, 0.5])
HOLE = X.copy()
HOLE[1, 2] = np.nan
INFINITE = X.copy()
INFINITE[2, 0] = -np.inf
NETWORK = cfgd.ShallowNetwork(Z, T, 2)


def with_nan(y, at):
    y = np.array(y)
    y[at] = np.nan
    return y


def run(objective, d, step):
    return cfgd.minimize(objective, np.ones(d), cfgd.GradientDescent(step), max_iterations=1)


LINEAR = {
    "least squares, l2 for each": (
        lambda: cfgd.LeastSquares(X, Y, l2=[0.1, 0.2, 0.3]),
        "`LeastSquares(l2=...)` must be one number, got shape (3,).",
    ),
    "l2, of another shape": (
        lambda: cfgd.LinearModel(X, Y, l2=[0.1, 0.2]),
        "`LinearModel(l2=...)` must be one number or have shape (3,), got shape (2,).",
    ),
    "l2, of classes": (
        lambda: cfgd.LinearModel(X, [0, 1, 2, 1], "multinomial", l2=np.ones((2, 3))),
        "`LinearModel(l2=...)` must be one number or have shape (3, 3), got shape (2, 3).",
    ),
    "gamma, zero": (
        lambda: cfgd.LinearModel(X, [1, 0, 2, 3], "gamma"),
        "`LinearModel(y=...)` must be positive for the loss gamma, got 0.0 at index 1.",
    ),
    "multinomial, a fraction": (
        lambda: cfgd.LinearModel(X, [0, 1, 1.5, 2], "multinomial"),
        "`LinearModel(y=...)` must be 0, 1, 2, ... for the loss multinomial, got 1.5 at index 2.",
    ),
    "multinomial, one class": (
        lambda: cfgd.LinearModel(X, [0, 0, 0, 0], "multinomial"),
        "`LinearModel(y=...)` must name at least two classes, got only 0.",
    ),
    "intercept": (
        lambda: cfgd.LinearModel(X, Y, intercept=1),
        "`LinearModel(intercept=...)` must be True or False, got 1.",
    ),
    "offset": (
        lambda: cfgd.LinearModel(X, Y, offset=[1.0, 2.0]),
        "`LinearModel(offset=...)` must have shape (4,), got (2,).",
    ),
    "x0 of classes": (
        lambda: cfgd.minimize(cfgd.LinearModel(X, [0, 1, 2, 1], "multinomial"), np.zeros(9)),
        "`minimize(x0=...)` must have shape (3, 3), got (9,).",
    ),
    "predict, w": (
        lambda: cfgd.LinearModel(X, Y, intercept=True).predict(np.zeros(3)),
        "`predict(w=...)` must have shape (4,), got (3,).",
    ),
    "predict, X": (
        lambda: cfgd.LinearModel(X, Y, intercept=True).predict(np.zeros(4), X[:, :2]),
        "`predict(X=...)` must have 3 columns, got (4, 2).",
    ),
    "probabilities": (
        lambda: cfgd.LinearModel(X, Y, "squared").probabilities(np.zeros(3)),
        "`LinearModel(loss=...)` must be logistic or multinomial to have probabilities, "
        "got squared.",
    ),
    "poisson, negative": (
        lambda: cfgd.LinearModel(X, [1, 0, -2, -3], "poisson"),
        "`LinearModel(y=...)` must not be negative for the loss poisson, got -2.0 at index 2.",
    ),
    "logistic, other label": (
        lambda: cfgd.LinearModel(X, [1, 0, 2, 1]),
        "`LinearModel(y=...)` must be 0/1 or -1/1 for the loss logistic, got 2.0 at index 2.",
    ),
    "logistic, a fraction": (
        lambda: cfgd.LinearModel(X, [-1, 1, 1, 0.5]),
        "`LinearModel(y=...)` must be 0/1 or -1/1 for the loss logistic, got 0.5 at index 3.",
    ),
    "logistic, three labels": (
        lambda: cfgd.LinearModel(X, [1, 0, -1, 1]),
        "`LinearModel(y=...)` must be 0/1 or -1/1 for the loss logistic, got labels -1, 0 and 1.",
    ),
    "loss": (
        lambda: cfgd.LinearModel(X, Y, "hinge"),
        "`LinearModel(loss=...)` must be one of squared, logistic, poisson, gamma, huber, "
        "multinomial, or a function of (prediction, target), got 'hinge'.",
    ),
    "loss, a number": (
        lambda: cfgd.LinearModel(X, Y, 2),
        "`LinearModel(loss=...)` must be one of squared, logistic, poisson, gamma, huber, "
        "multinomial, or a function of (prediction, target), got 2.",
    ),
}


def both(name, make):
    """Return the cases that `LinearModel` and `LeastSquares` share."""
    sparse = scipy.sparse.csr_array
    return {
        f"{name}, weight": (
            lambda: make(X, Y, sample_weight=[1, 0.5, -0.25, -1]),
            f"`{name}(sample_weight=...)` must not be negative, got -0.25 at index 2.",
        ),
        f"{name}, no weight": (
            lambda: make(X, Y, sample_weight=np.zeros(4)),
            f"`{name}(sample_weight=...)` must have a positive entry, got only zeros.",
        ),
        f"{name}, weights of another shape": (
            lambda: make(X, Y, sample_weight=np.ones(3)),
            f"`{name}(sample_weight=...)` must have shape (4,), got (3,).",
        ),
        f"{name}, one weight": (
            lambda: make(X, Y, sample_weight=2.0),
            f"`{name}(sample_weight=...)` must have shape (4,), got ().",
        ),
        f"{name}, weight nan": (
            lambda: make(X, Y, sample_weight=[1, np.nan, 1, 1]),
            f"`{name}(sample_weight=...)` must be finite, got nan at index 1.",
        ),
        f"{name}, l2": (
            lambda: make(X, Y, l2=-0.1),
            f"`{name}(l2=...)` must be a number of at least 0, got -0.1.",
        ),
        f"{name}, l2 nan": (
            lambda: make(X, Y, l2=np.nan),
            f"`{name}(l2=...)` must be finite, got nan.",
        ),
        f"{name}, l2 a word": (
            lambda: make(X, Y, l2="small"),
            f"`{name}(l2=...)` must be a number of at least 0, got 'small'.",
        ),
        f"{name}, X nan": (
            lambda: make(HOLE, Y),
            f"`{name}(X=...)` must be finite, got nan at index (1, 2).",
        ),
        f"{name}, X infinite": (
            lambda: make(INFINITE, Y),
            f"`{name}(X=...)` must be finite, got -inf at index (2, 0).",
        ),
        f"{name}, csr nan": (
            lambda: make(sparse(HOLE), Y),
            f"`{name}(X=...)` must be finite, got nan at index (1, 2).",
        ),
        f"{name}, csc infinite": (
            lambda: make(scipy.sparse.csc_matrix(INFINITE), Y),
            f"`{name}(X=...)` must be finite, got -inf at index (2, 0).",
        ),
        f"{name}, X empty": (
            lambda: make(np.zeros((0, 3)), []),
            f"`{name}(X=...)` must be a matrix, got shape (0, 3).",
        ),
        f"{name}, X without columns": (
            lambda: make(np.zeros((4, 0)), Y),
            f"`{name}(X=...)` must be a matrix, got shape (4, 0).",
        ),
        f"{name}, csr empty": (
            lambda: make(sparse((0, 3)), []),
            f"`{name}(X=...)` must be a matrix, got shape (0, 3).",
        ),
        f"{name}, X a vector": (
            lambda: make(Y, Y),
            f"`{name}(X=...)` must be a matrix, got shape (4,).",
        ),
        f"{name}, a sparse vector": (
            lambda: make(scipy.sparse.coo_array(Y), Y),
            f"`{name}(X=...)` must be a matrix, got shape (4,).",
        ),
        f"{name}, X ragged": (
            lambda: make([[1.0, 2.0], [3.0]], [1, 0]),
            f"`{name}(X=...)` must be a matrix of numbers, got rows of different lengths.",
        ),
        f"{name}, X words": (
            lambda: make([["a", "b"]], [1]),
            f"`{name}(X=...)` must be a matrix of numbers, got an array of dtype <U1.",
        ),
        f"{name}, X complex": (
            lambda: make(X + 1j, Y),
            f"`{name}(X=...)` must be a matrix of numbers, got an array of dtype complex128.",
        ),
        f"{name}, csr complex": (
            lambda: make(sparse(X + 1j), Y),
            f"`{name}(X=...)` must be a matrix of numbers, got an array of dtype complex128.",
        ),
        f"{name}, y nan": (
            lambda: make(X, with_nan(Y, 3)),
            f"`{name}(y=...)` must be finite, got nan at index 3.",
        ),
        f"{name}, y of another length": (
            lambda: make(X, Y[:3]),
            f"`{name}(y=...)` must have shape (4,), got (3,).",
        ),
        f"{name}, y two columns": (
            lambda: make(X, np.stack([Y, Y], 1)),
            f"`{name}(y=...)` must have shape (4,), got (4, 2).",
        ),
        f"{name}, y words": (
            lambda: make(X, ["yes", "no", "no", "yes"]),
            f"`{name}(y=...)` must be a vector of numbers, got an array of dtype <U3.",
        ),
    }


NETWORKS = {
    "width 0": (
        lambda: cfgd.ShallowNetwork(Z, T, 0),
        "`ShallowNetwork(width=...)` must be an integer of at least 1, got 0.",
    ),
    "width negative": (
        lambda: cfgd.ShallowNetwork(Z, T, -3),
        "`ShallowNetwork(width=...)` must be an integer of at least 1, got -3.",
    ),
    "width a fraction": (
        lambda: cfgd.ShallowNetwork(Z, T, 2.0),
        "`ShallowNetwork(width=...)` must be an integer of at least 1, got 2.0.",
    ),
    "activation": (
        lambda: cfgd.ShallowNetwork(Z, T, 2, "relu6"),
        "`ShallowNetwork(activation=...)` must be one of tanh, sigmoid, softplus, sin, or a "
        "function of one number, got 'relu6'.",
    ),
    "activation none": (
        lambda: cfgd.ShallowNetwork(Z, T, 2, None),
        "`ShallowNetwork(activation=...)` must be one of tanh, sigmoid, softplus, sin, or a "
        "function of one number, got None.",
    ),
    "z nan": (
        lambda: cfgd.ShallowNetwork(with_nan(Z, 1), T, 2),
        "`ShallowNetwork(z=...)` must be finite, got nan at index 1.",
    ),
    "z nan, p = 2": (
        lambda: cfgd.ShallowNetwork(with_nan(np.ones((3, 2)), (2, 1)), T, 2),
        "`ShallowNetwork(z=...)` must be finite, got nan at index (2, 1).",
    ),
    "z shape": (
        lambda: cfgd.ShallowNetwork(np.ones((3, 2, 1)), T, 2),
        "`ShallowNetwork(z=...)` must have shape (m,) or (m, p), got shape (3, 2, 1).",
    ),
    "z empty": (
        lambda: cfgd.ShallowNetwork([], [], 2),
        "`ShallowNetwork(z=...)` must have shape (m,) or (m, p), got shape (0,).",
    ),
    "z a number": (
        lambda: cfgd.ShallowNetwork(0.3, T, 2),
        "`ShallowNetwork(z=...)` must have shape (m,) or (m, p), got shape ().",
    ),
    "targets nan": (
        lambda: cfgd.ShallowNetwork(Z, with_nan(T, 0), 2),
        "`ShallowNetwork(y=...)` must be finite, got nan at index 0.",
    ),
    "targets of another length": (
        lambda: cfgd.ShallowNetwork(Z, T[:2], 2),
        "`ShallowNetwork(y=...)` must have shape (3,), got (2,).",
    ),
    "init, scale negative": (
        lambda: NETWORK.init(0, -1.0),
        "`init(scale=...)` must be positive, got -1.0.",
    ),
    "init, three scales": (
        lambda: NETWORK.init(0, (1.0, 2.0, 3.0)),
        "`init(scale=...)` must be a number or two, got shape (3,).",
    ),
    "predict, inputs of another shape": (
        lambda: NETWORK.predict(np.ones(6), np.ones((4, 2))),
        "`predict(z=...)` must have shape (m,) or (m, 1), got shape (4, 2).",
    ),
    "predict, x of another length": (
        lambda: NETWORK.predict(np.ones(7), Z),
        "`predict(x=...)` must have shape (6,), got (7,).",
    ),
}
LOCAL = {
    "curvature": (
        lambda: cfgd.Local(NETWORK, "fisher"),
        "`Local(curvature=...)` must be one of exact, gauss_newton, hutchinson, got 'fisher'.",
    ),
    "gauss_newton of a function": (
        lambda: cfgd.Local(lambda x: jnp.sum(x**2), "gauss_newton"),
        "`Local(objective=...)` must be a sum of losses of a model for the curvature "
        "gauss_newton, got a Smooth.",
    ),
    "gauss_newton of a quadratic": (
        lambda: cfgd.Local(cfgd.Quadratic(np.eye(2), np.ones(2)), "gauss_newton"),
        "`Local(objective=...)` must be a sum of losses of a model for the curvature "
        "gauss_newton, got a Quadratic.",
    ),
    "gauss_newton of a local model": (
        lambda: cfgd.Local(cfgd.Local(lambda x: jnp.sum(x**2)), "gauss_newton"),
        "`Local(objective=...)` must be a sum of losses of a model for the curvature "
        "gauss_newton, got a Local of a Smooth.",
    ),
    "hutchinson without a key": (
        lambda: cfgd.Local(NETWORK, "hutchinson"),
        "`Local(key=...)` must be given for the curvature hutchinson and for no other, "
        "got None for hutchinson.",
    ),
    "a key for another": (
        lambda: cfgd.Local(NETWORK, "exact", key=3),
        "`Local(key=...)` must be given for the curvature hutchinson and for no other, "
        "got 3 for exact.",
    ),
    "a key that is none": (
        lambda: cfgd.Local(NETWORK, "hutchinson", key=1.5),
        "`Local(key=...)` must be an integer, a NumPy Generator or a JAX key, got 1.5.",
    ),
    "probes": (
        lambda: cfgd.Local(NETWORK, "hutchinson", probes=0, key=1),
        "`Local(probes=...)` must be an integer of at least 1, got 0.",
    ),
    "objective": (
        lambda: cfgd.Local(3),
        "`Local(objective=...)` must be an objective or a function, got 3.",
    ),
    "a function with a vector for a value": (
        lambda: run(cfgd.Local(lambda x: x), 3, cfgd.ExactStep()),
        "`minimize(objective=...)` must return a scalar, got shape (3,).",
    ),
}
STEPS = {
    "NetworkStep on a linear model": (
        lambda: run(cfgd.LinearModel(X, Y), 3, cfgd.NetworkStep()),
        "`NetworkStep(objective=...)` must be a ShallowNetwork or its local model without probes, "
        "got a LinearModel.",
    ),
    "NetworkStep on a function": (
        lambda: run(lambda x: jnp.sum(x**2), 3, cfgd.NetworkStep()),
        "`NetworkStep(objective=...)` must be a ShallowNetwork or its local model without probes, "
        "got a Smooth.",
    ),
    "NetworkStep on a model with probes": (
        lambda: run(cfgd.Local(NETWORK, "hutchinson", key=0), 6, cfgd.NetworkStep()),
        "`NetworkStep(objective=...)` must be a ShallowNetwork or its local model without probes, "
        "got a Local of a ShallowNetwork with probes.",
    ),
    "NetworkStep on a local model": (
        lambda: run(cfgd.Local(lambda x: jnp.sum(x**2)), 3, cfgd.NetworkStep()),
        "`NetworkStep(objective=...)` must be a ShallowNetwork or its local model without probes, "
        "got a Local of a Smooth.",
    ),
    "ArmijoStep with a start for each coordinate": (
        lambda: run(cfgd.LeastSquares(X, Y), 3, cfgd.ArmijoStep(np.ones(3))),
        "`ArmijoStep(initial=...)` must be one number, got shape (3,).",
    ),
}
POINTS = {
    "x0 of another length": (
        lambda: run(cfgd.LinearModel(X, Y), 4, cfgd.ExactStep()),
        "`minimize(x0=...)` must have shape (3,), got (4,).",
    ),
    "x0 of another length, network": (
        lambda: run(NETWORK, 7, cfgd.ExactStep()),
        "`minimize(x0=...)` must have shape (6,), got (7,).",
    ),
    "x0 a pytree": (
        lambda: cfgd.minimize(NETWORK, {"a": np.ones(6)}, cfgd.GradientDescent(), max_iterations=1),
        "`minimize(x0=...)` must have shape (6,), got a pytree.",
    ),
    "x0 where the value overflows": (
        lambda: cfgd.minimize(
            cfgd.LinearModel(X, Y, "poisson"), np.full(3, 1e4), cfgd.GradientDescent()
        ),
        "`minimize(x0=...)` must give a finite value and gradient, got the value inf.",
    ),
    "x of another length": (
        lambda: cfgd.LinearModel(X, Y).gradient(np.ones(4)),
        "`LinearModel(x=...)` must have shape (3,), got (4,).",
    ),
    "t of another length": (
        lambda: cfgd.LinearModel(X, Y).coordinate_slope(np.ones(3), np.ones(2)),
        "`LinearModel(t=...)` must have the structure of x, got shape (2,).",
    ),
}
TABLE = (
    LINEAR
    | both("LinearModel", cfgd.LinearModel)
    | both("LeastSquares", cfgd.LeastSquares)
    | NETWORKS
    | LOCAL
    | STEPS
    | POINTS
)


@pytest.mark.parametrize(("make", "message"), TABLE.values(), ids=TABLE)
def test_message(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


def test_names_listed_in_messages_are_accepted():
    _, message = LINEAR["loss"]
    names = re.search(r"one of (.*), or a function", message)[1].split(", ")
    for name in names:
        y = Y + 1 if name == "gamma" else Y
        assert cfgd.LinearModel(X, y, name).shape[0] == 3
    _, message = NETWORKS["activation"]
    names = re.search(r"one of (.*), or a function", message)[1].split(", ")
    for name in names:
        assert cfgd.ShallowNetwork(Z, T, 2, name).dimension == 6


VALID = {  # close to what is refused
    "one class": lambda: cfgd.LinearModel(X, np.ones(4)),
    "one class, 0": lambda: cfgd.LinearModel(X, np.zeros(4)),
    "bool": lambda: cfgd.LinearModel(X, Y == 1),
    "no events": lambda: cfgd.LinearModel(X, np.zeros(4), "poisson"),
    "a fraction of an event": lambda: cfgd.LinearModel(X, Y / 2, "poisson"),
    "one weight": lambda: cfgd.LinearModel(X, Y, sample_weight=[0, 0, 0.1, 0]),
    "l2 0": lambda: cfgd.LeastSquares(X, Y, l2=0),
    "width 1": lambda: cfgd.ShallowNetwork(Z, T, 1),
    "one sample": lambda: cfgd.ShallowNetwork([0.5], [1.0], 3),
    "nothing stored": lambda: cfgd.LeastSquares(scipy.sparse.csr_array((4, 3)), Y),
}


@pytest.mark.parametrize("make", VALID.values(), ids=VALID)
def test_valid_edge_cases_are_accepted(make):
    f = make()
    assert np.isfinite(f.value(np.full(f.dimension, 0.5)))
