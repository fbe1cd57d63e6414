"""The wheel and the source distribution: what is in them, and that they work where nothing is."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
WORKFLOWS = ROOT / ".github" / "workflows"
USE = """
import cfgd
print(cfgd.__version__, cfgd.__file__)
print(cfgd.minimize(lambda x: (x[0] - 3) ** 2 + x[1] ** 2, [0.0, 1.0]).x.round(6))
"""


def read(path):
    yaml = pytest.importorskip("yaml", reason="comes with cfgd[docs]")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_python_versions_are_stated_once():
    """Those that were tried: in the metadata, in the workflows, in the README."""
    stated = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if " :: 3." in each]
    assert PROJECT["requires-python"] == f">={stated[0]}"
    for name, job in (("test.yml", "test"), ("release.yml", "check")):
        matrix = read(WORKFLOWS / name)["jobs"][job]["strategy"]["matrix"]
        assert matrix["python"] == stated
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {', '.join(stated[:-1])} or {stated[-1]}" in readme


def test_a_release_is_checked_before_it_is_published():
    jobs = read(WORKFLOWS / "release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "check"
    assert jobs["check"]["needs"] == "build"
    # and no password
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert jobs["publish"]["if"] == "github.event_name == 'push'"


def test_actions_are_pinned_by_hash():
    """A tag can be moved to other code, the hash of a commit cannot."""
    used = [
        line.partition("uses: ")[2]
        for path in WORKFLOWS.glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses: " in line
    ]
    assert len(used) > 10
    for each in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+(\.\d+)*", each), each
    assert len({each.partition("@")[0] for each in used}) == len(set(used))  # one version of each


def test_hooks_before_a_commit_have_the_versions_of_make_lint():
    repos = read(ROOT / ".pre-commit-config.yaml")["repos"]
    ruff = next(each["rev"] for each in repos if each["repo"].endswith("/ruff-pre-commit"))
    (wanted,) = [each for each in EXTRAS["lint"] if each.startswith("ruff")]
    assert Version(ruff) in Requirement(wanted).specifier
    zizmor = next(each["rev"] for each in repos if each["repo"].endswith("/zizmor-pre-commit"))
    workflow = (WORKFLOWS / "test.yml").read_text(encoding="utf-8")
    assert f"zizmor=={zizmor.removeprefix('v')}\n" in workflow


def test_forms_and_citation_can_be_read():
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        if form.name != "config.yml":
            assert {"name", "description", "body"} <= set(read(form))
    citation = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
    assert citation["version"] == PROJECT["version"]


def test_recipe_for_conda_asks_for_what_the_package_asks_for():
    recipe = read(ROOT / "recipe" / "recipe.yaml")
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["context"]["python_min"] == PROJECT["requires-python"].removeprefix(">=")
    runs = {"".join(each.split()) for each in recipe["requirements"]["run"]}
    assert runs == {f"python>={PROJECT['requires-python'][2:]}", *PROJECT["dependencies"]}
    assert recipe["about"]["summary"] == PROJECT["description"]


def said(*arguments, **given):
    done = subprocess.run(arguments, capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Both, built with what is installed: nothing is to_host."""
    folder = tmp_path_factory.mktemp("dist")
    said(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), cwd=ROOT)
    return folder


@pytest.mark.slow
def test_what_is_in_them(built):
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert "cfgd/py.typed" in names
    assert "cfgd/apps/data/nist.json" in names
    inside = {Path(name).parts[0] for name in names}
    assert inside == {"cfgd", f"cfgd-{PROJECT['version']}.dist-info"}
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "README.md", "CITATION.cff", "docs/index.md", "tests/conftest.py"):
        assert name in inside
    assert not any(name.startswith(("build/", "docs/gallery", ".venv")) for name in inside)


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_of_its_own(built, tmp_path):
    """With the packages that are here, but not with the source, which stands elsewhere."""
    said(sys.executable, "-m", "venv", "--system-site-packages", str(tmp_path / "env"))
    python = tmp_path / "env" / "bin" / "python"
    if sys.prefix != sys.base_prefix:  # a venv has the packages of the base, and not of this one
        (place,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
        (here,) = (Path(sys.prefix) / "lib").glob("python*/site-packages")
        (place / "others.pth").write_text(str(here))
    (wheel,) = built.glob("*.whl")
    given = ("--no-deps", "--no-index", "--force-reinstall", "--quiet")
    said(str(python), "-m", "pip", "install", *given, str(wheel))
    first, second = said(str(python), "-c", USE, cwd=tmp_path, env={}).splitlines()
    assert first.startswith(f"{PROJECT['version']} {tmp_path}")
    assert second == "[3. 0.]"
    command = tmp_path / "env" / "bin" / "cfgd"
    assert said(str(command), "--version", cwd=tmp_path, env={}) == f"cfgd {PROJECT['version']}\n"
    assert "make docs" in said(str(command), "--help", cwd=tmp_path, env={})
