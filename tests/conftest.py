"""Settings of all tests: executed annotations, a cache of compiled programs, the quick cases."""

import gc
import os
import re
from importlib.metadata import version
from pathlib import Path

# Two workers share two cores: threads of OpenBLAS that wait for one another doubled the time of
# eigenvalue computations. NumPy reads the variable when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Programs of this size do not run faster after the optimisations of XLA, which take half of the
# compile time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    # a flag that a version does not have ends the process; to split a small program into parts that
    # are compiled by several threads took a tenth of the compile time
    + " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    * version("jaxlib").startswith(("0.8.", "0.9.", "0.10.")),
)

import jax
import jaxtyping
import pytest

import typecheck

# Tracing creates millions of objects with few reference cycles: frequent collections took a tenth
# of the time.
gc.set_threshold(200_000, 20, 100)

# Most of the time of a test is compilation: a compiled program is stored here for the other worker
# and the next run. `make clean` removes it.
CACHE = Path(__file__).parents[1] / ".jax_cache"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


# src has a conftest, too, and two modules of one name cannot be collected for doctests
collect_ignore = ["conftest.py"]

# Bytes of a worker at which it clears its compiled programs, those of all tests being 3 GB; and by
# how many more it may have grown when it clears the next ones. Memory that was cleared is used
# again, but does not go back to the system.
MOST_MEMORY, GROWTH = 1.5e9, 0.3e9


@pytest.fixture(scope="session")
def _memory():
    """Return the bytes at which programs are cleared next."""
    return {"most": MOST_MEMORY}


@pytest.fixture(scope="module", autouse=True)
def _bounded_memory(_memory):
    """Clear the compiled programs of other modules where a worker holds many."""
    yield
    if _resident() > _memory["most"]:
        jax.clear_caches()
        _memory["most"] = _resident() + GROWTH


def _resident() -> float:
    """Return the resident bytes of this process; 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


# A module whose tests are all slow says so with a line that starts like this.
ALL_SLOW = re.compile(r"^pytestmark = .*pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """Leave modules whose tests are all slow unread in `make test`: importing takes seconds."""
    if collection_path.suffix != ".py" or config.option.markexpr != "not slow":
        return None
    return True if ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by the marks
def pytest_collection_modifyitems(items):
    """Leave all cases but the first and the last of a parametrised test to `make slow`.

    A test that is marked `every_case` keeps all of them. One that is marked `one_case`, because
    each case compiles programs of its own, keeps the first alone.

    Annotations do not depend on numbers: only the first case of a test executes them.
    """
    tests = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        quick = [case for case in cases if case.get_closest_marker("slow") is None]
        for i, case in enumerate(quick):
            is_last = i == len(quick) - 1 and case.get_closest_marker("one_case") is None
            if i > 0 and not is_last and case.get_closest_marker("every_case") is None:
                case.add_marker(pytest.mark.slow)
        for case in cases[1:]:
            if "unchecked" not in case.fixturenames:
                case.fixturenames.append("unchecked")


@pytest.fixture(autouse=True)
def _checked():
    """Execute annotations anew in each test."""
    typecheck.check_again()


@pytest.fixture
def unchecked():
    """Do not execute annotations: for arguments that a user without a type checker may pass."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
