// Value against iteration: f minus its least value, on a logarithmic axis.

import { Frame, ticks } from "./canvas.js";

const DEEPEST = 1e-17; // of the first value: beyond is rounding

export function drawChart({ context, width, height }, style, runs, least, k) {
  context.clearRect(0, 0, width, height);
  const gaps = runs.map(([name, { values }]) => [name, values.map((value) => value - least)]);
  const all = gaps.flatMap(([, list]) => list.filter((gap) => gap > 0 && gap < Infinity));
  if (all.length === 0) return;
  const first = Math.max(...gaps.map(([, list]) => list[0]), 1e-300);
  const bottom = Math.max(Math.min(...all), DEEPEST * first);
  const top = Math.min(Math.max(...all), 1e6 * first);
  const low = Math.floor(Math.log10(bottom));
  const high = Math.max(Math.ceil(Math.log10(top)), low + 1);
  const longest = Math.max(...gaps.map(([, list]) => list.length - 1), 1);
  const frame = new Frame({ width, height }, [0, longest, low, high], [8, 12, 24, 44], style.scale);
  const whole = ticks(low, high, 6).filter(Number.isInteger);
  const xs = ticks(0, longest, 6).filter(Number.isInteger);
  frame.grid(context, style, xs, whole, power);
  frame.inside(context, () => {
    context.strokeStyle = style.soft;
    context.lineWidth = 1;
    if (k <= longest) frame.line(context, [[k, low], [k, high]]);
    for (const [name, list] of gaps) {
      const stroke = style.strokes[name];
      context.strokeStyle = stroke.colour;
      context.lineWidth = stroke.width;
      context.setLineDash(stroke.dash);
      // what has arrived, to rounding, goes out at the bottom
      frame.line(context, list.map((gap, i) => [i, gap > 0 ? Math.log10(gap) : gap <= 0 ? low - 3 : NaN]));
    }
    context.setLineDash([]);
  });
}

const DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function power(n) {
  const digits = [...String(Math.abs(n))].map((digit) => DIGITS[Number(digit)]).join("");
  return n === 0 ? "1" : `10${n < 0 ? "⁻" : ""}${digits}`;
}
