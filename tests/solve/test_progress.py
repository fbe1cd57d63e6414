"""The progress line."""

import re

import numpy as np
import pytest
from bowls import RECORD, X0, F, bowl
from fake_clock import fake_clock

import cfgd
from cfgd import AdaptiveTerminal
from cfgd.solve.progress import Progress

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


@pytest.mark.slow
@pytest.mark.parametrize(("run", "last"), PROGRESS.values(), ids=PROGRESS)
def test_progress(run, last, capsys):
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


def test_the_line_is_written_at_most_ten_times_a_second(capsys):
    with fake_clock() as clock:
        progress = Progress(200, shown=True)
        for iteration in range(100):
            progress.update(iteration, "value 1")
            clock.advance(1 / 64)
        progress.close(100, "value 1")
    written = [int(each) for each in re.findall(r"(\d+)/200", capsys.readouterr().err)]
    assert written == [*range(0, 100, 7), 100]  # 7/64 of a second is the first time beyond 0.1


def test_the_content_of_the_line(capsys):
    with fake_clock() as clock:
        progress = Progress(200, shown=True)
        progress.update(0, "value 3  norm 1")
        clock.advance(2.0)
        progress.close(50, "value 0.123457  norm 0.001", "  3 of 4 running")
    first, last, end = capsys.readouterr().err.split("\x1b[K")
    assert first == f"\r[{'-' * 20}] 0/200  value 3  norm 1  0 it/s  0.0 s, at most inf s left"
    assert last == (
        "\r[#####---------------] 50/200  value 0.123457  norm 0.001  25 it/s  "
        "2.0 s, at most 6.0 s left  3 of 4 running"
    )
    assert end == "\n"
