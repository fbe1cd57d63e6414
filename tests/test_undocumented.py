"""Behaviour of other libraries that they do not document and that cfgd or its tests rely on.

This is the one list of it: docs/contributing.md refers to it. Each test names the version that it
was tried with, and fails with a sentence that says what must be changed where.
"""

import ast
import re
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from cfgd._core import compiled
from cfgd.solve import compiling

SRC = Path(__file__).parents[1] / "src" / "cfgd"

# Tried with these versions, and with the lower bounds of pyproject.toml (`make slow`).
TRIED = {
    "beartype": "0.23.1",
    "jax": "0.10.2",
    "jaxtyping": "0.3.11",
    "optax": "0.2.8",
    "pandas": "3.1.1",
    "pyarrow": "26.0.1",
    "torch": "2.13.0",
}


def changed(library, behaviour, remedy):
    """Return the sentence for behaviour that is not there any more."""
    return (
        f"{library} {version(library)} behaves differently from {TRIED[library]}, which was tried: "
        f"{behaviour}. {remedy}"
    )


# ------------------------------------------------------------------ what the library relies on


def test_jax_reports_compilations_under_one_prefix():
    """solve/compiling.py counts the events that start with EVENTS: names are not documented."""
    before = compiling.seconds_compiling()
    jax.jit(lambda x: x * 2.5 + 1)(np.ones(3))
    assert compiling.seconds_compiling() > before, changed(
        "jax",
        f"a compilation is not reported to jax.monitoring under {compiling.EVENTS!r}",
        "See EVENTS in src/cfgd/solve/compiling.py: Solution.seconds would include compiling.",
    )


def test_loops_are_named_in_the_text_of_a_jaxpr():
    """objectives/programs.py compiles residuals with loops as well as XLA can."""
    scan = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, _: (c * x, c), 1.0, None, length=3)[1])
    while_ = jax.make_jaxpr(lambda x: jax.lax.while_loop(lambda c: c < 9, lambda c: c * 2, x))
    named = "scan[" in str(scan(2.0)) and "while[" in str(while_(2.0))
    assert named, changed(
        "jax",
        "the text of a jaxpr does not have 'scan[' and 'while['",
        "See outline_of in src/cfgd/objectives/programs.py: such residuals take twice the time.",
    )


def test_xla_refuses_an_unknown_option_with_known_words():
    """_core/compiled.py leaves out the OPTIONS that XLA does not have."""
    unknown = jax.jit(lambda x: x + 1, compiler_options={"xla_no_such_option": True})
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        unknown(np.ones(2))
    assert "No such compile option: 'xla_no_such_option'" in str(caught.value), changed(
        "jax",
        f"an unknown option of XLA raises {caught.value!s}",
        "See _Program in src/cfgd/_core/compiled.py: every call would fail without the option.",
    )


def test_the_option_of_xla_is_known_or_left_out():
    """The option itself may go: programs are compiled without it, which takes longer."""
    double = compiled.bind(lambda x, y: x + y, jnp.ones(2))
    np.testing.assert_array_equal(double(jnp.ones(2)), 2)


def test_of_several_options_only_those_that_xla_does_not_have_are_left_out(monkeypatch):
    """The other one is still read: it has a value that XLA refuses."""
    monkeypatch.setattr(compiled, "_missing", set())
    options = {"xla_no_such_option": True, "xla_backend_optimization_level": "none"}
    monkeypatch.setitem(compiled.EFFORTS, "quick", options)
    double = compiled.bind(lambda x, y: 2 * x + y, jnp.ones(2), effort="quick")
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_backend_optimization_level"):
        double(jnp.ones(2))
    assert compiled._missing == {"xla_no_such_option"}


def test_jax_refuses_compiler_options_inside_jit_with_known_words():
    """_core/compiled.py calls the program without options where it is traced by another."""
    inner = jax.jit(lambda x: x + 1, compiler_options=compiled.OPTIONS)
    with pytest.raises(ValueError, match="compiler_options") as caught:
        jax.jit(lambda x: inner(x) * 2)(np.ones(2))
    assert "compiler_options" in str(caught.value), changed(
        "jax",
        "jitted functions with compiler_options inside jit raise another error",
        "See _Program in src/cfgd/_core/compiled.py.",
    )


def test_jax_distributed_says_before_where_it_comes_too_late():
    """cfgd.distributed.start() explains the RuntimeError of a late call by that word."""
    jnp.ones(2).block_until_ready()
    with pytest.raises(RuntimeError) as caught:
        jax.distributed.initialize("127.0.0.1:1", num_processes=1, process_id=0)
    assert "before" in str(caught.value), changed(
        "jax",
        f"a late jax.distributed.initialize raises {caught.value!s}",
        "See `start` in src/cfgd/distributed.py.",
    )


def test_pandas_extension_dtypes_name_their_numpy_dtype():
    """_core/arrays.py reads `numpy_dtype` of a column: documented for ArrowDtype alone."""
    pandas = pytest.importorskip("pandas")
    for name, wanted in (("Int64", "int64"), ("Float32", "float32"), ("boolean", "bool")):
        found = getattr(pandas.Series([1, 0], dtype=name).dtype, "numpy_dtype", None)
        assert found == np.dtype(wanted), changed(
            "pandas",
            f"the numpy_dtype of {name} is {found}",
            "See _from_pandas in src/cfgd/_core/arrays.py.",
        )


def test_pyarrow_names_the_column_of_a_conversion_error(tmp_path):
    """apps/fit/csv_table.py reads the number of the column from the message."""
    csv = pytest.importorskip("pyarrow.csv")
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n1,x\n")
    options = csv.ConvertOptions(column_types={"a": pa.int64(), "b": pa.int64()})
    with pytest.raises(pa.ArrowInvalid) as caught:
        csv.read_csv(path, convert_options=options)
    assert re.match(r"In CSV column #1: .*conversion error", str(caught.value)), changed(
        "pyarrow",
        f"a value that is no number raises {caught.value!s}",
        "See _column_with_conversion_error in src/cfgd/apps/fit/csv_table.py.",
    )


def test_torch_has_functions_of_lists():
    """integrations/torch/arithmetic.py calls them; torch documents them as subject to changes."""
    torch = pytest.importorskip("torch")
    text = (SRC / "integrations" / "torch" / "arithmetic.py").read_text()
    names = set(re.findall(r"torch\.(_foreach_\w+)", text))
    missing = sorted(name for name in names if not hasattr(torch, name))
    assert names
    assert not missing, changed(
        "torch", f"{missing} are missing", "See Foreach in src/cfgd/integrations/torch."
    )


# ------------------------------------------------------------------ what the tests rely on


def test_jaxtyping_decorates_by_the_function_that_tests_replace():
    """tests/typecheck.py replaces jaxtyping.jaxtyped, by which the import hook decorates."""
    import cfgd.theory

    of_hook = hasattr(cfgd.theory.best_constants, "__wrapped__")
    assert of_hook, changed(
        "jaxtyping",
        "functions of cfgd are not decorated",
        "See tests/typecheck.py and --jaxtyping-packages in pyproject.toml.",
    )
    assert jaxtyping.jaxtyped.__module__ == "typecheck"


def test_jaxtyping_leaves_a_function_alone_after_some_calls():
    """tests/typecheck.py sets `__no_type_check__`, which jaxtyping reads at every call."""
    from typecheck import CALLS, check_again, checked

    def same(x: float) -> float:
        return x

    of_hook = jaxtyping.jaxtyped(typechecker=checked)(same)
    for _ in range(CALLS):
        assert of_hook(0.5) == 0.5
    assert of_hook("1") == "1", changed(
        "jaxtyping", "every call is checked", "See CALLS in tests/typecheck.py."
    )
    check_again()
    with pytest.raises(jaxtyping.TypeCheckError, match="same"):
        of_hook("1")


def test_beartype_takes_an_int_for_a_float():
    """The numeric tower: tests/typecheck.py asks for it, and for a check at the first call."""
    from typecheck import checked

    def half(x: float) -> float:
        return x / 2

    assert checked(half)(1) == 0.5
    with pytest.raises(Exception, match="half"):
        checked(half)("1")


@pytest.mark.slow
def test_private_modules_that_tests_import_exist():
    """torch's descriptions of optimizers and the tests of optax, which are run with ours."""
    pytest.importorskip("torch")
    pytest.importorskip("expecttest")
    import optax._src
    from torch.testing._internal import common_optimizers

    assert hasattr(common_optimizers, "OptimizerInfo"), changed(
        "torch", "OptimizerInfo is missing", "See tests/integrations/test_torch_optimizer_checks.py"
    )
    assert list(Path(optax._src.__path__[0]).glob("*_test.py")), changed(
        "optax", "its tests are not in the wheel", "See tests/integrations/optax_test_modules.py."
    )


# ------------------------------------------------------------------ the list is complete

# Private names of other libraries that the library may use; each has a test above.
ALLOWED = {"torch._foreach"}
LIBRARIES = (
    *("jax", "jaxlib", "equinox", "numpy", "scipy", "jaxtyping"),
    *("sklearn", "optax", "torch", "lmfit", "pandas", "pyarrow", "matplotlib", "typer", "rich"),
)
ALIASES = {"jnp": "jax.numpy", "np": "numpy", "eqx": "equinox", "pa": "pyarrow", "pc": "pyarrow"}


def private_uses(path):
    """Yield the private names of other libraries that a file imports or reads."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            names = [f"{ALIASES.get(first, first)}.{rest}"]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] in LIBRARIES and any(re.match(r"_[a-z]", part) for part in parts[1:]):
                yield name


def test_no_other_private_name_is_used():
    found = {
        f"{path.relative_to(SRC)}: {name}"
        for path in SRC.rglob("*.py")
        for name in private_uses(path)
        if not any(name.startswith(allowed) for allowed in ALLOWED)
    }
    assert not found, f"private names of other libraries, without a test in this file: {found}"


def test_private_names_are_found(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        "import jax\nimport numpy as np\nfrom sklearn.utils import _param\nimport jax._src.core\n"
        "np._core.f()\njax.core.Tracer\nself._own\n"
    )
    assert sorted(set(private_uses(path))) == [
        *("jax._src.core", "numpy._core", "numpy._core.f", "sklearn.utils._param")
    ]
