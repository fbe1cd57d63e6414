"""A page in a browser that nobody sees."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def command(page, folder):
    """Opens the page, with a profile of its own in the folder; flags may follow."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium; `apt-get install chromium` brings it")
    return [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
