// The step to try next, and what it promises: from steps that were made, or from probes.

import { inner, isZero, largest, minus, quotient, sizeOf, sizes, times, typical } from "./algebra.js";
import { NOISE } from "./probe.js";
import { firstStep, furthest } from "./scaling.js";
import { bestDirection, lookedDirection } from "./subspace.js";
import { AWAY, trialOf } from "./trial.js";

// a valley along which x has grown by this factor is taken to lead to infinity
const FAR = 1e2;
// how far to look along a valley that is flat, as a part of the size of x
const ASIDE = 2;

// The step that the memory knows of, and, near the end, whether it promises anything.
export function planOfSteps(around, step, reach, first, near, tolerance) {
  const { memory, point, start, P } = around;
  const g = point.gradient;
  let { p, slope, eta, gamma } = bestDirection(memory, g, P, step);
  if (first && start.norm > 0) {
    // nothing is known of the scale yet
    p = firstStep(point.x, g);
    slope = inner(g, p);
  }
  const trial = stepOf(around, p, slope, reach, eta, gamma, false);
  const quiet = near && isQuiet(around, p, slope / 2, sizeOf(p, P), tolerance);
  return { trial, quiet };
}

// Newton's step of the curvature around the point, or `aside`, and whether it promises much.
// A saddle is left where the gradient is near zero, and where no step helps (stuck), if its
// curvature is clear beside the largest one in the units of x, too. `blur` is what is not known of
// curvatures.
export function planOfProbes(around, near, tolerance, aside, stuck, blur) {
  const { memory, point, start, P } = around;
  const { x, gradient: g } = point;
  const size = around.size();
  const usual = typical(start.x);
  const far = x.map((one, j) => Math.abs(one) > FAR * (Math.abs(start.x[j]) + usual));
  const known = isZero(start.x) ? [false, false] : far;
  const found = lookedDirection(memory, g, P, size, blur, known.map(Number));
  const down = found.downwards;
  const clear = -found.least > NOISE * inner(down, down) * Math.max(...P);
  const leaves = found.least < 0 && (near || (stuck && clear));
  const unit = size > 0 ? size : 1;
  let p = leaves ? times(unit, down) : found.p;
  if (!leaves && !(inner(g, p) > 0)) p = quotient(g, P); // without any curvature
  const trial = stepOf(around, p, inner(g, p), 1, 1, 0, leaves);
  if (leaves) trial.aside = aside;
  const quiet = isQuiet(around, p, found.decrease, found.length, tolerance);
  const flat = alongValley(around, times(unit, found.flat));
  return { trial, quiet, flat, convex: found.convex };
}

// As far along a flat valley as its scaled size says, and as x is large.
function alongValley(around, flat) {
  const { x } = around.point;
  const x0 = around.start.x;
  const usual = Math.sqrt(Math.max(inner(x, x), inner(x0, x0)) / 2);
  const known = sizes(x).map((one) => one + usual);
  if (!known.every((one) => one > 0)) return [0, 0];
  const most = Math.max(largest(quotient(sizes(flat), known)), 1);
  return flat.map((one) => (ASIDE * one) / most);
}

function stepOf(around, p, slope, reach, eta, gamma, leaves) {
  const part = Math.min(furthest(around.point.x, around.start.x, p), reach);
  const t = leaves ? reach : part; // at a saddle the size of x may say nothing
  return trialOf(p, { slope, t, eta, gamma, leaves });
}

// Whether a step that lowers f by `decrease` and is of some `length` is no more than asked.
function isQuiet(around, p, decrease, length, tolerance) {
  const { x, value } = around.point;
  const usual = typical(x);
  const away = sizes(minus(x, around.start.x));
  const known = sizes(x).map((one, j) => one + AWAY * (away[j] + usual));
  const small =
    decrease <= (tolerance / 100) * Math.abs(value) &&
    p.every((one, j) => Math.abs(one) <= tolerance ** 0.5 * known[j]);
  return small || length <= tolerance * around.size();
}
