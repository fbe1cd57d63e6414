// The check of the curvature around a point before a run counts as converged:
// cfgd/methods/auto/curvature_check.py, in two dimensions.

import {
  EPS, absolute, inner, isZero, largest, minus, plus, product, quotient, symmetricEigen, times,
  typicalSize, weightedNorm,
} from "./algebra.js";
import { changeIsNegligible, sizeOfX } from "./solver_state.js";

// Where coordinates have grown by this factor along a direction without curvature, the minimiser is
// taken to lie at infinity.
const FAR = 30;
// Distance along a flat valley at which the curvature is checked, too, relative to the size of x.
const VALLEY_DISTANCE = 2;
// How many times its size a coordinate moves at most in one step.
const LONGEST_STEP = 10;
// Size of a coordinate below which a probe moves it no less, relative to the typical one.
const SMALLEST_PROBE = 1e-3;
// Share of the squared length of a unit vector in far coordinates from which on it leads to infinity.
const SHARE_FAR = 0.1;
// Squared length that tells unit vectors from zeros, which stand for no direction.
const NOT_ZERO = 0.5;
// Rounding units of a gradient's entry within which its change along a probe may be rounding alone.
const UNMEASURED_UNITS = 64;
// Such a probe is made longer by this factor, and one along which the curvature changes shorter, at
// most so many times.
const OTHER_LENGTH = 1e4;
const MOST_LENGTHS = 8;
// Share of h (g' - g) / 2 by which f may differ along a probe from its quadratic model.
const NEAR_QUADRATIC = 0.25;
// Rounding units by which a slope, a sum of products, and an asymmetry of two differences count as
// zero.
const FEW_UNITS = 4;
// Errors of curvatures by differences, relative to the largest curvature: by central ones, and by
// one-sided ones with the steps of central ones.
const DIFFERENCE_NOISE = 8 * EPS ** (2 / 3);
export const ONE_SIDED_NOISE = 8 * EPS ** (1 / 3);

// ------------------------------------------------------------------ measuring

// Difference the gradient along both coordinates, to one side of x or of x + offset.
export function probeAlongCoordinates(oracle, evaluation, start, scaling, sign, offset = null) {
  const { x, gradient } = evaluation;
  const size = sizeOfX(x, start, scaling);
  // a coordinate without curvature is moved no further than the others are large
  const others = Math.sqrt(Math.max(inner(x, x), inner(start.x, start.x)) / 2);
  return [0, 1].map((j) => {
    const usual = (SMALLEST_PROBE * (size > 0 ? size : 1)) / Math.sqrt(scaling[j]);
    const least = Math.min(usual, others > 0 ? others : 1);
    const h = sign * EPS ** (1 / 3) * Math.max(Math.abs(x[j]), least);
    const at = offset
      ? oracle.evaluate(movedAlong(plus(x, offset), j, h))
      : probeCoordinate(oracle, evaluation, j, h);
    return { step: minus(at.x, x), change: minus(at.gradient, gradient) };
  });
}

// Return x with h added to coordinate j.
const movedAlong = (x, j, h) => x.map((xj, i) => (i === j ? xj + h : xj));

// Evaluate f where coordinate j is moved by h, or by more or less where its unit is another: h, a
// guess from the size of x, is too short where the gradient does not change, and too long where f is
// far from quadratic along it.
function probeCoordinate(oracle, { x, value, gradient }, j, guess) {
  const slope = gradient[j];
  let h = guess;
  let first = null;
  let isLonger = false;
  for (let lengths = 0; lengths <= MOST_LENGTHS; lengths += 1) {
    const at = oracle.evaluate(movedAlong(x, j, h));
    first ??= at;
    const moved = at.x[j] - x[j];
    const change = at.gradient[j] - slope;
    const error = Math.abs(at.value - value - (moved * (slope + at.gradient[j])) / 2);
    const rounding = FEW_UNITS * EPS * (Math.abs(value) + Math.abs(at.value));
    if (!(error <= (NEAR_QUADRATIC * Math.abs(moved * change)) / 2 + rounding)) {
      const shorter = h / OTHER_LENGTH;
      if (isLonger || Math.abs(shorter) < EPS * Math.abs(x[j])) return first;
      h = shorter;
    } else if (Math.abs(change) <= UNMEASURED_UNITS * EPS * Math.abs(slope) && slope !== 0) {
      h *= OTHER_LENGTH;
      isLonger = true;
    } else {
      return at;
    }
  }
  return first;
}

// Return the central differences of probes to both sides.
export function centralDifferences(ahead, behind) {
  return ahead.map(({ step, change }, j) => ({
    step: minus(step, behind[j].step),
    change: minus(change, behind[j].change),
  }));
}

// ------------------------------------------------------------------ assessing

// Diagonalise the measured curvatures, whose directions are orthogonal in the norm of `scaling`.
//
// Curvatures below `noise` times the largest one are not measurable. The Newton step takes them for
// that large; the predicted decrease and length take them for the rounding unit, unless the slope
// along them is zero to rounding. Where such a direction moves coordinates that are `far` from the
// start, the predictions are infinite.
function spectrum(probes, g, scaling, size, leastNoise, far) {
  const scale = probes.map(({ step }) => {
    const norm = weightedNorm(step, scaling);
    return norm > 0 ? 1 / norm : 0;
  });
  const entry = (i, j) => scale[i] * inner(probes[i].step, probes[j].change) * scale[j];
  const asymmetry = Math.sqrt(2 * (entry(0, 1) - entry(1, 0)) ** 2); // an estimate of the error
  const mixed = (entry(0, 1) + entry(1, 0)) / 2;
  const { values: curvatures, vectors } = symmetricEigen(entry(0, 0), mixed, entry(1, 1));
  const sizes = curvatures.map(Math.abs);
  const top = largest(sizes);
  const axes = vectors.map(([first, second]) =>
    plus(times(first * scale[0], probes[0].step), times(second * scale[1], probes[1].step)),
  );
  const slopes = axes.map((axis) => inner(axis, g));
  const noise = Math.max(leastNoise, (FEW_UNITS * asymmetry) / top);
  const known = sizes.map((curvature) => curvature > noise * top);
  const squares = axes.map((axis) => product(scaling, product(axis, axis)));

  const newton = slopes.map((slope, i) => slope / (known[i] ? sizes[i] : noise * top));
  const longest = slopes.map((slope, i) => {
    const isZeroSlope = !known[i] && Math.abs(slope) <= FEW_UNITS * EPS * top * size;
    return isZeroSlope ? 0 : slope / (known[i] ? sizes[i] : EPS * top);
  });
  const leadsToInfinity = squares.some(
    (square, i) => !known[i] && square[0] * far[0] + square[1] * far[1] > SHARE_FAR,
  );
  const length = leadsToInfinity ? Infinity : Math.sqrt(inner(longest, longest));
  const flat = squares.findIndex((square, i) => !known[i] && square[0] + square[1] > NOT_ZERO);
  const isNegative = known[0] && curvatures[0] < 0;
  return {
    newton: plus(times(newton[0], axes[0]), times(newton[1], axes[1])),
    decrease: length < Infinity ? inner(slopes, longest) / 2 : Infinity,
    length,
    least: isNegative ? curvatures[0] / top : 0, // relative to the largest; negative at a saddle
    downwards: inner(axes[0], g) < 0 ? times(-1, axes[0]) : axes[0],
    flat: flat < 0 ? [0, 0] : axes[flat], // a direction without measurable curvature, or zero
    isConvex: flat < 0 && !isNegative, // all curvatures are measurable and positive
  };
}

// Return whether a point is a minimum, from probes around it, and the step to take if it is not.
//
// A saddle is left where the gradient meets the tolerance (`isStationary`); where no step lowers f
// (`isStuck`), too, if its negative curvature is clear without the scaling of coordinates.
export function assess(
  probes, evaluation, start, scaling, tolerance, isStationary, isStuck, noise = DIFFERENCE_NOISE,
) {
  const { x, gradient: g } = evaluation;
  const size = sizeOfX(x, start, scaling);
  const typical = typicalSize(start.x);
  const far = x.map((xj, j) => Math.abs(xj) > FAR * (Math.abs(start.x[j]) + typical));
  const isFar = isZero(start.x) ? [0, 0] : far.map(Number);
  const found = spectrum(probes, g, scaling, size, noise, isFar);
  const down = found.downwards;
  const isClear = -found.least > DIFFERENCE_NOISE * inner(down, down) * Math.max(...scaling);
  const leavesSaddle = found.least < 0 && (isStationary || (isStuck && isClear));
  const unit = size > 0 ? size : 1;
  let p = leavesSaddle ? times(unit, down) : found.newton;
  if (!leavesSaddle && !(inner(g, p) > 0)) p = quotient(g, scaling); // no curvature is measurable
  return {
    p,
    slope: inner(g, p),
    t: leavesSaddle ? 1 : longestFraction(x, start.x, p), // at a saddle x may be zero
    leavesSaddle,
    isNegligible: changeIsNegligible(
      evaluation, start, scaling, p, found.decrease, found.length, tolerance,
    ),
    isUnbounded: !(found.length < Infinity), // no longest step can be predicted
    decrease: inner(g, found.newton) / 2, // that the Newton step predicts
    valley: valleyOffset(x, start.x, times(unit, found.flat)),
    isConvex: found.isConvex,
  };
}

// Return the fraction of a step that moves no coordinate by more than ten times its size.
export function longestFraction(x, x0, step) {
  const typical2 = inner(x, x) / 2;
  if (!(inner(step, step) > LONGEST_STEP ** 2 * typical2)) return 1;
  const typical = Math.sqrt(typical2);
  const sizes = x.map((xj, j) => Math.abs(xj - x0[j]) + Math.abs(xj) + typical);
  const most = largest(quotient(absolute(step), sizes));
  return typical2 > 0 && most > LONGEST_STEP ? LONGEST_STEP / most : 1;
}

// Return an offset along `flat` that moves no coordinate by more than twice its size.
function valleyOffset(x, x0, flat) {
  const typical = Math.sqrt(Math.max(inner(x, x), inner(x0, x0)) / 2);
  const sizes = absolute(x).map((size) => size + typical);
  if (!sizes.every((size) => size > 0)) return [0, 0];
  const most = Math.max(largest(quotient(absolute(flat), sizes)), 1);
  return flat.map((move) => (VALLEY_DISTANCE * move) / most);
}
