// A canvas as sharp as the screen, and the axes of a plot.

import { shown } from "../words.js";

// To ask for a size makes the browser lay out the page: it is asked once, and when it has changed.
export class Sheet {
  constructor(canvas, resized) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.fit();
    new ResizeObserver(() => {
      if (this.fit()) resized();
    }).observe(canvas);
  }

  // Width and height in the page's pixels; whether they are new.
  fit() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === this.width && height === this.height && ratio === this.ratio) return false;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return true;
  }
}

// Round numbers between two others, about as many as asked for.
export function ticks(least, most, about) {
  const rough = (most - least) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const by = [1, 2, 5, 10].map((t) => t * power).find((one) => one >= rough) ?? power;
  const found = [];
  for (let i = Math.ceil(least / by); i * by <= most + 1e-9 * by; i += 1) {
    found.push(Number((i * by).toPrecision(12)));
  }
  return found;
}

// A frame with room for labels; `to` takes numbers to pixels, `from` takes them back.
export class Frame {
  constructor({ width, height }, [x0, x1, y0, y1], margins, scale = 1) {
    const [top, right, bottom, left] = margins.map((margin) => margin * scale);
    Object.assign(this, { x0, x1, y0, y1, top, left });
    this.right = width - right;
    this.bottom = height - bottom;
  }

  x(value) {
    return this.left + ((value - this.x0) / (this.x1 - this.x0)) * (this.right - this.left);
  }

  y(value) {
    return this.bottom - ((value - this.y0) / (this.y1 - this.y0)) * (this.bottom - this.top);
  }

  grid(context, style, xs, ys, label = shown) {
    context.font = `${11 * style.scale}px ${style.font}`;
    context.lineWidth = 1;
    context.setLineDash([]);
    context.strokeStyle = style.faint;
    context.globalAlpha = 0.55;
    context.beginPath();
    for (const x of xs) {
      const at = Math.round(this.x(x)) + 0.5;
      context.moveTo(at, this.top);
      context.lineTo(at, this.bottom);
    }
    for (const y of ys) {
      const at = Math.round(this.y(y)) + 0.5;
      context.moveTo(this.left, at);
      context.lineTo(this.right, at);
    }
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = style.soft;
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const x of xs) context.fillText(shown(x), this.x(x), this.bottom + 6);
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const y of ys) context.fillText(label(y), this.left - 6, this.y(y));
  }

  inside(context, draw) {
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.right - this.left, this.bottom - this.top);
    context.clip();
    draw();
    context.restore();
  }

  // A line through points, broken where they are no numbers.
  line(context, points) {
    context.beginPath();
    let down = false;
    for (const [x, y] of points) {
      const seen = Number.isFinite(x) && Number.isFinite(y);
      const at = [clamped(this.x(x)), clamped(this.y(y))];
      if (seen && down) context.lineTo(...at);
      else if (seen) context.moveTo(...at);
      down = seen;
    }
    context.stroke();
  }
}

// what lies far away is drawn far away, and not beyond what a canvas can compute with
const clamped = (pixel) => Math.min(Math.max(pixel, -1e5), 1e5);
