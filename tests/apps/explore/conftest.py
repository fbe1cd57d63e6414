"""The explorer in a browser that the tests of a file share."""

import pytest

from browser import explorer

# Two modules of one name cannot be collected for doctests, and tests has a conftest, too; selenium,
# which gestures.py imports, is not installed for `make test`.
collect_ignore = ["conftest.py", "gestures.py"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("explorer")) as page:
        yield page


@pytest.fixture
def page(browser):
    yield browser.open()
    errors = [line for line in browser.driver.get_log("browser") if line["level"] == "SEVERE"]
    assert errors == []
