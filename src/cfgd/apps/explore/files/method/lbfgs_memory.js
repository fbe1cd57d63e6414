// The memory of L-BFGS and the diagonal preconditioner: cfgd/methods/auto/lbfgs_memory.py.

import {
  absolute, inner, largest, minus, moved, product, quotient, times, typicalSize, weightedNorm,
} from "./algebra.js";
import { curvatureAtEnd } from "./cubic.js";

const PAIRS = 16; // in the memory
// How many times the last step the next one is at least, where the last one met no curvature.
const GROWTH = 4;
// Size that a coordinate has at least in the first step, relative to the root mean square of x.
const SMALLEST = 1e-3;
// Cosine of the angle between step and change below which the curvature may be rounding errors.
const LEAST_COSINE = 1e-12;
// Largest ratio of the curvature at the end of a step to the average one, and of its inverse.
const LARGEST_FACTOR = 10;
// Curvature along a step, as a share of f, above which values of f show how it changes.
const SEEN = 1e-5;

// Return a step with the change of the gradient along it, and whether the curvature is positive.
function pairOf(step, change) {
  const stepChange = inner(step, change);
  const change2 = inner(change, change);
  const isPositive = stepChange > LEAST_COSINE * Math.sqrt(inner(step, step)) * Math.sqrt(change2);
  return { step, change, stepChange, change2, isPositive };
}

// Return the pair of a step, with the curvature that f has along it at its end: that of the cubic
// through the values and slopes at both ends.
export function pairBetween(old, at) {
  const pair = pairOf(minus(at.x, old.x), minus(at.gradient, old.gradient));
  const hidden = SEEN * Math.max(Math.abs(old.value), Math.abs(at.value));
  if (!(pair.isPositive && pair.stepChange > hidden)) return pair;
  const trial = (t, { value, gradient }) => ({ t, value, slope: inner(gradient, pair.step) });
  const curvature = curvatureAtEnd(trial(0, old), trial(1, at));
  const factor = Math.min(Math.max(curvature / pair.stepChange, 1 / LARGEST_FACTOR), LARGEST_FACTOR);
  return {
    ...pair,
    change: times(factor, pair.change),
    stepChange: factor * pair.stepChange,
    change2: factor ** 2 * pair.change2,
  };
}

const EMPTY = { step: [0, 0], change: [0, 0], stepChange: 1, change2: 0, isPositive: false };

// The last pairs, oldest first; empty where the curvature along a step was not positive.
export class Memory {
  constructor(pairs = [], isFlat = false) {
    this.pairs = pairs.map((pair) => (pair.isPositive ? pair : EMPTY));
    this.isFlat = isFlat; // the curvature along the last step was not positive
  }

  static ofProbes(probes) {
    return new Memory(probes.map(({ step, change }) => pairOf(step, change)));
  }

  add(pair) {
    return new Memory([...this.pairs, pair].slice(-PAIRS), !pair.isPositive);
  }

  // the last pair that is not empty, or none
  get last() {
    return this.pairs.findLast((pair) => pair.isPositive);
  }
}

// Return the inverse L-BFGS matrix times g, by two triangular systems: with R the products s_i'y_j of
// steps with changes that are not older, a = R^-1 S g and q = g - Y'a, p = eta P^-1 q + S'b where
// R'b = D a - eta Y P^-1 q. Where rounding leaves no descent, p is P^-1 g.
export function lbfgsDirection(memory, g, P, lastStep) {
  const { pairs, last } = memory;
  const n = pairs.length;
  const R = (i, j) => (i === j ? pairs[i].stepChange : inner(pairs[i].step, pairs[j].change));
  const a = pairs.map((pair) => inner(pair.step, g));
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let j = n - 1; j > i; j -= 1) a[i] -= R(i, j) * a[j];
    a[i] /= R(i, i);
  }
  const eta = last ? last.stepChange / inner(last.change, quotient(last.change, P)) : 1;
  let p = g;
  pairs.forEach((pair, i) => { p = moved(p, -a[i], pair.change); });
  p = product(p, quotient([eta, eta], P));
  const b = pairs.map((pair, i) => R(i, i) * a[i] - inner(pair.change, p));
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < i; j += 1) b[i] -= R(j, i) * b[j];
    b[i] /= R(i, i);
  }
  pairs.forEach((pair, i) => { p = moved(p, b[i], pair.step); });
  if (memory.isFlat) {
    const length = weightedNorm(p, P);
    const longer = GROWTH * weightedNorm(lastStep, P);
    if (longer > length && length > 0) p = times(longer / length, p);
  }
  const slope = inner(g, p);
  if (slope > 0 && slope < Infinity) return { p, slope };
  const scaled = quotient(g, P);
  return { p: scaled, slope: inner(g, scaled) };
}

// Return a multiple of g that moves no coordinate by more than a tenth of its size; at x = 0 its
// length is one.
export function firstStep(x, g) {
  const typical = typicalSize(x);
  const tenths = absolute(x).map((size) => Math.max(size, SMALLEST * typical) / 10);
  const length = typical === 0 ? Math.sqrt(inner(g, g)) : largest(absolute(quotient(g, tenths)));
  return length > 0 ? g.map((slope) => slope / length) : g;
}

// Return the diagonal of the BFGS update of t diag(D), with t = y' diag(D)^-1 y / s'y, or D where
// the update is not positive.
export function secantDiagonal(D, { step, change, stepChange, change2, isPositive }) {
  if (!(isPositive && change2 / stepChange < Infinity)) return D;
  const scaled = times(inner(change, quotient(change, D)) / stepChange, D);
  const weighted = product(scaled, step);
  const size = inner(step, weighted);
  if (!(size > 0 && size < Infinity)) return D;
  const removed = weighted.map((entry) => (entry / size) * entry);
  const added = change.map((entry) => (entry / stepChange) * entry);
  const updated = minus(scaled, removed).map((entry, j) => entry + added[j]);
  return Math.min(...updated) > 0 ? updated : D;
}
