"""A link holds the state of the page; an invalid one gives the default page."""

import numpy as np
import pytest
from gestures import drag, type_into
from selenium.webdriver import Keys

# one worker runs all these tests, since they share a browser
pytestmark = pytest.mark.slow


def test_a_link_holds_the_complete_state(page):
    type_into(page, "#formula", "x^2 + 3y^2 + sin(x y)")
    for field, text in (
        ("alpha", "0.123456789"),
        ("lag", "3"),
        ("nodes", "4"),
        ("iterations", "31"),
    ):
        type_into(page, f"#{field}-typed", text)
    page.element("label[for=step-fixed]").click()
    type_into(page, "#eta-typed", "0.07")
    page.element("#show-order").click()
    drag(page, "#handle-past-2", 24, 36)
    page.element("#closer").click()
    page.element("#k").send_keys(Keys.ARROW_RIGHT)
    page.wait()
    state, runs = page.state, page.runs
    page.js("document.getElementById('link').click()")
    link = page.js("return location.hash")
    page.open(link)
    unused = {"beta", "betaFixed"}  # as gamma is given
    assert {k: v for k, v in page.state.items() if k not in unused} == {
        k: v for k, v in state.items() if k not in unused
    }
    assert page.runs == runs


def test_the_link_is_updated_automatically(page):
    page.element("#handle-start").send_keys(Keys.ARROW_RIGHT)
    wanted = "return new URLSearchParams(location.hash.slice(1)).get('start')"
    for _ in range(100):
        if page.js(wanted) == ",".join(map(str, page.js("return explorer.state.start"))):
            return
        page.js("return new Promise((done) => setTimeout(done, 20))")
    raise AssertionError(page.js(wanted))


@pytest.mark.parametrize(
    "link",
    [
        "#f=alert(1)&start=a,b&view=1,1,1,1&alpha=7&lag=99&nodes=&step=own&show=&of=gradient&k=-1",
        "#%%%&&&===",
        "#past=1,2,3&terminal=&gamma=Infinity&view=NaN,1,2,3",
        "#start=1e400,0&past=" + ",".join(["1"] * 40),
    ],
)
def test_an_invalid_link_gives_the_default_page(page, link):
    page.open(link)
    state = page.state
    assert state["formula"] == "10x^2 + y^2"
    assert (state["start"], state["alpha"], state["lag"], state["step"]) == (
        [1, -10],
        0.5,
        1,
        "exact",
    )
    assert all(np.isfinite(run["values"]).all() for run in page.runs.values())


def test_the_reset_button_restores_the_defaults(page):
    usual = page.state
    drag(page, "#handle-start", 40, -40)
    type_into(page, "#alpha-typed", "0.2")
    page.element("#reset").click()
    page.wait()
    assert page.state == usual
