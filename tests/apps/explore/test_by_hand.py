"""The page as a user operates it: mouse, keyboard, touch."""

import numpy as np
import pytest
from gestures import drag, per_pixel, type_into
from selenium.webdriver import ActionChains, Keys

# one worker runs all these tests, since they share a browser
pytestmark = pytest.mark.slow

# ------------------------------------------------------------------ dragging


@pytest.mark.parametrize(
    ("handle", "field", "follows"),
    [
        ("start", "start", {"gradient", "nonadaptive", "terminal", "order", "auto"}),
        ("terminal", "terminal", {"nonadaptive", "order"}),
        ("past-1", "past", {"terminal"}),
    ],
)
def test_dragging_a_point_updates_the_runs_that_depend_on_it(page, handle, field, follows):
    before, (across, up) = page.state, per_pixel(page)
    page.js("window.before = explorer.runs")
    drag(page, f"#handle-{handle}", 40, -80)
    after = page.state
    moved = np.ravel(after[field]) - np.ravel(before[field])
    np.testing.assert_allclose(moved, [40 * across, 80 * up], atol=1.01 * max(across, up))
    assert {**after, field: None} == {**before, field: None}
    # the other runs are not computed again: they are the same objects
    names = page.js(
        "return Object.keys(explorer.runs).filter((n) => explorer.runs[n] !== before[n])"
    )
    assert set(names) == follows
    box = page.element(f"#handle-{handle}").rect
    middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    map_box = page.element("#map").rect
    x = np.ravel(after[field])
    expected = [
        map_box["x"] + (x[0] - after["view"][0]) / across,
        map_box["y"] + (after["view"][3] - x[1]) / up,
    ]
    np.testing.assert_allclose(middle, expected, atol=2)


def test_every_path_begins_at_the_start(page):
    drag(page, "#handle-start", -60, -40)
    state, runs = page.state, page.runs
    assert len(runs) == 5
    for run in runs.values():
        assert run["path"][0] == state["start"]


def test_the_map_can_be_moved_and_zoomed(page):
    view = page.state["view"]
    box = page.element("#map")
    ActionChains(page.driver, duration=20).move_to_element_with_offset(
        box, 150, 150
    ).click_and_hold().move_by_offset(50, 0).release().perform()
    page.wait()
    moved = page.state["view"]
    assert moved[0] == pytest.approx(view[0] - 50 * per_pixel(page)[0], rel=1e-3)
    assert moved[2:] == view[2:]
    page.element("#closer").click()
    page.wait()
    nearer = page.state["view"]
    assert nearer[1] - nearer[0] == pytest.approx(0.8 * (view[1] - view[0]), rel=1e-3)
    page.element("#whole").click()
    page.wait()
    assert page.state["view"] == view


# ------------------------------------------------------------------ typing


def test_a_formula_can_be_typed(page):
    type_into(page, "#formula", "x^4 + 2(y - 1)^2")
    assert page.state["formula"] == "x^4 + 2(y - 1)^2"
    assert page.element("#known").get_attribute("value") == ""
    start, run = page.state["start"], page.runs["gradient"]
    assert run["values"][0] == pytest.approx(start[0] ** 4 + 2 * (start[1] - 1) ** 2)
    assert page.element("#formula-text").text == ""


def test_an_invalid_formula_shows_an_error_and_changes_nothing(page):
    type_into(page, "#formula", "x^2 ")
    runs = page.runs
    page.element("#formula").send_keys("+ + (y")
    page.wait()
    said = page.element("#formula-text").text
    assert said.startswith("Position 11: expected “)” for the “(” at position 9, found the end")
    assert page.element("#formula").get_attribute("aria-invalid") == "true"
    assert page.state["formula"] == "x^2 "
    assert page.runs == runs
    page.element("#formula").send_keys(")")
    page.wait()
    assert page.state["formula"] == "x^2 + + (y)"
    assert page.element("#formula-text").text == ""
    page.element("#formula").send_keys("(")
    page.element("#reset").click()  # what could not be read is forgotten
    page.wait()
    assert page.element("#formula").get_attribute("value") == page.state["formula"]
    assert page.element("#formula-text").text == ""


def test_a_formula_undefined_at_the_start_shows_an_error(page):
    type_into(page, "#formula", "log(y) + x^2")
    assert page.element("#formula-text").text == "f is not a number at the start: move the start."
    assert {run["status"] for run in page.runs.values()} == {"nonfinite"}


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("alpha", "2", "alpha must lie in (0, 1), got 2."),
        ("alpha", "half", "alpha must lie in (0, 1), got half."),
        ("gamma", "", "gamma must be a number, got nothing."),
        ("nodes", "2.5", "nodes must be an integer from 1 to 30, got 2.5."),
        ("iterations", "5000", "iterations must be an integer from 1 to 1000, got 5000."),
        ("lag", "0", "lag must be an integer from 1 to 5, got 0."),
    ],
)
def test_an_invalid_number_shows_an_error(page, field, text, said):
    before = page.state[field]
    box = page.element(f"#{field}-typed")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE, text)
    page.wait()
    assert page.element("#number-text").text == said
    page.element("#formula").click()
    page.wait()
    assert page.element("#number-text").text == ""
    assert box.get_attribute("value") == str(page.state[field])
    assert page.state[field] in (before, 2, 5, 50, 500)  # what stood there while it was typed


def test_typed_numbers_move_the_sliders(page):
    for field, text in (("alpha", "0.37"), ("gamma", "-0.42"), ("nodes", "3"), ("lag", "2")):
        type_into(page, f"#{field}-typed", text)
        assert page.state[field] == float(text)
        assert float(page.element(f"#{field}").get_attribute("value")) == float(text)
    assert len(page.driver.find_elements("css selector", ".handle.past")) == 2
    type_into(page, "#start-x", "0.25")
    assert page.state["start"][0] == 0.25


def test_steps_and_their_parameters_can_be_chosen(page):
    assert not page.element("#row-eta").is_displayed()
    for step in ("fixed", "grid", "armijo"):
        page.element(f"label[for=step-{step}]").click()
        page.wait()
        assert page.state["step"] == step
        assert page.element("#row-eta").is_displayed() == (step == "fixed")
    page.element("label[for=given-beta]").click()
    page.wait()
    assert page.state["given"] == "beta"
    assert page.element("#row-beta").is_displayed()
    assert not page.element("#row-gamma").is_displayed()


def test_methods_can_be_shown_and_hidden(page):
    for name in ("nonadaptive", "order", "terminal"):
        page.element(f"#show-{name}").click()
    page.wait()
    assert set(page.runs) == {"gradient", "auto"}
    handles = page.driver.find_elements("css selector", ".handle")
    assert [handle.get_attribute("id") for handle in handles] == ["handle-start"]
    # all of them hidden, too
    for name in ("gradient", "auto"):
        page.element(f"#show-{name}").click()
    page.wait()
    assert page.runs == {}


def test_predefined_functions_set_their_points(page):
    options = [
        one.get_attribute("value")
        for one in page.driver.find_elements("css selector", "#known option")
    ]
    assert {"paper", "rosenbrock", "himmelblau", "beale", "booth", "scaled"} <= set(options)
    for name in options[:-1]:
        page.js(
            "const list = document.getElementById('known'); list.value = arguments[0];"
            "list.dispatchEvent(new Event('change'))",
            name,
        )
        page.wait()
        state, runs = page.state, page.runs
        x0, x1, y0, y1 = state["view"]
        for x, y in (state["start"], state["terminal"], *state["past"]):
            assert x0 < x < x1
            assert y0 < y < y1
        # Auto finds a minimum of every one, and the page's least value is right
        assert runs["auto"]["status"] == "converged", name
        end = runs["auto"]["path"][-1]
        assert page.element("#chart-text").text.startswith("f − f*, f* = the known minimum")
        least = page.js("return explorer.least")
        assert runs["auto"]["values"][-1] >= least - 1e-12, (name, end)


# ------------------------------------------------------------------ keyboard and touch


def test_arrow_keys_move_handles(page):
    (across, up), start = per_pixel(page), page.state["start"]
    handle = page.element("#handle-start")
    handle.send_keys(Keys.ARROW_RIGHT)
    page.wait()
    assert page.state["start"][0] == pytest.approx(start[0] + 4 * across, abs=across)
    handle.send_keys(Keys.SHIFT, Keys.ARROW_UP)
    page.wait()
    assert page.state["start"][1] == pytest.approx(start[1] + 40 * up, abs=up)
    assert "start at (" in handle.get_attribute("aria-label")


def test_the_tab_key_reaches_all_controls(page):
    seen = set()
    page.js("document.activeElement.blur()")
    for _ in range(60):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        seen.add(page.js("return document.activeElement.id"))
    wanted = {"known", "formula", "alpha", "alpha-typed", "gamma", "lag", "nodes", "iterations"}
    wanted |= {
        "handle-start",
        "handle-terminal",
        "handle-past-1",
        "show-auto",
        "k",
        "theme",
        "link",
    }
    assert wanted <= seen


def test_arrow_keys_move_sliders(page):
    page.element("#alpha").send_keys(Keys.ARROW_RIGHT)
    page.element("#iterations").send_keys(Keys.ARROW_LEFT)
    page.element("#k").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.wait()
    state = page.state
    assert (state["alpha"], state["iterations"], state["k"]) == (0.51, 59, 2)
    assert page.element("#k-shown").text == "2"


def touch(page, kind, *points):
    where = [{"x": x, "y": y} for x, y in points]
    page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": where})


def test_touch_drags_a_handle(page):
    page.emulate("setTouchEmulationEnabled", enabled=True)
    try:
        (across, up), start = per_pixel(page), page.state["start"]
        box = page.js("return document.getElementById('handle-start').getBoundingClientRect()")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        touch(page, "touchStart", (x, y))
        for step in (10, 20, 30):
            touch(page, "touchMove", (x - step, y - step))
        touch(page, "touchEnd")
        page.wait()
    finally:
        page.emulate("setTouchEmulationEnabled", enabled=False)
    moved = np.subtract(page.state["start"], start)
    np.testing.assert_allclose(moved, [-30 * across, 30 * up], atol=1.01 * max(across, up))


def test_pinching_zooms(page):
    """The points under both fingers stay under them."""
    page.emulate("setTouchEmulationEnabled", enabled=True)
    try:
        box = page.js("return document.getElementById('map').getBoundingClientRect()")
        view, x, y = page.state["view"], box["x"] + 20, box["y"] + 30
        touch(page, "touchStart", (x, y), (x + 100, y))
        for step in (10, 20, 40):
            touch(page, "touchMove", (x, y + step), (x + 100 + 2.5 * step, y + step))
        touch(page, "touchEnd")
        page.wait()
    finally:
        page.emulate("setTouchEmulationEnabled", enabled=False)
    left, right, low, high = page.state["view"]
    across, up = (view[1] - view[0]) / box["width"], (view[3] - view[2]) / box["height"]
    assert right - left == pytest.approx((view[1] - view[0]) / 2, rel=1e-4)
    assert high - low == pytest.approx((view[3] - view[2]) / 2, rel=1e-4)
    # the first finger stood 20 from the left, and went 40 down to 70 from above
    assert left + 20 * across / 2 == pytest.approx(view[0] + 20 * across, abs=1e-3 * (right - left))
    assert high - 70 * up / 2 == pytest.approx(view[3] - 30 * up, abs=1e-3 * (high - low))
