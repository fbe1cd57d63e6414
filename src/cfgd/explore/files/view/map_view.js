// The part of the plane that the map shows: zoomed by wheel and buttons, moved by the mouse.

const CLOSER = 0.8;

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

const rounded = (view) => view.map((value) => Number(value.toPrecision(6)));
