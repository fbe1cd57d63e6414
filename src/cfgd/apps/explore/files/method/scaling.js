// How long steps may be, and the curvature diagonal by which coordinates are scaled.

import { inner, largest, minus, positive, product, quotient, sizes, typical } from "./algebra.js";

// of the curvature that the first step meets, the part that all coordinates start with
const FIRST = 0.1;
// of the typical coordinate, the size that one counts for at least in the first step
const SMALLEST = 1e-3;
// times its size that a coordinate may move in one step
const FURTHEST = 10;

// Along the gradient, no coordinate by more than a tenth of its size; of length one from 0.
export function firstStep(x, g) {
  const usual = typical(x);
  const most = largest(
    sizes(quotient(g, sizes(x).map((one) => Math.max(one, SMALLEST * usual) / 10))),
  );
  const length = usual === 0 ? Math.sqrt(inner(g, g)) : most;
  return length > 0 ? g.map((one) => one / length) : g;
}

// The part of p that moves no coordinate by more than many times what is known of its size.
export function furthest(x, x0, p) {
  const typical2 = inner(x, x) / 2;
  if (!(inner(p, p) > FURTHEST ** 2 * typical2)) return 1;
  const usual = Math.sqrt(typical2);
  const known = x.map((one, j) => Math.abs(one - x0[j]) + Math.abs(one) + usual);
  const most = largest(quotient(sizes(p), known));
  return typical2 > 0 && most > FURTHEST ? FURTHEST / most : 1;
}

// P: a diagonal that the gradients seen keep true.
export function newScaling(P, pair, k) {
  if (k < 0) return P;
  return secantDiagonal(k === 0 ? firstScaling(pair) : P, pair);
}

// That of probes along every coordinate.
export function probedScaling(memory) {
  const diagonal = memory.pairs.map(({ step, change }, j) => change[j] / step[j]);
  return positive(diagonal, 1e-30);
}

// Of all coordinates a part of the curvature that the first step has met. A small one: the secant
// update adds to it where it sees more, and takes little away.
function firstScaling({ along, squares }) {
  const curvature = along > 0 ? (FIRST * squares) / along : 1;
  const one = curvature < Infinity ? curvature : 1;
  return [one, one];
}

// The diagonal of the BFGS update of diag(D), where it is positive.
function secantDiagonal(D, { step, change, along, squares, grew }) {
  const weighted = product(D, step);
  const size = inner(step, weighted);
  if (!(grew && squares / along < Infinity && size > 0)) return D;
  const less = weighted.map((one) => (one / size) * one);
  const more = change.map((one) => (one / along) * one);
  const added = minus(D, less).map((one, j) => one + more[j]);
  return Math.min(...added) > 0 ? added : D;
}
