// The next point to look at, x + aside - t p, and what came of it.

import { EPS, TINY, inner, minus, sizeOf } from "./algebra.js";

// x counts as no smaller than this part of the way from the start: the solution may be zero
export const AWAY = 1e-3;

// `probe` is its number, or -1 for a step; `leaves`: it follows negative curvature away from a
// saddle; `aside` is zero, unless a flat valley is looked along.
export function trialOf(p, fields = {}) {
  return {
    p, slope: 0, t: 1, tries: 0, eta: NaN, gamma: NaN, probe: -1, leaves: false, aside: [0, 0],
    ...fields,
  };
}

// What is known of the start.
export class Start {
  constructor({ x, value }, norm2) {
    this.x = x;
    this.value = value;
    this.norm = Math.sqrt(norm2);
    // all that values there may be compared with
    this.known = Math.abs(value) + this.norm * (1 + Math.sqrt(inner(x, x)));
  }

  // Where value and gradient were zero at the start, values are compared with later ones.
  learns(point, norm2) {
    if (this.known > 0) return this;
    const { known } = new Start(point, norm2);
    return Object.assign(Object.create(Start.prototype), this, { known });
  }

  // Whether f fell by 1/eps^2 times all that the start knows of: it falls without end.
  isFarAbove(value) {
    const fell = this.known > 0 && value < this.value - this.known / EPS ** 2;
    return fell || value === -Infinity;
  }
}

// A point and what is known around it.
export class Around {
  constructor(memory, point, start, P) {
    Object.assign(this, { memory, point, start, P });
  }

  // of x in the norm of P; no smaller than a part of the way from the start
  size() {
    const { x } = this.point;
    return sizeOf(x, this.P) + AWAY * sizeOf(minus(x, this.start.x), this.P);
  }
}

// Whether f(x - t p) <= f(x) - t <g, p> / 10^4, and the value as it counts. Where rounding may hide
// the decrease that a trial promises, any non-increase will do, and slopes at both ends say what
// is none.
export function judged(trial, point, at) {
  const { value } = point;
  const { slope, leaves } = trial;
  const enough =
    at.value <= value - 1e-4 * trial.t * slope && (!leaves || at.value < value);
  if (enough || leaves) return { good: enough, value: at.value };
  const hides = slope <= EPS ** 0.6 * Math.abs(value) + 1e3 * TINY;
  const flat = inner(at.gradient, trial.p) >= -0.8 * slope;
  const same = hides && flat && at.value <= value + EPS ** 0.8 * Math.abs(value) + TINY;
  const seen = same && value < at.value ? value : at.value;
  return { good: hides && seen <= value, value: seen };
}

export function shorter(trial, point, value) {
  const { t, slope } = trial;
  const parabola = (slope * t * t) / (2 * (value - point.value + slope * t));
  const inside = Math.min(Math.max(parabola, t / 10), t / 2);
  const finite = Math.abs(parabola) < Infinity;
  return { ...trial, t: finite ? inside : t / 10, tries: trial.tries + 1 };
}
