"""The calls that test_processes.py makes in several processes; it imports them for one process.

    python processes.py FOLDER SCENARIO ...

Every process writes its results to a JSON file in the folder.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.objectives.linear import one_pass

M, D = 61, 4  # rows are not divisible by anything


def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(M, D)) * [1.0, 3.0, 0.5, 1.0]
    p = X @ [1.0, -0.3, 2.0, 0.5]
    return {
        "X": X,
        "labels": (random.random(M) < 1 / (1 + np.exp(-p))).astype(float),
        "counts": random.poisson(np.exp(0.5 * p)),
        "classes": random.integers(0, 3, M),
        "numbers": p + random.normal(size=M),
    }


def residuals(x, X, y):
    return jnp.sinh(0.2 * X @ x) - y


def smooth(x, X, y, weight):
    return jnp.sum(weight * jnp.log(jnp.cosh(X @ x - y))) + 0.01 * jnp.sum(x**4)


# with few nodes and no search: what takes long is compiling
EASY = {"nodes": 2, "step": cfgd.FixedStep(0.01)}
METHOD = cfgd.AdaptiveTerminal(gamma=-0.2, **EASY)
METHODS = cfgd.AdaptiveTerminal(gamma=[-0.3, -0.2, -0.1], **EASY)


# of a sweep whose five settings are sharded over two devices
CURVATURES, ETAS = (3.0, 1.0, 0.5), (0.1, 0.2, 0.3, 0.4, 0.5)


# one for each kind of evaluation on the host, and a compiled loop
# one of Auto and one of the paper's methods, in `make test`: each process compiles its own
QUICK = ("logistic", "terminal")


def solve(rows, names):
    """Return the solutions of some of the problems by name, or of all for ("all",)."""
    return {
        name: plain(run()) for name, run in calls(rows).items() if name in names or "all" in names
    }


def calls(rows):
    """Return a call for each kind of objective; `rows(X, y)` returns X, y and weights."""
    of = data()
    X = of["X"]

    def model(name, loss, l2=0.0, **options):
        A, y, weight = rows(X, of[name])
        return cfgd.LinearModel(A, y, loss, l2, sample_weight=weight, **options)

    A, y, weight = rows(X, of["numbers"])
    ones = np.ones(M) if weight is None else weight
    logistic, few = model("labels", "logistic"), {"max_iterations": 15}
    poisson = model("counts", "poisson", intercept=True)
    multinomial = model("classes", "multinomial", l2=0.1)
    least_squares = cfgd.LeastSquares(A, y, sample_weight=weight)
    fit = cfgd.Residuals(residuals, args=(A, y), weights=weight)
    x0 = {"a": np.zeros(D)}
    return {
        "logistic": lambda: cfgd.minimize(logistic, np.zeros(D), record={"gamma": "gamma"}),
        "poisson": lambda: cfgd.minimize(poisson, np.zeros(D + 1)),
        "multinomial": lambda: cfgd.minimize(multinomial, np.zeros((D, 3))),
        "least squares": lambda: cfgd.minimize(least_squares, np.zeros(D)),
        "residuals": lambda: cfgd.minimize(fit, np.full(D, 0.1)),
        "smooth": lambda: cfgd.minimize(
            lambda p, *data: smooth(p["a"], *data), x0, args=(A, y, ones)
        ),
        "network": lambda: network(rows),
        "terminal": lambda: cfgd.minimize(logistic, np.zeros(D), METHOD, **few),
        "sweep": lambda: cfgd.sweep(logistic, np.zeros(D), METHODS, **few),
    }


def network(rows):
    """Fit a network, which has no weights: every process has as many rows.

    By Levenberg-Marquardt: variable projection is only for networks on one process.
    """
    z = np.linspace(-1, 1, 48)
    z, y, weight = rows(z, np.sin(2 * z))
    assert weight is None
    f = cfgd.ShallowNetwork(z, y, 2)
    return cfgd.minimize(f, f.init(0), cfgd.Auto("levenberg_marquardt"))


def plain(solution):
    x = np.concatenate([np.ravel(leaf) for leaf in cfgd._core.pytrees.jax.tree.leaves(solution.x)])
    return {
        "x": x.tolist(),
        "value": np.ravel(solution.value).tolist(),
        "iterations": np.ravel(solution.iterations).tolist(),
        "status": [status.name for status in np.ravel(solution.status)],
        "history": np.ravel(solution.history["value"]).tolist(),
        "covariance": np.ravel(solution.covariance()).tolist() if solution.information else None,
    }


def part(me, X, y):
    """Return the rows of this process: of M rows the second of several processes has none."""
    cuts = np.linspace(0, len(X), me.count + 1).astype(int)
    if len(X) == M and me.count > 2:
        cuts[2] = cuts[1]
    here = slice(cuts[me.index], cuts[me.index + 1])
    return X[here], y[here]


def error_of(fn):
    """Return the error that a call raises, as text."""
    try:
        fn()
    except (ValueError, RuntimeError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def decisions(me, folder):
    """Yield the results of runs in which one process decides or fails."""
    of = data()
    A, y, weight = cfgd.distributed.rows(*part(me, of["X"], of["labels"]))
    f = cfgd.LinearModel(A, y, l2=1e-3, sample_weight=weight)
    x0, second = np.zeros(D), me.index == 1
    slow = cfgd.GradientDescent(step=cfgd.FixedStep(1e-3))

    def run(**options):
        return cfgd.minimize(f, x0, slow, **{"tolerance": 0.0, "max_iterations": 10**9} | options)

    def stops(solution):
        return second and solution.iterations >= 30

    def fails(solution):
        if second:
            raise KeyError("mine")

    def interrupts(solution):
        if second and solution.iterations == 20:
            os.kill(os.getpid(), signal.SIGINT)

    yield "callback", plain(run(callback=stops, every=10))
    yield "error", error_of(lambda: run(callback=fails, every=10))
    yield "ctrl-c", plain(run(callback=interrupts, every=10))
    yield "time limit", plain(run(time_limit=0.2 if second else 1e9))
    few = {"max_iterations": 40, "every": 10, "progress": True}
    file = folder / "run.npz" if me.index == 0 else Path("/nowhere/run.npz")
    whole = plain(run(**few))
    run(**few | {"max_iterations": 20}, checkpoint=file)
    resumed = plain(run(**few, checkpoint=file))
    yield "checkpoint", [whole, resumed]
    yield "checkpoint of Auto", auto_checkpoint(me, folder)
    yield "files", sorted(path.name for path in folder.glob("run*"))
    yield "unlike", error_of(lambda: run(max_iterations=10 + me.index))
    yield "nowhere", error_of(lambda: run(checkpoint="/nowhere/else/run.npz"))
    X, labels = np.array(of["X"]), of["labels"]
    yield (
        "columns",
        error_of(lambda: cfgd.distributed.rows(X[:, : D - me.index][:9], labels[:9])),
    )
    X[3, 1] = np.nan if second else X[3, 1]
    yield "finite", error_of(lambda: cfgd.distributed.rows(X, labels))
    bad = cfgd.distributed.rows(of["X"], labels + 2 * second)
    yield "labels", error_of(lambda: cfgd.LinearModel(bad.X, bad.y))
    quadratic = cfgd.Quadratic(np.diag(CURVATURES), -np.ones(3))
    descents = cfgd.GradientDescent(cfgd.FixedStep(np.array(ETAS)))
    four = {"max_iterations": 4, "spread": True}  # an exchange between processes takes long
    yield "shared out", plain(cfgd.sweep(quadratic, np.zeros(3), descents, **four))


def auto_checkpoint(me, folder):
    """Return a run of conjugate gradients, and one that resumed: its residuals are sharded."""
    of = data()
    A, y, weight = cfgd.distributed.rows(*part(me, of["X"], of["numbers"]))
    f = cfgd.LeastSquares(A, y, sample_weight=weight)
    file = folder / "auto.npz"
    cfgd.minimize(f, np.zeros(D), tolerance=1e-12, max_iterations=2, checkpoint=file)
    resumed = cfgd.minimize(f, np.zeros(D), tolerance=1e-12, checkpoint=file)
    return [plain(cfgd.minimize(f, np.zeros(D), tolerance=1e-12)), plain(resumed)]


def endless(me, folder):
    """Run until a process is killed."""
    of = data()
    A, y, weight = cfgd.distributed.rows(*part(me, of["X"], of["labels"]))
    f = cfgd.LinearModel(A, y, sample_weight=weight)
    slow = cfgd.GradientDescent(step=cfgd.FixedStep(1e-9))
    options = {"tolerance": 0.0, "max_iterations": 10**9, "every": 1000}
    file = folder / "run.npz"
    cfgd.minimize(f, np.zeros(D), slow, **options, checkpoint=file, checkpoint_every=0.2)


def misbehave(me, how):
    """Let the second process do something in its callback for which the first would wait."""
    of = data()
    A, y, weight = cfgd.distributed.rows(*part(me, of["X"], of["labels"]))
    f = cfgd.LinearModel(A, y, sample_weight=weight)
    actions = {
        "exit": lambda: sys.exit(5),
        "sleep": lambda: time.sleep(3600),
        "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    }

    def callback(so_far):
        if me.index == 1 and so_far.iterations >= 20:
            actions[how]()

    slow = cfgd.GradientDescent(step=cfgd.FixedStep(1e-9))
    options = {"tolerance": 0.0, "max_iterations": 10**9, "every": 10}
    cfgd.minimize(f, np.zeros(D), slow, **options, callback=callback)


def many_fits():
    """Fit a straight line to each of seven rows."""
    x = np.array([0.0, 1.0, 3.0, 4.0])
    Y = np.random.default_rng(5).normal(size=(7, 4)) + 2 * x
    Y[4, 1] = np.nan
    return cfgd.curve_fit_many(lambda x, a, b: a + b * x, x, Y, [0.0, 1.0], threads=1)


def main(folder, *scenarios):
    # a short patience: a test need not wait for a minute
    me = cfgd.distributed.start(patience=5.0 if "sleep" in scenarios else 60.0)
    found = {"process": [me.index, me.count]}
    if "quick" in scenarios or "all" in scenarios:
        names = QUICK if "quick" in scenarios else ("all",)
        found |= solve(lambda X, y: cfgd.distributed.rows(*part(me, X, y)), names)
    if "few" in scenarios:
        one_pass.LONG = 10  # as if there were many rows
        of = data()
        held = cfgd.distributed.rows(*part(me, of["X"], of["labels"]))
        f = cfgd.LinearModel(held.X, held.y, sample_weight=held.sample_weight)
        found["logistic"] = plain(cfgd.minimize(f, np.zeros(D)))
        held = cfgd.distributed.rows(*part(me, of["X"], of["numbers"]))
        f = cfgd.LeastSquares(held.X, held.y, sample_weight=held.sample_weight)
        found["least squares"] = plain(cfgd.minimize(f, np.zeros(D)))
    if "many" in scenarios:
        found["table"] = many_fits().table.tolist()
    if "decisions" in scenarios:
        found |= dict(decisions(me, folder))
    if "misbehave" in scenarios:
        misbehave(me, scenarios[-1])
    if "endless" in scenarios:
        (folder / f"{me.index}.pid").write_text(str(os.getpid()))
        endless(me, folder)
    (folder / f"{me.index}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    # processes that a shell starts in the background ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(Path(sys.argv[1]), *sys.argv[2:])
