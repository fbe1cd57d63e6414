"""docs/fractional.md and its data: every number of the page is one of the data."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cfgd import zoo
from cfgd.apps.bench.fractional.competitors import BASELINES, LBFGS, RULES
from cfgd.apps.bench.fractional.conclusions import Comparison, sentences
from cfgd.apps.bench.fractional.problems import FractionalProblem
from cfgd.apps.bench.fractional.saved import JUDGED
from cfgd.apps.bench.fractional.tables import as_csv, markdown

DOCS = Path(__file__).parents[3] / "docs"
UPDATE = "run `cfgd bench --fractional --data FILE` and put its files into docs/"


def unpacked(name):
    return gzip.decompress((DOCS / "data" / name).read_bytes()).decode()


@pytest.fixture(scope="module")
def data():
    return json.loads(unpacked("fractional.json.gz"))


@pytest.fixture(scope="module")
def comparison(data):
    kept = ("name", "group", "what", "gradients", "accuracy", "batch")
    problems = [
        FractionalProblem(**{key: p[key] for key in kept}, make=lambda seed: None)
        for p in data["problems"]
    ]
    results = {
        p["name"]: {rule: JUDGED(one, rule) for rule, one in p["rules"].items()}
        for p in data["problems"]
    }
    baselines = [*(one.name for one in BASELINES), LBFGS]
    return Comparison(problems, [one.name for one in RULES], baselines, results)


def test_the_data_are_those_of_the_grids_of_today(data):
    grids = {
        one.name: {"names": list(one.names), "settings": [list(s) for s in one.settings]}
        for one in (*RULES, *BASELINES)
    }
    assert data["grids"] == grids, UPDATE
    assert (data["size"], data["seeds"]) == ("full", [0, 1, 2, 3, 4])
    assert not set(data["seeds"]) & set(data["tuning_seeds"])


def test_the_two_files_have_the_same_results(comparison):
    assert unpacked("fractional.csv.gz") == as_csv(comparison), UPDATE


def words(text):
    """The text without marks of Markdown and line breaks; the table cells stay as they are."""
    return " ".join(text.replace("**", "").replace("`", "").split())


def test_the_page_has_the_sentences_of_the_data(comparison):
    page = words((DOCS / "fractional.md").read_text())
    for sentence in sentences(comparison):
        assert words(sentence) in page, UPDATE


def test_the_page_has_the_tables_of_the_data(comparison, data):
    page = (DOCS / "fractional.md").read_text()
    assert words(data["how"]) in words(page), UPDATE
    made = markdown(comparison, [*RULES, *BASELINES], [], "").splitlines()
    rows = {line for line in page.splitlines() if line.startswith("|")}
    missing = [line for line in made if line.startswith("|") and line not in rows]
    assert not missing, UPDATE


def test_the_page_says_on_how_many_problems(comparison):
    page = (DOCS / "fractional.md").read_text()
    assert f"from {len(comparison.problems)} problems at equal gradients" in page


def test_the_pages_count_the_rules_and_classes_of_the_zoo():
    classes = [
        getattr(zoo, name) for name in zoo.__all__ if name not in ("UpdateRule", "parameter")
    ]
    assert (len({one.number for one in classes}), len(classes)) == (16, 19)
    for page in ("fractional.md", "reference/zoo.md"):
        text = words((DOCS / page).read_text())
        assert "sixteen" in text
        assert "nineteen classes" in text
