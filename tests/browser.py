"""Drive the explorer in a headless browser."""

import contextlib

import pytest

from cfgd.apps.bench.speed.chromium import FLAGS, driven, found, missing
from cfgd.apps.explore import page


def command(page, folder):
    """Return the command that opens the page, with a profile of its own in the folder."""
    if found() is None:
        pytest.skip("there is no chromium; `apt-get install chromium` brings it")
    return [found(), *FLAGS, f"--user-data-dir={folder / 'profile'}", page.as_uri()]


class Explorer:
    """The page of the explorer and the browser that drives it."""

    def __init__(self, driver, path):
        self.driver, self.path = driver, path

    def open(self, link=""):
        self.driver.get("about:blank")  # the same page with another link would not load again
        self.driver.get(self.path.as_uri() + link)
        self.wait()
        return self

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self):
        """Wait until everything is drawn and its texts are written."""
        self.driver.execute_async_script(
            """const done = arguments[0];
            const poll = () => window.explorer?.isIdle ? done() : setTimeout(poll, 10);
            poll();"""
        )

    @property
    def state(self):
        return self.js("return explorer.state")

    @property
    def runs(self):
        return self.js("return explorer.runs")

    def element(self, name):
        return self.driver.find_element("css selector", name)

    def emulate(self, command, **what):
        self.driver.execute_cdp_cmd(f"Emulation.{command}", what)


@contextlib.contextmanager
def explorer(folder):
    """Open the page of the explorer in a headless browser."""
    lacks = missing()
    if lacks is not None:
        pytest.skip(lacks)
    path = folder / "explorer.html"
    path.write_text(page(), encoding="utf-8")
    with driven("--window-size=1440,1000") as driver:
        yield Explorer(driver, path)
