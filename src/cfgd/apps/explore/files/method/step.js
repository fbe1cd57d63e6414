// The rules for the step size eta along a line x - eta d.
//
// A line has slope and curvature of the function that steps along d decrease: f for a terminal that
// follows x, and f + gamma/2 |x - c|^2_D, whose gradient is d, for a fixed one. `choose` returns eta,
// the memory of the rule and its cost in gradients; `isNoDescent` tests for directions that make its
// step zero.

import { EPS, absolute, largest, moved } from "./algebra.js";

const MAX_BACKTRACKS = 60; // 2^-60 of a step is below rounding
const CURVATURE_COST = 2;
export const VALUE_COST = 0.5;

// <g, d> = |g|^2 + ... has an error of rounding units of |g|^2
const noDescent = (slope, square) => slope <= 4 * EPS * square;

const valueAt = (line, eta) => line.objective.value(moved(line.evaluation.x, -eta, line.d));

// Shorten eta until f decreases by `fraction` of what the slope predicts; return 0 if it never does.
function backtrack(line, eta, shrink, fraction) {
  const { value } = line.evaluation;
  let trial = valueAt(line, eta);
  let tries = 1;
  while (!(trial <= value - fraction * eta * line.slope) && tries < MAX_BACKTRACKS) {
    eta *= shrink;
    trial = valueAt(line, eta);
    tries += 1;
  }
  return { eta: trial < value ? eta : 0, tries };
}

export function exactStep() {
  return {
    init: null,
    isNoDescent: (slope, square) => noDescent(Math.abs(slope), square),
    choose(line) {
      const { slope, evaluation } = line;
      const curvature = line.curvature();
      // where the curvature vanishes, the step that moves as far as x or 1 is large
      const least = Math.abs(slope) / (1 + largest(absolute(evaluation.x)));
      const eta = slope / Math.max(Math.abs(curvature), EPS * least);
      if (!line.decreasesF) return { eta: curvature !== 0 ? eta : 0, cost: CURVATURE_COST };
      const found = backtrack(line, eta, 0.5, 1e-4);
      return { eta: found.eta, cost: CURVATURE_COST + VALUE_COST * found.tries };
    },
  };
}

export function fixedStep(eta) {
  return { init: null, isNoDescent: () => false, choose: () => ({ eta, cost: 0 }) };
}

// The paper's 32 candidates, t 10^-l with t in {1, 3/4, 1/2, 1/4} and l from 1 to 8.
const CANDIDATES = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((l) =>
  [1, 0.75, 0.5, 0.25].map((t) => Number(`1e-${l}`) * t),
);

export function gridStep() {
  return {
    init: null,
    isNoDescent: noDescent,
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
    init: 1,
    isNoDescent: noDescent,
    choose(line, memory) {
      const { eta, tries } = backtrack(line, memory, 0.5, 1e-4);
      // after a search without a decrease start again from 1: the scale has changed
      return { eta, memory: eta > 0 ? eta / 0.5 : 1, cost: VALUE_COST * tries };
    },
  };
}
