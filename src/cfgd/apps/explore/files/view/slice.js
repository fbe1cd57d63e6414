// One coordinate: f_j, its smoothing F, the nodes with their weights, and the two slopes.

import { rule } from "../calculus/quadrature.js";
import { smoothedSlope, smoothing } from "../calculus/smoothing.js";
import { Frame, ticks } from "./canvas.js";

const POINTS = 81; // of a curve

// What is drawn, as numbers: f and F over t, the nodes on f, and both slopes at x_j.
export function sliceOf(objective, { x, c, alpha, beta, nodes }, j, span) {
  const of = (t) => objective.slice(x, j, t);
  const [here, there] = [x[j], c[j]];
  const pad = 0.45 * Math.max(Math.abs(here - there), 0.12 * span);
  const [low, high] = [Math.min(here, there) - pad, Math.max(here, there) + pad];
  const ts = Array.from({ length: POINTS }, (_, i) => low + ((high - low) * i) / (POINTS - 1));
  const F = smoothing(of, alpha, beta, there);
  const { u, w } = rule(alpha, nodes);
  return {
    f: ts.map((t) => [t, of(t).value]),
    F: ts.map((t) => [t, F(t)]),
    nodes: u.map((node, l) => {
      const t = there + node * (here - there);
      return { t, value: of(t).value, weight: w[l] };
    }),
    x: here,
    c: there,
    value: of(here).value,
    smoothed: F(here),
    slope: of(here).slope,
    fractional: smoothedSlope(of, alpha, beta, there, here, nodes),
  };
}

export function drawSlice({ context, width, height }, style, slice, name) {
  context.clearRect(0, 0, width, height);
  const colour = style.strokes[name].colour;
  const [low, high] = [slice.f[0][0], slice.f.at(-1)[0]];
  const heights = [...slice.f, ...slice.F].map(([, y]) => y).filter(Number.isFinite);
  if (heights.length === 0) return;
  const [least, most] = [Math.min(...heights), Math.max(...heights)];
  const room = 0.08 * (most - least || 1);
  const view = [low, high, least - 2.6 * room, most + room];
  const frame = new Frame({ width, height }, view, [8, 10, 24, 52], style.scale);
  frame.grid(context, style, ticks(low, high, 5), ticks(least, most, 5));
  frame.inside(context, () => {
    vertical(context, frame, style.soft, slice.c, [2, 3]);
    vertical(context, frame, style.ink, slice.x, []);
    weights(context, frame, colour, slice.nodes);
    context.lineWidth = 2;
    context.strokeStyle = style.ink;
    frame.line(context, slice.f);
    context.strokeStyle = colour;
    context.setLineDash([7, 3]);
    frame.line(context, slice.F);
    context.setLineDash([]);
    const halfLength = 0.22 * (high - low);
    tangent(context, frame, style.ink, slice.x, slice.value, slice.slope, halfLength);
    tangent(context, frame, colour, slice.x, slice.smoothed, slice.fractional, halfLength);
  });
  context.font = `italic ${12 * style.scale}px ${style.font}`;
  context.fillStyle = style.ink;
  context.textBaseline = "top";
  label(context, frame, "x", slice.x, slice.x >= slice.c);
  label(context, frame, "c", slice.c, slice.x < slice.c);
}

function label(context, frame, text, t, right) {
  context.textAlign = right ? "left" : "right";
  context.fillText(text, frame.x(t) + (right ? 4 : -4), frame.top + 2);
}

function vertical(context, frame, colour, t, dash) {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.setLineDash(dash);
  frame.line(context, [[t, frame.y0], [t, frame.y1]]);
  context.setLineDash([]);
}

// Each node on f, as large as its weight, over a bar that is as high.
function weights(context, frame, colour, nodes) {
  const most = Math.max(...nodes.map(({ weight }) => weight));
  const tallest = 0.13 * (frame.bottom - frame.top);
  context.fillStyle = colour;
  for (const { t, value, weight } of nodes) {
    const at = frame.x(t);
    const part = weight / most;
    context.globalAlpha = 0.45;
    context.fillRect(at - 2, frame.bottom - tallest * part, 4, tallest * part);
    context.globalAlpha = 0.9;
    context.beginPath();
    context.arc(at, frame.y(value), 1.5 + 3.5 * Math.sqrt(part), 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
}

function tangent(context, frame, colour, x, y, slope, halfLength) {
  if (!Number.isFinite(y) || !Number.isFinite(slope)) return;
  // as long in pixels whatever its slope
  const dx = frame.x(x + halfLength) - frame.x(x);
  const dy = frame.y(y + slope * halfLength) - frame.y(y);
  const length = (0.2 * (frame.right - frame.left)) / Math.hypot(dx, dy);
  const [at, down] = [frame.x(x), frame.y(y)];
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 3;
  context.beginPath();
  context.moveTo(at - length * dx, down - length * dy);
  context.lineTo(at + length * dx, down + length * dy);
  context.stroke();
  context.beginPath();
  context.arc(at, down, 4.5, 0, 2 * Math.PI);
  context.fill();
}
