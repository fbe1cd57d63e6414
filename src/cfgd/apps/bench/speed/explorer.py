"""The explorer in a browser, by the browser's own clock."""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cfgd._core.files import write
from cfgd.apps.bench.speed.chromium import driven, missing
from cfgd.apps.bench.speed.measure import Row, at_most
from cfgd.apps.explore import page

LOADS = 5

# Milliseconds from the navigation to the first frame in which everything is drawn.
DRAWN = """
const done = arguments[0];
const look = () => window.explorer?.drawn ? done(window.explorer.drawn) : setTimeout(look, 5);
look();
"""

# A handle goes round and round for three seconds, a little in every frame: the times of the frames.
DRAG = """
const [id, done] = arguments;
const handle = document.getElementById(id);
const box = handle.getBoundingClientRect();
const centre = [box.x + box.width / 2, box.y + box.height / 2];
const tell = (type, x, y) => handle.dispatchEvent(new PointerEvent(type,
  { clientX: x, clientY: y, pointerId: 1, button: 0, bubbles: true, cancelable: true }));
handle.setPointerCapture = () => {};
tell("pointerdown", ...centre);
const times = [];
const turn = (now) => {
  times.push(now);
  const angle = times.length / 12;
  tell("pointermove", centre[0] + 90 * (Math.cos(angle) - 1), centre[1] - 60 * Math.sin(angle));
  if (now - times[0] < 3000) requestAnimationFrame(turn);
  else { tell("lostpointercapture", ...centre); done(times); }
};
requestAnimationFrame(turn);
"""
HANDLES = {"start": "#f=rosenbrock", "terminal": "#f=himmelblau", "past-1": "#f=paper"}


def rows() -> Iterator[Row]:
    lacks = missing()
    if lacks is not None:
        yield Row("the explorer", f"not measured: {lacks}")
        return
    with tempfile.TemporaryDirectory() as folder, driven("--window-size=1440,900") as driver:
        path = Path(folder) / "explorer.html"
        write(path, page())
        drawn = [_load(driver, path) for _ in range(1 + LOADS)]
        yield Row("explorer: the page", f"{path.stat().st_size / 1e3:.0f} kB")
        yield at_most("explorer: drawn, in a browser that has just begun", drawn[0] / 1e3, 1.0, "s")
        again = statistics.median(drawn[1:]) / 1e3
        yield at_most("explorer: drawn, from then on", again, 1.0, "s")
        for handle, link in HANDLES.items():
            _load(driver, path, link)
            yield _frames(driver, handle)


def _load(driver: Any, path: Path, link: str = "") -> float:
    driver.get("about:blank")
    driver.get(path.as_uri() + link)
    return float(driver.execute_async_script(DRAWN))


def _frames(driver: Any, handle: str) -> Row:
    times = driver.execute_async_script(DRAG, f"handle-{handle}")
    gaps = sorted(after - before for before, after in itertools.pairwise(times))
    rate = 1e3 * len(gaps) / (times[-1] - times[0])
    late = gaps[int(0.95 * len(gaps))]
    what = f"explorer: frames while dragging {handle} (95% within {late:.0f} ms)"
    # the screen gives 60, and a clock of its own: 59.9 is as many
    return Row(what, f"{rate:.1f} per s", "at least 59 per s", rate >= 59)
