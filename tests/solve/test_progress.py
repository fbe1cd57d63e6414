"""The line of progress."""

import re

import numpy as np
import pytest
from bowls import RECORD, X0, F, bowl

import cfgd
from cfgd import AdaptiveTerminal

LINE = r"\r\[[#-]{20}\] \d+/\d+  value \S+  norm \S+  \S+ it/s  [\d.]+ s, at most \S+ s left"
PROGRESS = {
    "minimize": (lambda: bowl(max_iterations=7, progress=True), r"7/7  value \S+  norm \S+"),
    "sweep": (
        lambda: cfgd.sweep(
            F,
            X0,
            AdaptiveTerminal(gamma=[-0.3, -0.2, 0.0, 0.1]),
            max_iterations=7,
            tolerance=0,
            record=RECORD,
            progress=True,
        ),
        r"7/7 .*  4 of 4 running",
    ),
}


@pytest.mark.parametrize(("run", "last"), PROGRESS.values(), ids=PROGRESS)
def test_progress(capsys, run, last):
    solution = run()
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.split("\x1b[K")
    assert lines[-1] == "\n"
    for line in lines[:-1]:
        assert re.match(LINE, line)
    assert re.search(last, lines[-2])
    assert f"value {np.min(solution.value):.6g}" in lines[-2]


def test_no_progress_unless_asked_for(capsys):
    bowl(max_iterations=7)
    assert capsys.readouterr() == ("", "")
