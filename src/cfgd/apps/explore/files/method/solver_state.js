// The start of a run, and when a predicted change is negligible: cfgd/methods/auto/state.py.

import { EPS, absolute, inner, minus, moved, product, typicalSize, weightedNorm } from "./algebra.js";

// Share of the distance from the start that is added to the size of x, with which steps are
// compared: at a solution near zero the size of x alone would be nothing.
const TRAVELLED = 1e-3;
// Factor between the fall of f from the start and the one that the curvature at x explains, beyond
// which the start is forgotten.
const BAD_START = 1e8;
// Multiples of x - x0 at which an unbounded function is evaluated, up to 1/eps, and the factor by
// which its fall grows at least from one to the next.
const RAY = [1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14, 1e16];
const RAY_GROWTH = 10;
// Where f rises along the ray, it is evaluated there again after f has fallen by so many times more.
const NEXT_FALL = 1e4;
// A predicted decrease below so many rounding units of f is hidden by rounding.
const HIDDEN_UNITS = 1e3;

// The start, with which later points are compared.
export class Start {
  constructor({ x, value, gradient }) {
    this.x = x;
    this.value = value;
    this.norm = Math.sqrt(inner(gradient, gradient));
    this.scale = Math.abs(value) + this.norm * (1 + Math.sqrt(inner(x, x)));
  }

  withScale(scale) {
    return Object.assign(Object.create(Start.prototype), this, { scale });
  }

  // Take the scale from a later point where value and gradient were zero at the start.
  withScaleOf(evaluation) {
    return this.scale > 0 ? this : this.withScale(new Start(evaluation).scale);
  }

  // Return whether the way from the start says nothing about the size of x: f fell by far more or
  // less than it would have with curvatures like those at x.
  isBadFor({ x, value }, scaling) {
    const fall = this.value - value;
    const away = minus(x, this.x);
    const expected = inner(product(scaling, away), away) / 2;
    return !(expected / BAD_START <= fall && fall <= BAD_START * expected);
  }

  // Return whether f fell by 1/eps^2 times its scale, as unbounded functions do.
  hasFallenFar(value) {
    const fell = this.scale > 0 && value < this.value - this.scale / EPS ** 2;
    return fell || value === -Infinity;
  }
}

// Return |x| plus a share of |x - x0|, in the norm with weights `scaling`.
export function sizeOfX(x, start, scaling) {
  return weightedNorm(x, scaling) + TRAVELLED * weightedNorm(minus(x, start.x), scaling);
}

// Return whether a predicted step changes neither f nor x by more than the tolerance: it lowers f by
// at most tolerance/100 |f| and moves no coordinate by more than sqrt(tolerance) times its size, or
// its `length`, in the norm with weights `scaling`, is at most tolerance |x|.
export function changeIsNegligible({ x, value }, start, scaling, step, decrease, length, tolerance) {
  // in units of each coordinate, by its curvature; a flat one counts as no larger than the others
  const norm = weightedNorm(x, scaling);
  const most = typicalSize(x);
  const typical = scaling.map((weight) => Math.min(norm / Math.sqrt(2 * weight), most));
  const travelled = absolute(minus(x, start.x));
  const sizes = absolute(x).map((size, j) => size + TRAVELLED * (travelled[j] + typical[j]));
  const isSmall =
    decrease <= (tolerance / 100) * Math.abs(value) &&
    step.every((move, j) => Math.abs(move) <= tolerance ** 0.5 * sizes[j]);
  return isSmall || length <= tolerance * sizeOfX(x, start, scaling);
}

// Return whether a predicted decrease of f is negligible, or hidden by rounding: beside f, or beside
// the fall of f from a start that is not bad.
export function decreaseIsHidden(evaluation, start, scaling, decrease, tolerance) {
  const { value } = evaluation;
  if (decrease <= Math.max(tolerance / 100, HIDDEN_UNITS * EPS) * Math.abs(value)) return true;
  const isSmall = decrease <= tolerance ** 2 * (start.value - value);
  return isSmall && !start.isBadFor(evaluation, scaling);
}

// Return the start to compare with from now on, and whether f falls without bound: it has fallen far
// and goes on falling along the ray from the start through x. The fall alone proves nothing where
// value and gradient of the start nearly underflow; the scale then grows with the fall.
export function detectUnbounded(oracle, before, evaluation) {
  const start = before.withScaleOf(evaluation);
  if (!start.hasFallenFar(evaluation.value)) return { start, isUnbounded: false };
  const away = minus(evaluation.x, start.x);
  const fallSoFar = start.value - evaluation.value;
  let fall = fallSoFar;
  for (const multiple of RAY) {
    if (fall === Infinity) break;
    const further = start.value - oracle.value(moved(start.x, multiple, away));
    if (!(further >= RAY_GROWTH * fall)) {
      return { start: start.withScale(NEXT_FALL * EPS ** 2 * fallSoFar), isUnbounded: false };
    }
    fall = further;
  }
  return { start, isUnbounded: true };
}
