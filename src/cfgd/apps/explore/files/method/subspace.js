// Steps in the span of a few terminals and the scaled gradients there.

import {
  EPS, inner, largest, moved, plus, product, quotient, sizeOf, times,
} from "./algebra.js";

const TERMINALS = 16;
const GROWTH = 4; // how much longer a step becomes where the last one met no curvature

// A step and the change of the gradient along it; `grew`: the gradient did, beyond rounding.
export function pairOf(step, change) {
  const along = inner(step, change);
  const squares = inner(change, change);
  const grew = along > 1e-12 * Math.sqrt(inner(step, step)) * Math.sqrt(squares);
  return { step, change, along, squares, grew };
}

// Of steps, oldest first, only those along which the gradient grew are kept; the others leave an
// empty place. Of probes, `settled` keeps these.
export class Memory {
  constructor(pairs = [], flat = false) {
    this.pairs = pairs;
    this.flat = flat; // along the last step the gradient did not grow
  }

  then(pair) {
    const place = pair.grew ? pair : EMPTY;
    return new Memory([...this.pairs, place].slice(-TERMINALS), !pair.grew);
  }

  // with more of place j: half of a probe
  plus(j, step, change) {
    const old = this.pairs[j] ?? EMPTY;
    const pairs = [...this.pairs];
    pairs[j] = pairOf(plus(old.step, step), plus(old.change, change));
    return new Memory(pairs);
  }

  settled() {
    return new Memory(this.pairs.map((pair) => (pair.grew ? pair : EMPTY)));
  }

  // the last pair that is not empty, or none
  get last() {
    return this.pairs.findLast((pair) => pair.grew);
  }
}

const EMPTY = { step: [0, 0], change: [0, 0], along: 1, squares: 0, grew: false };

// p = eta (P^-1 g + gamma (x - c) + ...), in the span of x - c and of P^-1 times the gradients, for
// the last terminals c and for x. The weights are those of L-BFGS, whose two loops are two
// triangular systems: with R the products s_i'y_j of steps with changes that are not older,
// a = R^-1 S g and q = g - Y'a; then p = eta P^-1 q + S'b with R'b = D a - eta Y P^-1 q.
export function bestDirection(memory, g, P, step) {
  const { pairs, last } = memory;
  const n = pairs.length;
  const R = (i, j) => (i === j ? pairs[i].along : inner(pairs[i].step, pairs[j].change));
  const a = pairs.map((pair) => inner(pair.step, g));
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let j = n - 1; j > i; j -= 1) a[i] -= R(i, j) * a[j];
    a[i] /= R(i, i);
  }
  const eta = last ? last.along / inner(last.change, quotient(last.change, P)) : 1;
  let p = g;
  pairs.forEach((pair, i) => { p = moved(p, -a[i], pair.change); });
  p = product(p, quotient([eta, eta], P));
  const b = pairs.map((pair, i) => R(i, i) * a[i] - inner(pair.change, p));
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < i; j += 1) b[i] -= R(j, i) * b[j];
    b[i] /= R(i, i);
  }
  pairs.forEach((pair, i) => { p = moved(p, b[i], pair.step); });
  if (memory.flat) p = lengthened(p, P, step);
  const slope = inner(g, p);
  if (slope > 0 && slope < Infinity) return { p, slope, eta, gamma: n ? b[n - 1] / eta : 0 };
  const scaled = quotient(g, P);
  return { p: scaled, slope: inner(g, scaled), eta: 1, gamma: 0 };
}

function lengthened(p, P, step) {
  const length = sizeOf(p, P);
  const least = GROWTH * sizeOf(step, P);
  return least > length && length > 0 ? times(least / length, p) : p;
}

// Newton's step of the two probes, which are orthogonal in the norm of P. Curvatures below `noise`,
// as a part of the largest one, are not known: the step takes them for that, the promise for zero
// to rounding, unless the gradient is zero to rounding along them. Where such a direction moves
// coordinates that went `far`, it leads to infinity, and promises that.
export function lookedDirection(memory, g, P, size, least, far) {
  const { pairs } = memory;
  const scale = pairs.map(({ step }) => {
    const norm = sizeOf(step, P);
    return norm > 0 ? 1 / norm : 0;
  });
  const among = (i, j) => scale[i] * inner(pairs[i].step, pairs[j].change) * scale[j];
  const unequal = Math.sqrt(2 * (among(0, 1) - among(1, 0)) ** 2); // what rounding makes of it
  const middle = (among(0, 1) + among(1, 0)) / 2;
  const { values: curvatures, vectors } = eigenvalues(among(0, 0), middle, among(1, 1));
  const absolute = curvatures.map(Math.abs);
  const top = largest(absolute);
  // of each curvature, a unit vector
  const ways = vectors.map(([first, second]) =>
    plus(times(first * scale[0], pairs[0].step), times(second * scale[1], pairs[1].step)),
  );
  const slopes = ways.map((way) => inner(way, g));
  const noise = Math.max(least, (4 * unequal) / top);
  const known = absolute.map((one) => one > noise * top);
  const weights = ways.map((way) => product(P, product(way, way)));

  const best = slopes.map((slope, i) => slope / (known[i] ? absolute[i] : noise * top));
  const most = slopes.map((slope, i) => {
    const none = !known[i] && Math.abs(slope) <= 4 * EPS * top * size;
    return none ? 0 : slope / (known[i] ? absolute[i] : EPS * top);
  });
  const p = plus(times(best[0], ways[0]), times(best[1], ways[1]));
  const downwards = inner(ways[0], g) < 0 ? times(-1, ways[0]) : ways[0];
  const endless = weights.some(
    (weight, i) => !known[i] && weight[0] * far[0] + weight[1] * far[1] > 0.1,
  );
  const length = endless ? Infinity : Math.sqrt(inner(most, most));
  const decrease = length < Infinity ? inner(slopes, most) / 2 : Infinity;
  const unknown = weights.findIndex((weight, i) => !known[i] && weight[0] + weight[1] > 0.5);
  const downhill = known[0] && curvatures[0] < 0;
  return {
    p,
    decrease,
    length,
    // as a part of the largest one; negative at a saddle
    least: downhill ? curvatures[0] / top : 0,
    downwards,
    flat: unknown < 0 ? [0, 0] : ways[unknown],
    convex: unknown < 0 && !downhill, // all curvatures are known, and positive
  };
}

// Of the symmetric matrix ((a, b), (b, c)), ascending, with their vectors, by one rotation.
function eigenvalues(a, b, c) {
  if (![a, b, c].every(Number.isFinite)) {
    return { values: [NaN, NaN], vectors: [[NaN, NaN], [NaN, NaN]] };
  }
  if (b === 0) {
    return a <= c
      ? { values: [a, c], vectors: [[1, 0], [0, 1]] }
      : { values: [c, a], vectors: [[0, 1], [1, 0]] };
  }
  const half = (c - a) / (2 * b);
  const t = (half < 0 ? -1 : 1) / (Math.abs(half) + Math.hypot(half, 1));
  const cosine = 1 / Math.hypot(t, 1);
  const sine = t * cosine;
  const first = { value: a - t * b, vector: [cosine, -sine] };
  const second = { value: c + t * b, vector: [sine, cosine] };
  const [low, high] = first.value <= second.value ? [first, second] : [second, first];
  return { values: [low.value, high.value], vectors: [low.vector, high.vector] };
}
