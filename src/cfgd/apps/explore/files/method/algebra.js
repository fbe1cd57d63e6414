// Arithmetic of vectors with two coordinates.

export const EPS = Number.EPSILON;
export const TINY = 2 ** -1022; // the smallest normal number

export const plus = (a, b) => [a[0] + b[0], a[1] + b[1]];
export const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
export const times = (s, a) => [s * a[0], s * a[1]];
export const product = (a, b) => [a[0] * b[0], a[1] * b[1]];
export const quotient = (a, b) => [a[0] / b[0], a[1] / b[1]];
export const inner = (a, b) => a[0] * b[0] + a[1] * b[1];
export const absolute = (a) => [Math.abs(a[0]), Math.abs(a[1])];
export const largest = (a) => Math.max(a[0], a[1]);
export const isZero = (a) => a[0] === 0 && a[1] === 0;

// Return a + s b.
export const moved = (a, s, b) => [a[0] + s * b[0], a[1] + s * b[1]];

// Return sqrt(sum_j weight_j v_j^2).
export const weightedNorm = (v, weight) => Math.sqrt(inner(product(weight, v), v));

// Return the root mean square of the coordinates.
export const typicalSize = (v) => Math.sqrt(inner(v, v) / 2);

// Return |diagonal|, entries below `relative` times the largest one raised to that; ones where the
// largest entry is zero or not finite.
export function clipPositive(diagonal, relative) {
  const sizes = absolute(diagonal);
  const most = largest(sizes);
  if (!(most > 0 && most < Infinity)) return [1, 1];
  return sizes.map((size) => Math.max(size, relative * most));
}
