"""Every script under examples/ runs, and ends with what it promises."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
SAYS = {
    "fit_and_predict.py": "442 predictions of 'progression':",
    "optax_network.py": "converged after",
    "pytorch.py": "CFGD after 1000 steps: 2",
    "scikit_learn.py": "converged after",
    "scipy_minimize.py": "Converged: `x` meets the tolerance.",
}
NEEDS = {"pytorch.py": {"torch": "cfgd[torch]"}}


def test_all_are_here():
    assert sorted(SAYS) == sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", SAYS)
def test_an_example(name, capsys):
    for module, extra in NEEDS.get(name, {}).items():
        pytest.importorskip(module, reason=f"{module} is not installed: pip install '{extra}'")
    runpy.run_path(str(FOLDER / name))
    assert SAYS[name] in capsys.readouterr().out
