// How far: the rules for the step size eta along a line x - eta d.
//
// A line has slope and curvature of what d descends on: of f for a terminal that moves with x, of
// f + gamma/2 |x - c|^2_D, whose gradient d is, for one that stays. A rule `chooses` eta, what it
// remembers and what it cost, in gradients; it `stalls` on directions that make its step zero.

import { EPS, moved, sizes, largest } from "./algebra.js";

const MOST_SHORTENED = 60; // 2^-60 of a step is nothing
const CURVATURE_COST = 2;
const VALUE_COST = 0.5;

// <g, d> = |g|^2 + ..., so it is known to rounding of |g|^2 and no better
const noDescent = (slope, square) => slope <= 4 * EPS * square;

const valueAt = (line, eta) => line.objective.value(moved(line.point.x, -eta, line.d));

// Shorter until f falls by `fraction` of what the slope promises; 0 if it never does.
function backtrack(line, eta, shrink, fraction) {
  const { value } = line.point;
  let last = valueAt(line, eta);
  let tries = 1;
  while (!(last <= value - fraction * eta * line.slope) && tries < MOST_SHORTENED) {
    eta *= shrink;
    last = valueAt(line, eta);
    tries += 1;
  }
  return { eta: last < value ? eta : 0, tries };
}

export function exactStep() {
  return {
    start: null,
    stalls: (slope, square) => noDescent(Math.abs(slope), square),
    choose(line) {
      const { slope, point } = line;
      const curvature = line.curvature();
      // where the curvature vanishes, the step that moves as far as x or 1 is large
      const least = Math.abs(slope) / (1 + largest(sizes(point.x)));
      const eta = slope / Math.max(Math.abs(curvature), EPS * least);
      if (!line.descendsOnF) return { eta: curvature !== 0 ? eta : 0, cost: CURVATURE_COST };
      const found = backtrack(line, eta, 0.5, 1e-4);
      return { eta: found.eta, cost: CURVATURE_COST + VALUE_COST * found.tries };
    },
  };
}

export function fixedStep(eta) {
  return { start: null, stalls: () => false, choose: () => ({ eta, cost: 0 }) };
}

// The paper's 32 candidates, t 10^-l with t in {1, 3/4, 1/2, 1/4} and l from 1 to 8.
const CANDIDATES = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((l) =>
  [1, 0.75, 0.5, 0.25].map((t) => Number(`1e-${l}`) * t),
);

export function gridStep() {
  return {
    start: null,
    stalls: noDescent,
    choose(line) {
      let best = { eta: 0, value: Infinity };
      for (const eta of CANDIDATES) {
        const value = valueAt(line, eta);
        if (Number.isFinite(value) && value < best.value) best = { eta, value };
      }
      return { eta: best.eta, cost: CANDIDATES.length * VALUE_COST };
    },
  };
}

// The first eta with f(x - eta d) <= f(x) - eta <g, d> / 10^4, from the last one over 1/2.
export function armijoStep() {
  return {
    start: 1,
    stalls: noDescent,
    choose(line, memory) {
      const { eta, tries } = backtrack(line, memory, 0.5, 1e-4);
      // after a search that found nothing, start over: the scale has changed
      return { eta, memory: eta > 0 ? eta / 0.5 : 1, cost: VALUE_COST * tries };
    },
  };
}
