"""The command that installs an extra, for installations from a folder, a repository and PyPI."""

import importlib.metadata
import json

import pytest

from cfgd._core.extras import install_command


def installed_from(monkeypatch, record):
    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if record is None else json.dumps(record)

    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Distribution())


@pytest.mark.parametrize("editable", [True, False])
def test_a_folder(monkeypatch, tmp_path, editable):
    folder = tmp_path / "my code"
    folder.mkdir()
    installed_from(monkeypatch, {"url": folder.as_uri(), "dir_info": {"editable": editable}})
    option = "-e " if editable else ""
    assert install_command("fit") == f"pip install {option}'{folder}[fit]'"


def test_a_folder_that_is_gone(monkeypatch, tmp_path):
    installed_from(monkeypatch, {"url": (tmp_path / "gone").as_uri(), "dir_info": {}})
    assert install_command("fit") == "pip install 'cfgd[fit]'"


def test_a_repository(monkeypatch):
    url = "https://example.org/cfgd.git"
    installed_from(monkeypatch, {"url": url, "vcs_info": {"vcs": "git", "commit_id": "0" * 40}})
    assert install_command("torch") == f"pip install 'cfgd[torch] @ git+{url}'"


def test_the_index(monkeypatch):
    installed_from(monkeypatch, None)
    assert install_command("sklearn") == "pip install 'cfgd[sklearn]'"
