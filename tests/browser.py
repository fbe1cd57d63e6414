"""A page in a browser that nobody sees."""

import contextlib

import pytest

from cfgd.apps.bench.speed.chromium import FLAGS, driven, found, missing
from cfgd.apps.explore import page


def command(page, folder):
    """Opens the page, with a profile of its own in the folder; flags may follow."""
    if found() is None:
        pytest.skip("there is no chromium; `apt-get install chromium` brings it")
    return [found(), *FLAGS, f"--user-data-dir={folder / 'profile'}", page.as_uri()]


class Explorer:
    """The explorer's page and what drives it."""

    def __init__(self, driver, path):
        self.driver, self.path = driver, path

    def open(self, link=""):
        self.driver.get("about:blank")  # the same page with another link would not load again
        self.driver.get(self.path.as_uri() + link)
        self.settle()
        return self

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self):
        """Until everything is drawn and said."""
        self.driver.execute_async_script(
            """const done = arguments[0];
            const look = () => window.explorer?.settled ? done() : setTimeout(look, 10);
            look();"""
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
    """The explorer's page in a browser, driven."""
    lacks = missing()
    if lacks is not None:
        pytest.skip(lacks)
    path = folder / "explorer.html"
    path.write_text(page(), encoding="utf-8")
    with driven("--window-size=1440,1000") as driver:
        yield Explorer(driver, path)
