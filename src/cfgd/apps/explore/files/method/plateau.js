// Whether a function no longer depends on its coordinates: cfgd/methods/auto/plateau.py.

import { EPS, absolute } from "./algebra.js";
import { coordinateSizes } from "./flat_directions.js";

// Rounding units of f within which a coordinate does not change f.
const ROUNDING_UNITS = 1e3;
// Share of the coordinates that must be without influence.
const MOST_LOST = 0.5;

// Return whether f no longer depends on most coordinates beyond rounding, but did at the start of
// the run. Where f is zero, nothing is lost.
export function hasLostCoordinates(oracle, { x, value, gradient }, probes, start) {
  const sizes = coordinateSizes(x, start);
  const slopes = absolute(gradient);
  const lost = probes.map(({ step, change }, j) => {
    const curvature = Math.abs(change[j] / step[j]);
    const largestChange = slopes[j] * sizes[j] + (curvature * sizes[j] ** 2) / 2;
    return largestChange <= ROUNDING_UNITS * EPS * Math.abs(value);
  });
  const isMost = (flags) => flags.filter(Boolean).length >= MOST_LOST * flags.length;
  if (value === 0 || !isMost(lost)) return false;
  const first = oracle.evaluate(oracle.x0);
  const slopesThere = absolute(first.gradient);
  const unseen = ROUNDING_UNITS * EPS * Math.abs(first.value);
  return isMost(lost.map((isLost, j) => isLost && slopesThere[j] * sizes[j] > unseen));
}
