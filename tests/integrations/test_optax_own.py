"""optax's own tests, which come with it, with our optimizers in their list."""

import re
import subprocess
import sys
import types
from pathlib import Path

import jax
import pytest
from optax._src import alias
from optax_tests import OURS, with_ours

# a given diagonal: their tests tell `update` nothing of the loss
LIST = (
    {"opt_name": "cfgd", "opt_kwargs": {"learning_rate": 1e-3, "gamma": -0.9, "curvature": 1e3}},
    {"opt_name": "cfadam", "opt_kwargs": {"learning_rate": 1e-1, "curvature": 1.0}},
    {"opt_name": "cfadamw", "opt_kwargs": {"learning_rate": 1e-1, "curvature": 1.0}},
)

theirs = with_ours("alias_test", "_OPTIMIZERS_UNDER_TEST", repr(LIST))
theirs.alias = types.SimpleNamespace(**vars(alias), **OURS)


class TestAliases(theirs.AliasTest):
    """Parabola and Rosenbrock's function, complex ones too; dtypes, states, wrappers, traces."""


for each in dir(TestAliases):
    if each.startswith("test_explicit_dtype"):  # of optax's adam and sgd alone
        setattr(TestAliases, each, None)
    # one number in three, which has each optimizer and each function, is for every day
    kind, _, number = re.match(r"(\w+?)(_?)(\d*)$", each).groups()
    if kind in ("test_optimization", "test_state_shape_dtype_shard_stability") and int(number) % 3:
        setattr(TestAliases, each, pytest.mark.slow(getattr(TestAliases, each)))


def test_they_are_on_ours():
    cases = [name for name in dir(TestAliases) if name.startswith("test_optimization")]
    assert len(cases) == len(LIST) * 2 * 2


@pytest.mark.slow
def test_shardings_stay():
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(folder / "optax_on_eight_devices.py")],
        capture_output=True,
        text=True,
        check=False,
        env={
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "PATH": "",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
