"""`Blocks(distributed=True)`: each process has rows of its own, sparse ones too, or files."""

import json
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from cfgd.apps.launch import launch

RUN = """
import json, sys
from pathlib import Path
import numpy as np, scipy.sparse
import cfgd

me, folder = cfgd.distributed.start(), Path(sys.argv[1])
X, y = scipy.sparse.load_npz(folder / "X.npz").tocsr(), np.load(folder / "y.npy")
own = (slice(0, 150), slice(150, 600))[me.index]
for kind, given in {
    "sparse": (X[own], y[own]),
    "files": ([folder / f"part{me.index}.npz"],),
}.items():
    f = cfgd.Blocks(*given, l2=0.5, intercept=True, distributed=True)
    solution = cfgd.minimize(f, np.zeros(6), tolerance=1e-12)
    found = {"rows": f.rows, "x": solution.x.tolist(), "passes": f.passes}
    (folder / f"{kind}{me.index}.json").write_text(json.dumps(found))
"""


@pytest.mark.slow
def test_two_processes_give_what_scikit_learn_gives(tmp_path):
    random = np.random.default_rng(11)
    X = scipy.sparse.random_array((600, 5), density=0.4, rng=random, format="csr")
    y = (X @ [2.0, -1.0, 0.5, 3.0, 0.0] + random.logistic(size=600) > 0.3).astype(float)
    scipy.sparse.save_npz(tmp_path / "X.npz", X)
    np.save(tmp_path / "y.npy", y)
    for k, rows in enumerate((slice(0, 150), slice(150, 600))):
        np.savez(tmp_path / f"part{k}.npz", X=X[rows].toarray(), y=y[rows])
    (tmp_path / "run.py").write_text(RUN)
    assert launch([sys.executable, str(tmp_path / "run.py"), str(tmp_path)], 2) == 0
    theirs = LogisticRegression(C=2, tol=1e-12, solver="newton-cg", max_iter=1000).fit(X, y)
    wanted = np.append(theirs.coef_, theirs.intercept_)
    for kind in ("sparse", "files"):
        one, other = (
            json.loads((tmp_path / f"{kind}{index}.json").read_text()) for index in range(2)
        )
        assert one == other  # bit for bit
        assert one["rows"] == 600
        assert one["passes"] < 12
        np.testing.assert_allclose(one["x"], wanted, atol=1e-8)
