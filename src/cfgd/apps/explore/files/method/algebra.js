// Arithmetic of vectors with two coordinates, and of symmetric matrices of them.

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

// Return eigenvalues, ascending, and eigenvectors of ((a, b), (b, c)); NaN where it is not finite.
//
// The formulas are those of LAPACK's dlaev2, and so are the signs of the vectors: they decide to
// which side of a symmetric saddle the library goes first.
export function symmetricEigen(a, b, c) {
  if (![a, b, c].every(Number.isFinite)) {
    return { values: [NaN, NaN], vectors: [[NaN, NaN], [NaN, NaN]] };
  }
  // LAPACK's rounding unit is EPS / 2: an entry below it beside the others counts as zero (dsteqr)
  if (Math.abs(b) <= Math.sqrt(Math.abs(a)) * Math.sqrt(Math.abs(c)) * (EPS / 2)) {
    return a <= c
      ? { values: [a, c], vectors: [[1, 0], [0, 1]] }
      : { values: [c, a], vectors: [[0, 1], [1, 0]] };
  }
  const sum = a + c;
  const root = Math.hypot(a - c, 2 * b);
  const [more, less] = Math.abs(a) > Math.abs(c) ? [a, c] : [c, a];
  const sign = sum < 0 ? -1 : 1;
  const first = sum === 0 ? root / 2 : (sum + sign * root) / 2; // the larger one in size
  const second = sum === 0 ? -root / 2 : (more / first) * less - (b / first) * b;
  const far = a >= c ? a - c + root : a - c - root;
  let [cosine, sine] = [0, 0];
  if (Math.abs(far) > Math.abs(2 * b)) {
    const cotangent = (-2 * b) / far;
    sine = 1 / Math.sqrt(1 + cotangent * cotangent);
    cosine = cotangent * sine;
  } else {
    const tangent = -far / (2 * b);
    cosine = 1 / Math.sqrt(1 + tangent * tangent);
    sine = tangent * cosine;
  }
  if (sign === (a >= c ? 1 : -1)) [cosine, sine] = [-sine, cosine];
  const ofFirst = [cosine, sine];
  const ofSecond = [-sine, cosine];
  return first <= second
    ? { values: [first, second], vectors: [ofFirst, ofSecond] }
    : { values: [second, first], vectors: [ofSecond, ofFirst] };
}
