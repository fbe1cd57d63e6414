"""Damaged files on every reader: a normal result, or one sentence of cfgd's own, and no crash."""

import subprocess
import sys
from pathlib import Path

import pytest
from readers import READERS, reader

pytestmark = pytest.mark.every_case

MUTATIONS, FEW = 500, 12
SECONDS = 1200  # for all mutations of a reader: one that does not end is a failure
WORKER = Path(__file__).with_name("fuzz_worker.py")


@pytest.mark.parametrize("name", READERS)
def test_a_few_damaged_files(name, tmp_path, unchecked):
    tested = reader(name, tmp_path)
    problems = {n: tested.problem(n) for n in range(FEW)}
    assert not {n: problem for n, problem in problems.items() if problem is not None}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is that of Linux")
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files_in_a_process_of_their_own(name, tmp_path):
    command = [sys.executable, str(WORKER), name, str(tmp_path), "0", str(MUTATIONS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = done.stdout.splitlines()
    tried = [line for line in lines if line.startswith("mutation")]
    assert done.returncode == 0, (
        f"ended by {done.returncode} at {tried[-1:]}: {done.stderr[-2000:]}"
    )
    assert len(tried) == MUTATIONS
    assert "failed" not in done.stdout, done.stdout[done.stdout.index("failed") :][:3000]
