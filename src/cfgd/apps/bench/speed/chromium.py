"""A headless browser, controlled by selenium."""

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
    """Return the path of the browser, or None."""
    return shutil.which("chromium") or shutil.which("google-chrome")


def missing() -> str | None:
    """Return what is not installed and how to install it, or None."""
    if found() is None or shutil.which("chromedriver") is None:
        return "there is no chromium; `apt-get install chromium chromium-driver` installs it"
    try:
        import_extra("selenium", "A headless browser", "slow")
    except MissingExtraError as error:
        return str(error)
    return None


@contextlib.contextmanager
def driven(*flags: str) -> Iterator[Any]:
    """Start a browser with a temporary profile and more `flags`; yield its selenium driver."""
    webdriver = import_extra("selenium.webdriver", "A headless browser", "slow")
    service = import_extra("selenium.webdriver.chrome.service", "A headless browser", "slow")
    options = webdriver.ChromeOptions()
    options.binary_location = found()
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", *flags):
            options.add_argument(flag)
        # without the path of the driver, selenium would search for one on the network
        driver = webdriver.Chrome(options, service.Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()
