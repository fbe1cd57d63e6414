"""The structure of the code: which way data flows, what is exported, what an import costs."""

import ast
import functools
import importlib
import importlib.metadata
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cfgd

pytestmark = pytest.mark.every_case

SOURCE = Path(cfgd.__file__).parent
MOST_LINES = 400

# In the order of the arrows: a package imports from itself and from the packages before it only.
PACKAGES = {
    "core": {"_core", "status", "theory"},
    "processes": {"distributed"},
    "calculus": {"calculus"},
    "objectives": {"objectives"},
    "methods": {"methods"},
    "zoo": {"zoo"},
    "solve": {"solve"},
    "fitting": {"fitting"},
    "surface": {"__init__"},  # what `import cfgd` gives
    "integrations": {"integrations"},
    "apps": {"apps"},
    "command": {"__main__"},
}
LAYER = {name: i for i, names in enumerate(PACKAGES.values()) for name in names}
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}


def module_of(path):
    """The module or top-level package that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def is_module(name):
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()


@functools.cache
def nodes_of(path):
    """The imports and names in a file, at any depth of its code."""
    kept = ast.Import | ast.ImportFrom | ast.Name
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kept)]


def imports_of(path):
    """The modules of cfgd that a file imports, at any depth of its code."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue  # a name
        for parts in (name.split(".") for name in names):
            if parts[0] == "cfgd":
                inside = len(parts) > 1 and is_module(parts[1])
                found.add(parts[1] if inside else "__init__")
    return found


def files_imported(path):
    """The files of cfgd that a file imports when it is imported itself."""
    found = set()
    for node in nodes_of(path):
        is_at_top = isinstance(node, ast.ImportFrom) and node.col_offset == 0
        if not is_at_top or not node.module.startswith("cfgd"):
            continue
        folder = "/".join(node.module.split(".")[1:])
        for alias in node.names:
            tries = (f"{folder}/{alias.name}.py", f"{folder}.py", f"{folder}/__init__.py")
            found.add(next((one.lstrip("/") for one in tries if one.lstrip("/") in FILES), None))
    return found - {None}


@functools.cache
def graph():
    """The modules of cfgd that each of them imports."""
    found: dict[str, set[str]] = {}
    for path in FILES.values():
        found.setdefault(module_of(path), set()).update(imports_of(path) - {module_of(path)})
    return found


def reached_from(module):
    seen, ahead = set(), [module]
    while ahead:
        for name in graph().get(ahead.pop(), ()):
            if name not in seen:
                seen.add(name)
                ahead.append(name)
    return seen


def test_every_module_has_its_room():
    assert set(graph()) <= set(LAYER)


@pytest.mark.parametrize("module", sorted({module_of(path) for path in FILES.values()}))
def test_data_flows_one_way(module):
    allowed = {name for name, layer in LAYER.items() if layer < LAYER[module]}
    also = {"_core", "status"} if module == "_core" else set()
    assert graph()[module] <= allowed | also


def test_no_file_needs_itself():
    """Inside a package too: whoever reads the files in some order meets nothing unknown."""
    needs = {name: files_imported(path) - {name} for name, path in FILES.items()}
    while leaves := {name for name, files in needs.items() if not files}:
        needs = {name: files - leaves for name, files in needs.items() if name not in leaves}
    assert not needs


def test_a_bound_does_not_depend_on_the_code_that_it_judges():
    assert not graph()["theory"]


def test_the_graph_is_read_right():
    """Some arrows that are there, of each way to write an import."""
    assert {"_core", "calculus", "objectives", "theory"} <= graph()["methods"]
    assert {"theory", "solve", "methods"} <= graph()["__init__"]
    assert "objectives" in reached_from("solve")
    assert "methods" not in reached_from("objectives")
    assert "objectives/evaluation.py" in files_imported(FILES["objectives/base.py"])
    assert "methods/paper/order.py" in files_imported(FILES["methods/__init__.py"])


def test_no_app_is_imported_by_the_library():
    library = set(LAYER) - {"apps", "__main__"}
    assert not [module for module in library if "apps" in graph().get(module, ())]


# a rule of each kind is one file and the export: nobody else asks what it is
RULES = {
    "methods/paper/terminal.py": {"CurrentPoint", "Fixed", "Lagged"},
    "methods/paper/order.py": {"Constant", "Stages"},
    "methods/paper/step.py": {"FixedStep", "ExactStep", "GridStep", "ArmijoStep"},
    "methods/paper/network_step.py": {"NetworkStep"},
}
PUT_TOGETHER = {
    "methods/paper/presets.py",
    *(name for name in FILES if name.endswith("__init__.py")),
}


@pytest.mark.parametrize("file", RULES)
def test_rules_are_known_by_what_they_say_and_not_by_name(file):
    """Only the presets, which put rules together, and the exports name them."""
    packages = ("objectives/", "methods/", "solve/")
    asked = {name for name in FILES if name.startswith(packages)} - PUT_TOGETHER - {file}
    for name in asked:
        nodes = nodes_of(FILES[name])
        assert not {node.id for node in nodes if isinstance(node, ast.Name)} & RULES[file]


# the public surface; a new name is added here with its code
PUBLIC = {
    "calculus": {"caputo", "smoothing", "gauss_jacobi", "fractional_gradient"},
    "objectives": {
        "Objective",
        "Quadratic",
        "LeastSquares",
        "LinearModel",
        "Residuals",
        "ResidualTerms",
        "ShallowNetwork",
        "Smooth",
        "Blocks",
        "External",
        "Local",
        "GradientCheck",
        "check_gradient",
    },
    "methods": {
        "GradientDescent",
        "NonAdaptive",
        "AdaptiveTerminal",
        "AdaptiveOrder",
        "Stage",
        "Auto",
    },
    "steps": {"ExactStep", "FixedStep", "GridStep", "ArmijoStep", "NetworkStep"},
    "rules": {"Fractional", "terminal", "order", "StepRule", "Chosen", "settings"},
    "solving": {
        "argmin",
        "minimize",
        "sweep",
        "Resample",
        "Solution",
        "Status",
        "ConvergenceError",
    },
    "fitting": {"curve_fit", "curve_fit_many", "Fit", "Fits", "Parameter", "Parameters"},
    "theory": {"theory"},
    "zoo": {"zoo"},
    "processes": {"distributed"},
}


def test_exports():
    body = ast.parse((SOURCE / "__init__.py").read_text()).body
    (checked,) = [node for node in body if isinstance(node, ast.If)]  # if TYPE_CHECKING
    assert all(isinstance(node, ast.ImportFrom) for node in checked.body)  # re-exports only
    aliases = [alias for node in checked.body for alias in node.names]
    assert all(alias.name == alias.asname for alias in aliases)
    names = sorted(set().union(*PUBLIC.values()))
    assert sorted(alias.name for alias in aliases) == names
    assert sorted(cfgd.__all__) == names
    assert dir(cfgd) == sorted(["__version__", *names])
    # what is found when it is asked for is what a type checker reads
    for node in checked.body:
        for alias in node.names:
            found = getattr(importlib.import_module(node.module), alias.name)
            assert getattr(cfgd, alias.name) is found


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match=r"^module 'cfgd' has no attribute 'minimise'$"):
        _ = cfgd.minimise


def test_the_version_is_the_one_of_the_project():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    assert cfgd.__version__ == project["version"]


def test_the_sources_need_no_installation(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert runpy.run_path(str(SOURCE / "_core/version.py"))["__version__"] == "unknown"


def test_everything_exported_has_a_docstring():
    for name in set().union(*PUBLIC.values()):
        assert (getattr(cfgd, name).__doc__ or "").strip(), name


EXTRAS = (
    "matplotlib",
    "sklearn",
    "optax",
    "torch",
    "lmfit",
    "pandas",
    "pyarrow",
    "mpmath",
    "pycaputo",
)


@functools.cache
def imported_in_a_new_python():
    """Print the packages in memory after the import, after one name, and after all names."""
    packages = "print(*{name for name in sys.modules if '.' not in name})"
    code = f"import sys, cfgd\n{packages}\ncfgd.caputo\n{packages}\nfrom cfgd import *\n{packages}"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        env={"PYTHONPATH": str(SOURCE.parent), "PATH": ""},
    )


def test_the_import_alone_loads_no_jax():
    """So that PyTorch users need none of it; a name of the library loads what it needs."""
    alone, with_a_name, _ = imported_in_a_new_python().stdout.splitlines()
    assert "jax" not in alone.split()
    assert "jax" in with_a_name.split()


def test_the_import_brings_in_no_extra():
    done = imported_in_a_new_python()
    assert not set(EXTRAS) & set(done.stdout.split())
    assert done.stderr == ""


def lines_of_code(path):
    """Count the lines without those of docstrings, whose sections are tables of the reference."""
    text = path.read_text()
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    documented = (each for each in ast.walk(ast.parse(text)) if isinstance(each, kinds))
    first = (each.body[0] for each in documented if ast.get_docstring(each, clean=False))
    return len(text.splitlines()) - sum(each.end_lineno - each.lineno + 1 for each in first)


def test_no_file_is_long():
    lengths = {name: lines_of_code(path) for name, path in FILES.items()}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


def test_lines_of_docstrings_are_not_counted(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""One.\n\nTwo.\n"""\nx = """a\nb"""\n\n\ndef f():\n    """One."""\n    return 1\n'
    )
    assert lines_of_code(path) == 6
