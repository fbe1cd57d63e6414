"""A browser that nobody sees, driven by selenium."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from cfgd._core.extras import MissingExtraError, import_extra

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


def found() -> str | None:
    """The browser's program."""
    return shutil.which("chromium") or shutil.which("google-chrome")


def missing() -> str | None:
    """What is not there, and how to get it."""
    if found() is None or shutil.which("chromedriver") is None:
        return "there is no chromium; `apt-get install chromium chromium-driver` brings it"
    try:
        import_extra("selenium", "A driven browser", "test")
    except MissingExtraError as error:
        return str(error)
    return None


@contextlib.contextmanager
def driven(*flags: str) -> Iterator[Any]:
    """A driver of selenium, with a profile of its own; more flags may follow."""
    webdriver = import_extra("selenium.webdriver", "A driven browser", "test")
    service = import_extra("selenium.webdriver.chrome.service", "A driven browser", "test")
    options = webdriver.ChromeOptions()
    options.binary_location = found()
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", *flags):
            options.add_argument(flag)
        # the driver's path is given: selenium would look for one in the network
        driver = webdriver.Chrome(options, service.Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()
