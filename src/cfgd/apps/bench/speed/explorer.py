"""The explorer in a browser: load times and frame rates, by the clock of the browser."""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cfgd._core.files import write
from cfgd.apps.bench.speed.chromium import driven, missing
from cfgd.apps.bench.speed.measure import ReportRow, at_most
from cfgd.apps.explore import page

LOADS = 5

# Returns the milliseconds from the navigation to the first complete frame.
DRAWN = """
const done = arguments[0];
const poll = () => window.explorer?.drawn ? done(window.explorer.drawn) : setTimeout(poll, 5);
poll();
"""

# Drags a handle in a circle for three seconds, a step in every frame; returns the frame times.
DRAG = """
const [id, done] = arguments;
const handle = document.getElementById(id);
const box = handle.getBoundingClientRect();
const centre = [box.x + box.width / 2, box.y + box.height / 2];
const send = (type, x, y) => handle.dispatchEvent(new PointerEvent(type,
  { clientX: x, clientY: y, pointerId: 1, button: 0, bubbles: true, cancelable: true }));
handle.setPointerCapture = () => {};
send("pointerdown", ...centre);
const times = [];
const frame = (now) => {
  times.push(now);
  const angle = times.length / 12;
  send("pointermove", centre[0] + 90 * (Math.cos(angle) - 1), centre[1] - 60 * Math.sin(angle));
  if (now - times[0] < 3000) requestAnimationFrame(frame);
  else { send("lostpointercapture", ...centre); done(times); }
};
requestAnimationFrame(frame);
"""
HANDLES = {"start": "#f=rosenbrock", "terminal": "#f=himmelblau", "past-1": "#f=paper"}


def rows() -> Iterator[ReportRow]:
    not_installed = missing()
    if not_installed is not None:
        yield ReportRow("explorer", f"not measured: {not_installed}")
        return
    with tempfile.TemporaryDirectory() as folder, driven("--window-size=1440,900") as driver:
        path = Path(folder) / "explorer.html"
        write(path, page())
        drawn = [_load(driver, path) for _ in range(1 + LOADS)]
        yield ReportRow("explorer: size of the page", f"{path.stat().st_size / 1e3:.0f} kB")
        yield at_most("explorer: time to the first frame, new browser", drawn[0] / 1e3, 1.0, "s")
        again = statistics.median(drawn[1:]) / 1e3
        yield at_most("explorer: time to the first frame, later loads", again, 1.0, "s")
        for handle, link in HANDLES.items():
            _load(driver, path, link)
            yield _frames(driver, handle)


def _load(driver: Any, path: Path, link: str = "") -> float:
    driver.get("about:blank")
    driver.get(path.as_uri() + link)
    return float(driver.execute_async_script(DRAWN))


def _frames(driver: Any, handle: str) -> ReportRow:
    times = driver.execute_async_script(DRAG, f"handle-{handle}")
    gaps = sorted(after - before for before, after in itertools.pairwise(times))
    rate = 1e3 * len(gaps) / (times[-1] - times[0])
    gap = gaps[int(0.95 * len(gaps))]
    what = f"explorer: frame rate while dragging {handle} (95% in {gap:.0f} ms)"
    # the display has 60 frames per second; 59 allows for a difference between the two clocks
    return ReportRow(what, f"{rate:.1f} / s", "at least 59 / s", rate >= 59)
