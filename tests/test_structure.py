"""The structure of the code: which way data flows, what is exported, what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cfgd

SOURCE = Path(cfgd.__file__).parent
MOST_LINES = 350

# From the ground up: a module imports from lower layers only. A package counts as one module.
LAYERS = (
    {"_check", "rule"},
    {"precision"},
    {"structure", "calculus"},
    {"objective"},
    {"best"},
    {"direction", "terminal", "order", "step", "iteration", "fitting"},
    {"span"},
    {"gradient", "method", "auto"},
    {"solution", "progress"},
    {"options", "chunk"},
    {"run"},
    {"solve"},
    {"__init__"},
    {"integrations", "reproduce"},
    {"bench"},
    {"cli"},
    {"__main__"},
)
# what must not be reached at all, not even through others
FORBIDDEN = {
    "theory": set().union(*LAYERS),  # a bound must not depend on the code that it judges
    "calculus": {"objective", "direction", "step", "method", "solve"},
    "objective": {"direction", "terminal", "order", "step", "method", "solve"},
    "direction": {"terminal", "order", "step", "method", "solve"},
    "step": {"direction", "method", "solve"},
    "method": {"chunk", "run", "solve", "solution", "options"},
    "auto": {"chunk", "run", "solve", "solution", "options"},
}
LAYER = {name: i for i, names in enumerate(LAYERS) for name in names}
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}


def module_of(path):
    """The module or top-level package that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def is_module(name):
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()


def imports_of(path):
    """The modules of cfgd that a file imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for parts in (name.split(".") for name in names):
            if parts[0] == "cfgd":
                inside = len(parts) > 1 and is_module(parts[1])
                found.add(parts[1] if inside else "__init__")
    return found


GRAPH: dict[str, set[str]] = {}
for each in FILES.values():
    GRAPH.setdefault(module_of(each), set()).update(imports_of(each) - {module_of(each)})


def reached_from(module):
    seen, ahead = set(), [module]
    while ahead:
        for name in GRAPH.get(ahead.pop(), ()):
            if name not in seen:
                seen.add(name)
                ahead.append(name)
    return seen


def test_every_module_has_its_layer():
    assert set(GRAPH) - {"theory"} <= set(LAYER)
    assert sum(map(len, LAYERS)) == len(LAYER)


@pytest.mark.parametrize("module", sorted(set(GRAPH) - {"theory"}))
def test_data_flows_one_way(module):
    upward = {name for name in GRAPH[module] - {"theory"} if LAYER.get(name, 99) >= LAYER[module]}
    assert not upward


@pytest.mark.parametrize(("module", "forbidden"), FORBIDDEN.items(), ids=FORBIDDEN)
def test_what_a_module_must_not_know(module, forbidden):
    assert not reached_from(module) & forbidden


def test_the_graph_is_read_right():
    """Some arrows that are there, of each way to write an import."""
    assert "objective" in GRAPH["direction"]
    assert {"_check", "terminal", "direction"} <= GRAPH["method"]
    assert "run" in GRAPH["solve"]
    assert {"theory", "solve"} <= GRAPH["__init__"]
    assert "objective" in reached_from("solve")
    assert not GRAPH["theory"]


def test_the_base_of_the_objectives_knows_none_of_them():
    for name in ("base.py",):
        tree = ast.parse((SOURCE / "objective" / name).read_text())
        siblings = [
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module.startswith("cfgd.objective")
        ]
        assert not siblings


# the public surface; a new name is added here with its code
PUBLIC = {
    "calculus": {"caputo", "smoothing", "gauss_jacobi", "fractional_gradient"},
    "objectives": {
        "Objective",
        "Quadratic",
        "LeastSquares",
        "LinearModel",
        "ShallowNetwork",
        "Smooth",
        "Local",
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
    "solving": {"minimize", "sweep", "Solution", "Status", "ConvergenceError"},
    "theory": {"theory"},
}


def test_exports():
    body = ast.parse((SOURCE / "__init__.py").read_text()).body
    docstring, imports = body[0], body[1:]
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(node, ast.ImportFrom) for node in imports)  # re-exports only
    aliases = [alias for node in imports for alias in node.names]
    assert all(alias.name == alias.asname for alias in aliases)
    names = [alias.name for alias in aliases]
    assert sorted(names) == sorted(set().union(*PUBLIC.values()))
    assert all(hasattr(cfgd, name) for name in names)


def test_everything_exported_has_a_docstring():
    for name in set().union(*PUBLIC.values()):
        assert (getattr(cfgd, name).__doc__ or "").strip(), name


EXTRAS = ("matplotlib", "sklearn", "optax", "torch", "pandas", "mpmath", "pycaputo")


def test_the_import_brings_in_no_extra():
    code = f"import sys, cfgd; print(*[name for name in {EXTRAS} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        env={"PYTHONPATH": str(SOURCE.parent), "PATH": ""},
    )
    assert done.stdout.strip() == ""
    assert done.stderr == ""


@pytest.mark.parametrize("path", FILES.values(), ids=FILES)
def test_no_file_is_long(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES
