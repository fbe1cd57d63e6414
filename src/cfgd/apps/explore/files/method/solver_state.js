// The start of a run, and when a predicted change is negligible: cfgd/methods/auto/state.py.

import { EPS, absolute, inner, minus, typicalSize, weightedNorm } from "./algebra.js";

// Share of the distance from the start that is added to the size of x, with which steps are
// compared: at a solution near zero the size of x alone would be nothing.
const TRAVELLED = 1e-3;

// The start, with which later points are compared.
export class Start {
  constructor({ x, value, gradient }) {
    this.x = x;
    this.value = value;
    this.norm = Math.sqrt(inner(gradient, gradient));
    this.scale = Math.abs(value) + this.norm * (1 + Math.sqrt(inner(x, x)));
  }

  // Take the scale from a later point where value and gradient were zero at the start.
  withScaleOf(evaluation) {
    if (this.scale > 0) return this;
    const { scale } = new Start(evaluation);
    return Object.assign(Object.create(Start.prototype), this, { scale });
  }

  // Return whether f fell by 1/eps^2 times its scale, as only an unbounded function does.
  isUnboundedAt(value) {
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
  const typical = typicalSize(x);
  const travelled = absolute(minus(x, start.x));
  const sizes = absolute(x).map((size, j) => size + TRAVELLED * (travelled[j] + typical));
  const isSmall =
    decrease <= (tolerance / 100) * Math.abs(value) &&
    step.every((move, j) => Math.abs(move) <= tolerance ** 0.5 * sizes[j]);
  return isSmall || length <= tolerance * sizeOfX(x, start, scaling);
}

// Return whether the gradient grew by 1/eps^0.6 while f fell, as at a pole.
export function gradientExploded({ norm2, evaluation, start }) {
  const exploded = start.norm > 0 && norm2 > start.norm ** 2 / EPS ** 1.2;
  return exploded && evaluation.value < start.value;
}
