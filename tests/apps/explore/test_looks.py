"""The page in light and dark, on narrow screens, and for readers of screens."""

import itertools

import numpy as np
import pytest

# one worker runs all these tests, since they share a browser
pytestmark = pytest.mark.slow


def background(page):
    colour = page.js("return getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour[4:-1].split(","))


def map_colour(page):
    return page.js(
        "const c = document.getElementById('contours');"
        "return [...c.getContext('2d').getImageData(30, 30, 1, 1).data].slice(0, 3)"
        ".reduce((a, b) => a + b)"
    )


def test_the_theme_follows_the_system_and_the_button(page):
    assert background(page) > 600
    light = map_colour(page)
    try:
        page.emulate(
            "setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        page.js("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
        page.wait()
        assert background(page) < 150
        assert map_colour(page) < light - 200
        assert page.element("#theme").text == "Light"
        page.element("#theme").click()
        page.wait()
        assert background(page) > 600
        assert map_colour(page) == light
    finally:
        page.emulate("setEmulatedMedia", features=[])
    page.open()
    page.element("#theme").click()
    page.wait()
    assert background(page) < 150


@pytest.mark.parametrize("width", [360, 390, 820, 1100, 1920])
def test_nothing_is_wider_than_the_screen(page, width):
    mobile = width < 600
    page.emulate(
        "setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=2, mobile=mobile
    )
    try:
        page.open("#f=himmelblau&lag=5")
        assert page.js("return document.documentElement.scrollWidth") <= width
        wide = page.js(
            """return [...document.querySelectorAll("main *")].filter((one) => {
              const box = one.getBoundingClientRect();
              return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1)
                && !one.closest("#map");
            }).map((one) => one.id || one.className || one.tagName)"""
        )
        assert wide == []
        box = page.js("return document.getElementById('map').getBoundingClientRect()")
        assert box["width"] > 300
        assert box["height"] > 250
        handle = page.js("return document.getElementById('handle-start').getBoundingClientRect()")
        assert min(handle["width"], handle["height"]) >= 44  # as wide as a finger
    finally:
        page.emulate("clearDeviceMetricsOverride")


def test_all_controls_have_accessible_names(page):
    nameless = page.js(
        """return [...document.querySelectorAll("input, select, button")].filter((one) =>
          !one.ariaLabel && !one.textContent.trim() && !(one.labels && one.labels.length)
        ).map((one) => one.id)"""
    )
    assert nameless == []


@pytest.mark.parametrize("width", [390, 1280])
def test_texts_do_not_touch_the_inputs_above_them(page, width):
    page.emulate(
        "setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 600
    )
    try:
        page.open("#lag=5&step=fixed")
        gaps = page.js(
            """const texts = [...document.querySelectorAll(".row small, #points small")];
            return texts.filter((text) => text.getClientRects().length).map((text) => {
              const range = document.createRange();
              range.selectNodeContents(text);
              const inputs = [...text.parentElement.querySelectorAll("input[type=text]")];
              const lowest = Math.max(...inputs.map((one) => one.getBoundingClientRect().bottom));
              return range.getBoundingClientRect().top - lowest;
            })"""
        )
        assert len(gaps) >= 9
        assert min(gaps) >= 1
    finally:
        page.emulate("clearDeviceMetricsOverride")


def test_drawings_have_the_font_of_the_page(page):
    fonts = page.js(
        "return ['html', 'body'].map((n) => getComputedStyle(document.querySelector(n)).fontFamily)"
    )
    assert fonts[0] == fonts[1]
    drawn = page.js("return document.getElementById('chart').getContext('2d').font")
    assert drawn.endswith(fonts[1])


def contrast(one, other):
    def light(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    bright, dim = sorted([light(one), light(other)], reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_paths_have_enough_contrast(page, theme):
    page.js("document.documentElement.dataset.theme = arguments[0]", theme)
    colours = page.js(
        """const style = getComputedStyle(document.documentElement);
        return Object.fromEntries(["ink", "soft", "page", "card", "low", "high", "blue", "orange",
          "green", "purple"].map((n) => [n, style.getPropertyValue(`--${n}`).trim()]))"""
    )
    for text, below in itertools.product(("ink", "soft"), ("page", "card")):
        assert contrast(colours[text], colours[below]) > 4.5
    for line, below in itertools.product(
        ("ink", "blue", "orange", "green", "purple"), ("low", "high")
    ):
        assert contrast(colours[line], colours[below]) > 2.2, (line, below)
