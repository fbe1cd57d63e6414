// The backtracking line search of L-BFGS: cfgd/methods/auto/line_search.py.

import { EPS, TINY, inner, moved, plus } from "./algebra.js";
import { trialBetween } from "./cubic.js";
import { detectUnbounded } from "./solver_state.js";

// Share of the decrease along the slope that a step must achieve.
const ACCEPT = 1e-4;
// How often a step is shortened at most, each time at least to its half.
const MOST_TRIES = 40;
// Powers of eps that say when rounding hides a decrease: of slopes, and of values.
const HIDDEN_SLOPE = 0.6;
const HIDDEN_CHANGE = 0.8;
// Slope at the end of a step whose decrease is hidden, relative to that at its start.
const SLOPE_AT_END = 0.8;

// Return the next line search, along x + offset - t p, with the first trial t. There is an offset
// where a saddle was found at x + offset; a second search leaves a saddle to the other side.
export function searchAlong(p, slope, t, leavesSaddle = false, offset = null) {
  return { p, slope, t, leavesSaddle, offset, isSecond: false };
}

// Backtrack from the first trial until f decreases by a share of what the slope predicts. Return the
// accepted evaluation and t, or only whether f is unbounded.
export function lineSearch(oracle, origin, search, start) {
  const x = search.offset ? plus(origin.x, search.offset) : origin.x;
  let { t } = search;
  for (let tries = 0; tries <= MOST_TRIES; tries += 1) {
    const at = oracle.evaluate(moved(x, -t, search.p));
    const isFinite = Math.abs(at.value) < Infinity && inner(at.gradient, at.gradient) < Infinity;
    const { enough, value } = decreases(search, t, origin, at);
    if (enough && isFinite) return { evaluation: { ...at, value }, t };
    if (detectUnbounded(oracle, start, at).isUnbounded) return { isUnbounded: true };
    const end = { t, value: at.value, slope: -inner(at.gradient, search.p) };
    t = shorter({ t: 0, value: origin.value, slope: -search.slope }, end);
  }
  return { isUnbounded: false };
}

// Return the next trial, within a tenth and a half of the last one, `end`: the minimum of the cubic
// through values and slopes at both ends where f rises at the end, and otherwise that of the
// parabola through both values and the first slope.
function shorter(start, { t, value, slope: slopeAtEnd }) {
  if (slopeAtEnd > 0) return Math.min(trialBetween(start, { t, value, slope: slopeAtEnd }), t / 2);
  const slope = -start.slope;
  const parabola = (slope * t * t) / (2 * (value - start.value + slope * t));
  return Math.abs(parabola) < Infinity ? Math.min(Math.max(parabola, t / 10), t / 2) : t / 10;
}

// Return whether f decreases by a share of what the slope predicts, and its value as it counts. Where
// rounding may hide the decrease, a value that is not larger is enough, and one that is larger by
// rounding counts as the old one if the slopes at both ends show a decrease.
function decreases({ p, slope, leavesSaddle }, t, { value }, at) {
  const enough = at.value <= value - ACCEPT * t * slope;
  if (leavesSaddle) return { enough: enough && at.value < value, value: at.value };
  if (enough) return { enough, value: at.value };
  const mayHide = slope <= EPS ** HIDDEN_SLOPE * Math.abs(value) + 1e3 * TINY;
  const falls = inner(at.gradient, p) >= -SLOPE_AT_END * slope;
  const mayBeSame = at.value <= value + EPS ** HIDDEN_CHANGE * Math.abs(value) + TINY;
  const isSame = mayHide && falls && mayBeSame;
  const counted = isSame && value < at.value ? value : at.value;
  return { enough: mayHide && counted <= value, value: counted };
}
