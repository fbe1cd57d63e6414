// Contours: shades and level lines of a function, computed once for a view and kept as a bitmap.

import { channels } from "./drawing_style.js";

const GRID = 168; // cells along each side
const LEVELS = 17;
const SAMPLED = 7; // of so many heights, one says how levels are spread
const HALF = 0.55; // of the width of a line, in pixels

export function heights(objective, [x0, x1, y0, y1]) {
  const n = GRID + 1;
  const values = new Float64Array(n * n);
  const { tape } = objective;
  for (let i = 0; i < n; i += 1) {
    const y = y1 + ((y0 - y1) * i) / GRID;
    for (let j = 0; j < n; j += 1) values[i * n + j] = tape.value(x0 + ((x1 - x0) * j) / GRID, y);
  }
  return values;
}

// Heights as numbers in which levels are one apart: logarithms of what lies above the least one,
// in units of what few points lie below.
export function graded(values) {
  const some = values.filter((value, i) => i % SAMPLED === 0 && Number.isFinite(value)).sort();
  if (some.length === 0) return values.fill(NaN);
  let least = some[0];
  for (const value of values) if (value < least && value > -Infinity) least = value;
  const part = (share) => some[Math.floor(share * (some.length - 1))] - least;
  const unit = part(0.02) || part(0.2) || part(1) || 1;
  const top = Math.log1p(part(0.995) / unit) || 1;
  return values.map((value) => (LEVELS * Math.log1p((value - least) / unit)) / top);
}

// Every pixel is between four heights: its own is theirs, and a line is drawn where a level is
// nearer than half of its width.
export function drawContours({ context, canvas }, grades, style) {
  const { width, height } = canvas;
  if (width === 0 || height === 0) return; // the page has no layout yet
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const n = GRID + 1;
  const shades = palette(style);
  const none = coloured(channels(style.faint));
  const [across, down] = [GRID / width, GRID / height];
  for (let row = 0, pixel = 0; row < height; row += 1) {
    const v = (row + 0.5) * down;
    const i = Math.floor(v);
    const b = v - i;
    for (let column = 0; column < width; column += 1, pixel += 1) {
      const u = (column + 0.5) * across;
      const j = Math.floor(u);
      const a = u - j;
      const at = i * n + j;
      const left = grades[at] + b * (grades[at + n] - grades[at]);
      const right = grades[at + 1] + b * (grades[at + n + 1] - grades[at + 1]);
      const grade = left + a * (right - left);
      const above = grades[at] + a * (grades[at + 1] - grades[at]);
      const below = grades[at + n] + a * (grades[at + n + 1] - grades[at + n]);
      const dx = (right - left) * across;
      const dy = (below - above) * down;
      const far = Math.abs(grade - Math.round(grade)) / Math.sqrt(dx * dx + dy * dy); // in pixels
      const ink = grade > 0.5 ? Math.min(Math.max(HALF + 0.5 - far, 0), 1) : 0;
      const part = Math.min(Math.max(grade / LEVELS, 0), 1);
      const shade = Math.round(part * (SHADES - 1)) * INKS + Math.round(ink * (INKS - 1));
      pixels[pixel] = grade < Infinity ? shades[shade] : none;
    }
  }
  context.putImageData(image, 0, 0);
}

const SHADES = 128;
const INKS = 8;

// The colour of every shade with every part of a line on it.
function palette(style) {
  const [low, high, line] = [style.low, style.high, style.contour].map(channels);
  return Uint32Array.from({ length: SHADES * INKS }, (_, i) => {
    const part = Math.floor(i / INKS) / (SHADES - 1);
    const ink = ((i % INKS) / (INKS - 1)) * style.inked;
    return coloured(
      low.map((from, c) => {
        const shade = from + (high[c] - from) * part;
        return shade + (line[c] - shade) * ink;
      }),
    );
  });
}

// Red, green and blue as a pixel has them, on every machine that browsers run on.
const coloured = ([r, g, b]) => Math.round(r) + Math.round(g) * 2 ** 8 + Math.round(b) * 2 ** 16 + 255 * 2 ** 24;
