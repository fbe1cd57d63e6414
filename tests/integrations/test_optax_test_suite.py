"""optax's tests, which its package contains, run with cfgd's optimizers."""

import re
import subprocess
import sys
import types
from pathlib import Path

import jax
import pytest
from optax._src import alias
from optax_test_modules import OPTIMIZERS, with_optimizers

pytestmark = pytest.mark.slow

# with a given diagonal, because optax's tests do not pass a loss to `update`
LIST = (
    {"opt_name": "cfgd", "opt_kwargs": {"learning_rate": 1e-3, "gamma": -0.9, "curvature": 1e3}},
    {"opt_name": "cfadam", "opt_kwargs": {"learning_rate": 1e-1, "curvature": 1.0}},
    {"opt_name": "cfadamw", "opt_kwargs": {"learning_rate": 1e-1, "curvature": 1.0}},
)

suite = with_optimizers("alias_test", "_OPTIMIZERS_UNDER_TEST", repr(LIST))
suite.alias = types.SimpleNamespace(**vars(alias), **OPTIMIZERS)


class TestAliases(suite.AliasTest):
    """optax's tests of aliases: real and complex problems, dtypes, states, wrappers, traces."""


for each in dir(TestAliases):
    if each.startswith("test_explicit_dtype"):  # for optax's adam and sgd only
        setattr(TestAliases, each, None)
    # every third case, which covers each optimizer and each function; the others are slow
    kind, _, number = re.match(r"(\w+?)(_?)(\d*)$", each).groups()
    if kind in ("test_optimization", "test_state_shape_dtype_shard_stability") and int(number) % 3:
        setattr(TestAliases, each, pytest.mark.slow(getattr(TestAliases, each)))


def test_suite_contains_every_optimizer():
    cases = [name for name in dir(TestAliases) if name.startswith("test_optimization")]
    assert len(cases) == len(LIST) * 2 * 2


@pytest.mark.slow
def test_shardings_do_not_change():
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
