// Looks along directions in which the Hessian at the end of a run is nearly singular, and the
// confirmation of negative curvatures: cfgd/methods/auto/flat_directions.py, in two dimensions.

import {
  EPS, absolute, inner, largest, minus, moved, plus, product, quotient, symmetricEigen, times,
} from "./algebra.js";

// Curvature relative to the largest one below which a direction is nearly flat, with coordinates in
// units of their own size.
const NEARLY_FLAT = 1e-4;
// Distance in these units at which f is evaluated first, and the other ones.
const FIRST_DISTANCE = 1e-2;
const DISTANCES = [1e-3, 0.1, 0.5, 0.9, 2];
// Share of the rise that its curvature predicts with which f must rise at the first distance: then
// the other distances are left out.
const RISES = 0.5;
// Distances at which a negative curvature is measured again, and the factor within which both
// results must agree.
const CONFIRM_DISTANCES = [1e-4, 1e-3];
const AGREE = 3;
// Distances for the curvature along a valley: it is curved, and further away there are its walls.
const NEAR_DISTANCES = [1e-6, 1e-5];
// Share of f by which it may be larger at another point of the same valley.
const SAME_VALLEY = 1e-4;
// How often a run continues from a lower value that was found like this: f may fall for ever towards
// infinity.
export const MOST_LOOKS = 3;
// Rounding units of f within which a difference of two values is rounding: those of a sum.
const ROUNDING_UNITS = 8;

// The least of some numbers, the first of equal ones; unlike with Math.min, a NaN that is not the
// first is left out, as by Python's min.
const least = (values) => values.reduce((a, b) => (b < a ? b : a));

// Return |x| + |x - x0| for each coordinate; their mean, or one, where that is zero.
export function coordinateSizes(x, start) {
  const sizes = plus(absolute(x), absolute(minus(x, start.x)));
  const mean = (sizes[0] + sizes[1]) / 2;
  return sizes.map((size) => (size > 0 ? size : mean > 0 ? mean : 1));
}

// Return a direction of length one, by its largest coordinate in units of its size.
export function unitAlong(direction, x, start) {
  const most = largest(quotient(absolute(direction), coordinateSizes(x, start)));
  return direction.map((move) => move / most);
}

// Return the nearly flat directions with their curvatures, from probes along both coordinates. The
// directions are of length one in units of the sizes of coordinates. At the start all directions
// count, and so do those whose curvature explains next to nothing of the `fall` of f.
export function flatDirections(probes, x, start, fall) {
  const sizes = coordinateSizes(x, start);
  const lengths = probes.map(({ step }, j) => step[j] / sizes[j]);
  if (!lengths.every((length) => Math.abs(length) > 0)) return [];
  const entry = (i, j) => (probes[i].change[j] * sizes[j]) / lengths[i]; // of the Hessian
  const mixed = (entry(0, 1) + entry(1, 0)) / 2;
  const { values: curvatures, vectors } = symmetricEigen(entry(0, 0), mixed, entry(1, 1));
  const most = NEARLY_FLAT * Math.max(largest(curvatures.map(Math.abs)), fall);
  const isAtStart = x[0] === start.x[0] && x[1] === start.x[1];
  return curvatures
    .map((curvature, i) => ({ curvature, direction: product(vectors[i], sizes) }))
    .filter(({ curvature }) => Math.abs(curvature) <= most || isAtStart);
}

// Return an offset to a point with a lower value along one of the flat directions, or null. It is
// lower by more than tolerance/100 |f|, which is what counts as a decrease at the end, and by more
// than a rounding unit of the fall of f so far.
export function lowerPoint(oracle, { x, value: f }, start, flat, tolerance) {
  const rounding = ROUNDING_UNITS * EPS * Math.abs(f);
  const enough = Math.max(rounding, (tolerance / 100) * Math.abs(f), EPS * (start.value - f));
  for (const { direction, curvature } of flat) {
    const bothSides = (distance) => [times(distance, direction), times(-distance, direction)];
    const valueAt = (offset) => oracle.value(plus(x, offset));
    let offsets = bothSides(FIRST_DISTANCE);
    let values = offsets.map(valueAt);
    const rise = (curvature * FIRST_DISTANCE ** 2) / 2;
    if (rise > rounding && least(values) >= f + RISES * rise) continue;
    if (!(least(values) < f - enough)) {
      offsets = DISTANCES.flatMap(bothSides);
      values = offsets.map(valueAt);
    }
    values = values.map((value) => (Math.abs(value) < Infinity ? value : Infinity));
    if (least(values) < f - enough) return offsets[values.indexOf(least(values))];
  }
  return null;
}

// Return whether the curvature along a direction is negative beyond its own error: differences of
// gradients at two distances agree.
export function isSaddle(oracle, { x }, start, direction, distances = CONFIRM_DISTANCES) {
  const unit = unitAlong(direction, x, start);
  const [near, far] = distances.map((distance) => {
    const ahead = oracle.evaluate(moved(x, distance, unit));
    const behind = oracle.evaluate(moved(x, -distance, unit));
    return inner(minus(ahead.gradient, behind.gradient), unit) / (2 * distance);
  });
  return far < 0 && AGREE * near <= far && far <= near / AGREE;
}

// Return whether f falls along a valley through x, or from x + offset along `direction`. At x +
// offset the curvature was negative, which means something only if f is the same there. A sum of
// squares that has fallen to rounding has nothing to gain.
export function valleyLeadsToSaddle(oracle, evaluation, start, offset, direction) {
  const { x, value } = evaluation;
  if (Math.abs(value) <= EPS * Math.abs(start.value)) return false;
  if (isSaddle(oracle, evaluation, start, offset, NEAR_DISTANCES)) return true;
  const there = oracle.evaluate(plus(x, offset));
  const isSame = there.value <= value + SAME_VALLEY * Math.abs(value);
  return isSame && isSaddle(oracle, there, start, direction);
}
