"""What a user does with the page: drag a handle, type into a field."""

from selenium.webdriver import ActionChains, Keys


def per_pixel(page):
    view, size = page.state["view"], page.element("#map").size
    return (view[1] - view[0]) / size["width"], (view[3] - view[2]) / size["height"]


def drag(page, handle, right, down):
    chain = ActionChains(page.driver, duration=20).click_and_hold(page.element(handle))
    for _ in range(4):
        chain = chain.move_by_offset(right // 4, down // 4)
    chain.release().perform()
    page.wait()


def type_into(page, field, text):
    box = page.element(field)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE, text)
    page.wait()
