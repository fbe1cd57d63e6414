"""Tables by functions that they do not keep alive."""

import gc
import subprocess
import sys

import equinox as eqx
import jax
import numpy as np

from cfgd._core.weak_table import WeakTable


class Scaled(eqx.Module):
    fn: object
    factor: np.ndarray


def test_equal_modules_have_one_value_and_arrays_count_by_their_shape():
    table = WeakTable()
    fn = lambda x: x  # noqa: E731
    first = table.of(Scaled(fn, np.ones(3)), list)
    assert table.of(Scaled(fn, np.zeros(3)), list) is first
    assert table.of(Scaled(fn, np.ones(2)), list) is not first
    assert table.of(Scaled(fn, np.ones(3, np.float32)), list) is not first
    assert table.of(Scaled(lambda x: x, np.ones(3)), list) is not first


def test_a_value_goes_with_its_function():
    table = WeakTable()

    def learn():
        data = np.ones(1000)
        table.of(Scaled(lambda x: x + data, np.ones(3)), list)

    learn()
    gc.collect()
    assert not table._values


def test_what_jax_traces_is_not_remembered():
    table, fn = WeakTable(), abs
    found = []
    jax.make_jaxpr(lambda x: found.append(table.of(Scaled(fn, x), list)) or x)(np.ones(3))
    assert table.of(Scaled(fn, np.ones(3)), list) is not found[0]
    assert len(table._values) == 1


def test_a_bound_method_does_not_keep_its_object_alive():
    table = WeakTable()

    class Model:
        def residuals(self, x):
            return x

    model = Model()
    assert table.of(model.residuals, list) is not table.of(model.residuals, list)
    assert not table._values


def test_functions_that_are_freed_at_the_end_of_the_process_cause_no_error():
    """With type checks, as in these tests, `_forget` needs modules that may be gone by then."""
    code = (
        "from jaxtyping import install_import_hook\n"
        "install_import_hook(['cfgd'], 'beartype.beartype').__enter__()\n"
        "from cfgd._core.weak_table import WeakTable\n"
        "def f(x): return x\n"
        "table = WeakTable()\n"
        "table.setdefault(table.references([f]), None, 1)\n"
        "table.itself = table\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ""
