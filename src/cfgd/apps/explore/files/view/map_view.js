// The part of the plane that the map shows: zoomed by wheel, buttons and two fingers, moved by the
// mouse.

const CLOSER = 0.8;
const ENDS = ["touchend", "touchcancel"];

export class MapView {
  constructor(map, view, change) {
    Object.assign(this, { map, view, change });
    document.getElementById("closer").addEventListener("click", () => this.zoom(CLOSER));
    document.getElementById("farther").addEventListener("click", () => this.zoom(1 / CLOSER));
    map.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = map.getBoundingClientRect();
      const at = this.at(event.clientX - box.left, event.clientY - box.top);
      this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) / 500), at);
    }, { passive: false });
    map.addEventListener("pointerdown", (event) => this.grab(event));
    // one finger scrolls the page, two are the map's
    map.addEventListener("touchstart", (event) => this.pinch(event), { passive: false });
  }

  // the point under a pixel of the map
  at(left, top) {
    const [x0, x1, y0, y1] = this.view();
    const { clientWidth: width, clientHeight: height } = this.map;
    return [x0 + ((x1 - x0) * left) / width, y1 - ((y1 - y0) * top) / height];
  }

  zoom(factor, at) {
    const [x0, x1, y0, y1] = this.view();
    const [x, y] = at ?? [(x0 + x1) / 2, (y0 + y1) / 2];
    const view = [x + (x0 - x) * factor, x + (x1 - x) * factor, y + (y0 - y) * factor, y + (y1 - y) * factor];
    this.shown(view);
  }

  shown(view) {
    const [x0, x1, y0, y1] = view;
    const size = Math.max(...view.map(Math.abs));
    const least = Math.min(x1 - x0, y1 - y0);
    // neither so far in that digits are over, nor so far out that nothing is seen
    if (size <= 1e6 && least > 1e-6 * size && least > 1e-9) this.change(rounded(view));
  }

  // a mouse moves the map; a finger scrolls the page
  grab(event) {
    if (event.button !== 0 || event.pointerType !== "mouse" || event.target.closest("button")) return;
    const begin = this.view();
    const [left, top] = [event.clientX, event.clientY];
    this.map.setPointerCapture(event.pointerId);
    const follow = (now) => {
      const dx = ((left - now.clientX) * (begin[1] - begin[0])) / this.map.clientWidth;
      const dy = ((now.clientY - top) * (begin[3] - begin[2])) / this.map.clientHeight;
      this.shown([begin[0] + dx, begin[1] + dx, begin[2] + dy, begin[3] + dy]);
    };
    const drop = () => this.map.removeEventListener("pointermove", follow);
    this.map.addEventListener("pointermove", follow);
    this.map.addEventListener("lostpointercapture", drop, { once: true });
  }

  // what was under the fingers' middle stays there, and grows as they part
  pinch(event) {
    if (event.targetTouches.length !== 2 || event.target.closest("button")) return;
    event.preventDefault();
    const [begin, first] = [this.view(), fingers(event)];
    const follow = (now) => {
      if (now.targetTouches.length !== 2) return;
      now.preventDefault();
      const last = fingers(now);
      const factor = first.apart / Math.max(last.apart, 1);
      const box = this.map.getBoundingClientRect();
      const part = (of) => [(of.x - box.left) / box.width, 1 - (of.y - box.top) / box.height];
      const [from, to] = [part(first), part(last)];
      this.shown([0, 1].flatMap((j) => {
        const [low, size] = [begin[2 * j], begin[2 * j + 1] - begin[2 * j]];
        const edge = low + size * (from[j] - factor * to[j]);
        return [edge, edge + factor * size];
      }));
    };
    const drop = () => {
      this.map.removeEventListener("touchmove", follow);
      for (const end of ENDS) this.map.removeEventListener(end, drop);
    };
    this.map.addEventListener("touchmove", follow, { passive: false });
    for (const end of ENDS) this.map.addEventListener(end, drop);
  }

  // a view with all points in it, or the one that a known function comes with where it has them all
  fit(points, usual) {
    const inside = ([x, y], [x0, x1, y0, y1]) => x0 <= x && x <= x1 && y0 <= y && y <= y1;
    if (usual && points.every((point) => inside(point, usual))) {
      this.change(usual);
      return;
    }
    const spans = [0, 1].flatMap((j) => {
      const all = points.map((point) => point[j]);
      const [low, high] = [Math.min(...all), Math.max(...all)];
      const pad = 0.25 * (high - low) || 1;
      return [low - pad, high + pad];
    });
    this.shown(spans);
  }
}

// Return the view with the shorter side extended, so that both axes have the same scale.
export function equalised([x0, x1, y0, y1], { width, height }) {
  const scale = Math.max((x1 - x0) / width, (y1 - y0) / height); // units in a pixel
  const [x, y, across, up] = [(x0 + x1) / 2, (y0 + y1) / 2, (scale * width) / 2, (scale * height) / 2];
  return [x - across, x + across, y - up, y + up];
}

// their middle, and how far they are from one another
const fingers = ({ targetTouches: [a, b] }) => ({
  x: (a.clientX + b.clientX) / 2,
  y: (a.clientY + b.clientY) / 2,
  apart: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY),
});

const rounded = (view) => view.map((value) => Number(value.toPrecision(6)));
