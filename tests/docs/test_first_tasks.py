"""Five first tasks of a new user, each written with nothing but what its page says."""

import runpy
from pathlib import Path

import pytest
from blocks import ROOT

FOLDER = Path(__file__).parent / "first_tasks"
TASKS = sorted(FOLDER.glob("*.py"))


def test_there_are_five():
    assert len(TASKS) == 5


@pytest.mark.every_case
@pytest.mark.usefixtures("unchecked")  # as a user runs them
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.stem)
def test_a_first_task(task):
    """It asserts the known answer, and names pages that exist."""
    pages = [
        word.strip(":,.") for word in task.read_text().split('"""')[1].split() if ".md" in word
    ]
    assert pages
    assert all((ROOT / page).exists() or (ROOT / "docs/guides" / page).exists() for page in pages)
    runpy.run_path(str(task), run_name="__main__")
