// Vectors of two numbers.

export const EPS = Number.EPSILON;
export const TINY = 2 ** -1022; // the least normal number

export const plus = (a, b) => [a[0] + b[0], a[1] + b[1]];
export const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
export const times = (s, a) => [s * a[0], s * a[1]];
export const product = (a, b) => [a[0] * b[0], a[1] * b[1]];
export const quotient = (a, b) => [a[0] / b[0], a[1] / b[1]];
export const inner = (a, b) => a[0] * b[0] + a[1] * b[1];
export const sizes = (a) => [Math.abs(a[0]), Math.abs(a[1])];
export const largest = (a) => Math.max(a[0], a[1]);
export const isZero = (a) => a[0] === 0 && a[1] === 0;

// a + s b
export const moved = (a, s, b) => [a[0] + s * b[0], a[1] + s * b[1]];

// the norm of v, its coordinates weighted by P
export const sizeOf = (v, P) => Math.sqrt(inner(product(P, v), v));

// the root of the mean square
export const typical = (v) => Math.sqrt(inner(v, v) / 2);

// |D|, not smaller than a fraction of its largest entry; ones where there is none
export function positive(D, least) {
  const all = sizes(D);
  const most = largest(all);
  if (!(most > 0 && most < Infinity)) return [1, 1];
  return all.map((one) => Math.max(one, least * most));
}
