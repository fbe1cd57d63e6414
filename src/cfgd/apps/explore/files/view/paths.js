// The paths on the map, and what is marked beside them.

import { Frame, ticks } from "./canvas.js";

const MOST_DOTS = 80;

// The map has no margins: its labels stand inside.
export const mapFrame = (size, view) => new Frame(size, view, [0, 0, 0, 0]);

// What does not change while points move: tick labels and known minima.
export function drawAxes({ context, width, height }, view, style, minima) {
  const frame = mapFrame({ width, height }, view);
  axes(context, frame, view, style);
  for (const x of minima) cross(context, frame, style, x);
}

export function drawPaths({ context, width, height }, view, style, scene) {
  const frame = mapFrame({ width, height }, view);
  for (const [name, path] of scene.paths) {
    const stroke = style.strokes[name];
    context.strokeStyle = stroke.colour;
    context.fillStyle = stroke.colour;
    context.lineWidth = stroke.width;
    context.lineJoin = "round";
    context.setLineDash(stroke.dash);
    frame.line(context, path);
    context.setLineDash([]);
    const dots = path.length <= MOST_DOTS ? path : [];
    for (const x of dots) dot(context, frame, x, stroke.width + 0.6);
    dot(context, frame, path.at(-1), stroke.width + 2.6);
  }
  if (scene.mark) mark(context, frame, style, scene.mark);
}

function axes(context, frame, view, style) {
  context.font = `${11 * style.scale}px ${style.font}`;
  context.fillStyle = style.soft;
  context.strokeStyle = style.soft;
  context.lineWidth = 1;
  context.setLineDash([]);
  context.textBaseline = "bottom";
  context.textAlign = "center";
  for (const x of ticks(view[0], view[1], 6)) {
    const at = frame.x(x);
    if (at < 24 || at > frame.right - 24) continue;
    halo(context, style, String(x).replace("-", "−"), at, frame.bottom - 7);
    line(context, at, frame.bottom, at, frame.bottom - 5);
  }
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const y of ticks(view[2], view[3], 6)) {
    const at = frame.y(y);
    if (at < 28 || at > frame.bottom - 24) continue;
    halo(context, style, String(y).replace("-", "−"), 8, at);
    line(context, 0, at, 5, at);
  }
  context.font = `italic ${13 * style.scale}px ${style.font}`;
  halo(context, style, "y", 8, 10);
  context.textAlign = "right";
  halo(context, style, "x", frame.right - 8, frame.bottom - 12);
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

export function halo(context, style, text, x, y) {
  context.save();
  context.strokeStyle = style.page;
  context.globalAlpha = 0.8;
  context.lineWidth = 3;
  context.strokeText(text, x, y);
  context.restore();
  context.fillText(text, x, y);
}

function dot(context, frame, [x, y], radius) {
  if (!Number.isFinite(x) || !Number.isFinite(y)) return;
  context.beginPath();
  context.arc(frame.x(x), frame.y(y), radius, 0, 2 * Math.PI);
  context.fill();
}

// a minimum that is known
function cross(context, frame, style, x) {
  const [at, down] = [frame.x(x[0]), frame.y(x[1])];
  context.strokeStyle = style.ink;
  context.lineWidth = 1.6;
  context.setLineDash([]);
  line(context, at - 6, down, at + 6, down);
  line(context, at, down - 6, at, down + 6);
}

// x_k of the slice, its terminal, and the way between them
function mark(context, frame, style, { x, c, name }) {
  context.strokeStyle = style.strokes[name].colour;
  context.lineWidth = 1.4;
  context.setLineDash([3, 3]);
  frame.line(context, [c, x]);
  context.setLineDash([]);
  context.lineWidth = 2;
  for (const [point, radius] of [[x, 8], [c, 4]]) {
    context.beginPath();
    context.arc(frame.x(point[0]), frame.y(point[1]), radius, 0, 2 * Math.PI);
    context.stroke();
  }
}
