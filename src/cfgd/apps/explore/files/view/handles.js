// Points that are moved: by mouse, pen or finger, and by the arrow keys.

import { pointShown } from "../words.js";

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// `wanted` are { id, kind, label, x }; `frame` gives the map; `move(id, x)` is told where to.
export class Handles {
  constructor(container, frame, move) {
    Object.assign(this, { container, frame, move, buttons: new Map(), where: new Map() });
  }

  place(wanted) {
    const ids = new Set(wanted.map(({ id }) => id));
    for (const [id, button] of this.buttons) {
      if (!ids.has(id)) {
        button.remove();
        this.buttons.delete(id);
      }
    }
    const frame = this.frame();
    for (const { id, kind, label, x } of wanted) {
      const button = this.buttons.get(id) ?? this.added(id, kind, label);
      this.where.set(id, x);
      button.style.transform = `translate(${frame.x(x[0])}px, ${frame.y(x[1])}px)`;
      button.classList.toggle("left", frame.x(x[0]) > frame.right - 90); // the label has no room
      const words = `${label} at ${pointShown(x)}; move with the arrow keys`;
      if (button.ariaLabel !== words) button.ariaLabel = words;
    }
  }

  added(id, kind, label) {
    const button = document.createElement("button");
    button.type = "button";
    button.id = `handle-${id}`;
    button.className = `handle ${kind}`;
    button.dataset.label = label;
    button.addEventListener("pointerdown", (event) => this.grab(event, id, button));
    button.addEventListener("keydown", (event) => this.pressed(event, id));
    this.container.append(button);
    this.buttons.set(id, button);
    return button;
  }

  grab(event, id, button) {
    if (event.button !== 0) return;
    event.preventDefault();
    button.focus({ preventScroll: true });
    button.setPointerCapture(event.pointerId);
    const frame = this.frame();
    const x = this.where.get(id);
    // the point stays where it was taken, and does not jump under the pointer
    const off = [event.clientX - frame.x(x[0]), event.clientY - frame.y(x[1])];
    const follow = (now) => {
      const to = this.frame();
      this.move(id, tidied(to, now.clientX - off[0], now.clientY - off[1]));
    };
    const drop = () => {
      button.removeEventListener("pointermove", follow);
      button.classList.remove("held");
    };
    button.classList.add("held");
    button.addEventListener("pointermove", follow);
    button.addEventListener("lostpointercapture", drop, { once: true });
  }

  pressed(event, id) {
    const way = KEYS[event.key];
    if (!way) return;
    event.preventDefault();
    const frame = this.frame();
    const [x, y] = this.where.get(id);
    const pixels = event.shiftKey ? 40 : 4;
    this.move(id, tidied(frame, frame.x(x) + way[0] * pixels, frame.y(y) - way[1] * pixels));
  }
}

// The numbers of a pixel, with no more digits than it can tell apart.
function tidied(frame, left, top) {
  const across = (frame.x1 - frame.x0) / (frame.right - frame.left);
  const up = (frame.y1 - frame.y0) / (frame.bottom - frame.top);
  return [
    rounded(frame.x0 + (left - frame.left) * across, across),
    rounded(frame.y0 + (frame.bottom - top) * up, up),
  ];
}

function rounded(value, pixel) {
  const digits = Math.min(Math.max(-Math.floor(Math.log10(pixel)), 0), 12);
  return Number(value.toFixed(digits));
}
