"""A process that is killed with SIGKILL resumes from its checkpoint bit for bit."""

import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytestmark = pytest.mark.slow


SCRIPT = """
import sys, numpy as np, cfgd
random = np.random.default_rng(5)
B = random.normal(size=(40, 40))
f = cfgd.Quadratic(B @ B.T / 40 + 1e-5 * np.eye(40), random.normal(size=40))
options = dict(max_iterations=150_000, tolerance=0, every=1000)
options |= dict(checkpoint=sys.argv[2], checkpoint_every=0)
if sys.argv[1] == "run":
    end = cfgd.minimize(f, np.ones(40), cfgd.AdaptiveTerminal(gamma=-0.2), **options)
else:
    end = cfgd.sweep(f, np.ones(40), cfgd.AdaptiveTerminal(gamma=[-0.2, 0.0]), **options)
np.savez(sys.argv[3], x=end.x, end=end.value, **end.history)
"""


def killed_until_done(kind, folder, moments):
    """Return the results, and how often the process was killed before it had ended."""
    script = [sys.executable, "-c", SCRIPT, kind, str(folder / "run.npz"), str(folder / "end.npz")]
    kills = 0
    for moment in moments:
        process = subprocess.Popen(script)
        try:
            process.wait(moment)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    else:
        subprocess.run(script, check=True, timeout=900)
    with np.load(folder / "end.npz") as end:
        return dict(end), kills


def check_kills(kind, number, tmp_path):
    (tmp_path / "whole").mkdir()
    began = time.perf_counter()
    whole, _ = killed_until_done(kind, tmp_path / "whole", [])
    takes = time.perf_counter() - began
    moments, killed = np.random.default_rng(2), 0
    while killed < number:
        shutil.rmtree(tmp_path / "part", ignore_errors=True)
        (tmp_path / "part").mkdir()
        each = moments.uniform(0.3, 1.1, size=min(5, number - killed)) * takes
        found, kills = killed_until_done(kind, tmp_path / "part", each)
        killed += max(kills, 1)
        assert sorted(found) == sorted(whole)
        for name, entry in whole.items():
            np.testing.assert_array_equal(found[name], entry, err_msg=name)


def test_killed_at_a_random_moment(tmp_path):
    check_kills("run", 1, tmp_path)


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_killed_at_thirty_random_moments(kind, tmp_path):
    check_kills(kind, 30, tmp_path)
