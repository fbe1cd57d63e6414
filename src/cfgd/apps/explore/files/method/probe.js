// Looks around a point, along every coordinate one and then another: what gradients say of the
// curvature there.

import { EPS, inner, times } from "./algebra.js";
import { Memory } from "./subspace.js";
import { trialOf } from "./trial.js";

export const PROBES = 4;
// when every coordinate was looked along once: that is often enough
export const HALF = 2;

// what rounding leaves of curvatures from differences, as a part of the largest one
export const NOISE = 8 * EPS ** (2 / 3);
// what a change of the curvature along a probe leaves of them, if there is but one
export const ONE_SIDED_NOISE = 8 * EPS ** (1 / 3);

// With one probe more: of two along a coordinate, the difference.
export function probed(memory, number, step, change) {
  const sign = number < HALF ? 1 : -1;
  return memory.plus(number % 2, times(sign, step), times(sign, change));
}

export function firstProbe(around, aside = [0, 0]) {
  return { memory: new Memory(), trial: nextProbe(around, -1, aside) };
}

// The probe after the `last` one. What both along a coordinate have `aside` of x does not count.
export function nextProbe(around, last, aside) {
  const number = last + 1;
  const size = around.size();
  const j = number % 2;
  const { x } = around.point;
  // a coordinate without curvature is moved no further than the others are large
  const squares = Math.max(inner(x, x), inner(around.start.x, around.start.x));
  const others = Math.sqrt(squares / 2);
  const usual = (1e-3 * (size > 0 ? size : 1)) / Math.sqrt(around.P[j]);
  const least = Math.min(usual, others > 0 ? others : 1);
  const reach = Math.abs(x[j]) < least ? least : Math.abs(x[j]);
  const ahead = EPS ** (1 / 3) * reach;
  const p = [0, 0];
  p[j] = number < HALF ? -ahead : ahead;
  return trialOf(p, { probe: number, aside });
}
