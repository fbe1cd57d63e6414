"""Every script under examples/ runs and prints what its entry here says."""

import ast
import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "examples"
SAYS = {
    "fit_and_predict.py": "442 predictions of 'progression' written to:",
    "optax_network.py": "converged after",
    "pytorch.py": "CFGD after 1000 steps: 2",
    "scikit_learn.py": "converged after",
    "several_processes.py": "1 processes, 6 iterations, converged",
    "scipy_minimize.py": "Converged: `x` meets the tolerance.",
}
NEEDS = {"pytorch.py": {"torch": "cfgd[torch]"}}
# of the gallery: lines that are printed on every machine
PROMISES = {
    "between_orders.py": ["order 0.5: -0.0466 at x = 8, where f is 1e-11"],
    "boundary_layer.py": ["start 0: ", "(Auto)", "start 2: "],
    "figure_1.py": [
        "gradient descent                     converged after 92 iterations",
        "adaptive terminal, past (-1, -1)     converged after 4 iterations",
        "adaptive terminal, past (-2, -1)     converged after 28 iterations",
    ],
    "gravity.py": ["Auto              after  6 iterations: error 0.21", "gamma = 0.2: error 0.20"],
    "heat_map.py": ["converged where theory says it diverges: 0 runs", "fastest: 67 at"],
    "logistic_raw.py": ["L-BFGS, standardised", "Auto, raw               2"],
    "moving_path.py": [
        "gradient descent   max_iterations after 150",
        "Auto               converged",
    ],
    "nist_curve_fit.py": ["Fit: converged", "b7            0.049727", "NIST's digits: 10"],
    "order_schedule.py": ["gamma = 0.3    3.35  3.35  2.15", "nearest: the schedule 1.45"],
    "outliers.py": ["cauchy   [1.898 0.255 2.499 1.043] converged"],
    "smoothing.py": ["f:           6 minima", "alpha = 0.6: 3 minima", "alpha = 0.4: 2 minima"],
    "step_network.py": [
        "gradient descent    2000 iterations,  34001 gradients: error 2e-02",
        "Auto",
    ],
    "tikhonov_path.py": ["13 of 13 runs converged", "59.4 at gamma = 0.50, the best"],
}


def test_all_are_here():
    assert sorted(SAYS) == sorted(path.name for path in FOLDER.glob("*.py"))
    assert sorted(PROMISES) == sorted(path.name for path in FOLDER.glob("gallery/*.py"))


@pytest.mark.parametrize("name", SAYS)
def test_an_example(name, capsys):
    for module, extra in NEEDS.get(name, {}).items():
        pytest.importorskip(module, reason=f"{module} is not installed: pip install '{extra}'")
    runpy.run_path(str(FOLDER / name))
    assert SAYS[name] in capsys.readouterr().out


def slurm(index, port):
    """Return the variables that srun sets for one of two processes; the port is in the job id."""
    first = 2**16 - 2**12
    of = {"JOB_ID": port - first, "STEP_NODELIST": "localhost", "NTASKS": 2, "STEP_NUM_NODES": 1}
    return {
        f"SLURM_{name}": str(value)
        for name, value in (of | dict.fromkeys(("PROCID", "LOCALID"), index)).items()
    }


@pytest.mark.slow
def test_the_script_for_several_processes_runs_unchanged_under_slurm():
    for port in range(2**16 - 2**12, 2**16):
        with socket.socket() as one:
            if one.connect_ex(("localhost", port)) != 0:
                break  # nobody listens there
    command = [sys.executable, str(FOLDER / "several_processes.py")]
    both = [
        subprocess.Popen(
            command, env=os.environ | slurm(i, port), stdout=subprocess.PIPE, text=True
        )
        for i in range(2)
    ]
    said = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert "2 processes, 6 iterations, converged" in said[0]
    assert "iterations" not in said[1]


@pytest.mark.parametrize("name", PROMISES)
def test_a_gallery_script_is_short_and_says_what_is_seen(name):
    text = (FOLDER / "gallery" / name).read_text()
    assert len(text.splitlines()) < 60
    title, empty, *sentences = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert title
    assert not title.endswith(".")
    assert not empty
    assert 3 <= len(sentences) <= 9


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISES)
def test_a_gallery_script_draws_what_it_promises(name, tmp_path):
    figure = tmp_path / name.replace(".py", ".gif" if name == "moving_path.py" else ".png")
    command = [sys.executable, "-W", "error", str(FOLDER / "gallery" / name), str(figure)]
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for promise in PROMISES[name]:
        assert promise in done.stdout
    assert_is_a_figure(figure)


def assert_is_a_figure(path):
    """Check that a picture is 700 pixels wide, light and not empty, and that a GIF moves."""
    from PIL import Image

    with Image.open(path) as image:
        moves = getattr(image, "n_frames", 1)
        image.seek(moves - 1)
        pixels = np.asarray(image.convert("RGB"), float)
    assert pixels.shape[1] >= 700
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()
    assert 0.01 < np.mean(pixels.min(2) < 200) < 0.7
    assert (moves > 20) == (path.suffix == ".gif")
