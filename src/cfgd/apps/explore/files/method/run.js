// Run a method until it has converged, no step lowers f, or the iterations are over.
//
// A run is `path` (x_0, x_1, ...), `values` (f there), `status`, `evaluations` (in gradients) and
// `resets`.

import { init, step } from "./lbfgs.js";
import { VALUE_COST } from "./step.js";

const TOLERANCE = 1e-8; // relative to the gradient at the start, as in the library

// The library waits a thousand iterations for progress before a run is `stalled`.
export const MOST_ITERATIONS = 1000;

// Run a method of the paper.
export function run(objective, method, x0, iterations) {
  let state = method.init(objective, x0);
  let norm2 = method.measure(objective, state);
  const floor = TOLERANCE ** 2 * norm2;
  const end = Math.min(iterations, method.last);
  const path = state.path;
  const values = [state.evaluation.value];
  let status = isFinite(state.evaluation.value, norm2) ? "running" : "nonfinite";
  let evaluations = 1;
  let resets = 0;
  while (status === "running" && path.length <= end) {
    let info;
    [state, info] = method.step(objective, state, floor);
    norm2 = info.norm2;
    evaluations += info.cost;
    resets += info.reset ? 1 : 0;
    if (info.moved) {
      path.push(state.evaluation.x);
      values.push(state.evaluation.value);
    }
    if (info.status === "running" && !isFinite(state.evaluation.value, norm2)) status = "nonfinite";
    else if (norm2 <= floor) status = "converged";
    else status = info.status;
  }
  if (status === "running") {
    const met = method.measure(objective, state) <= floor;
    status = met ? "converged" : method.last === end ? "stages_done" : "max_iterations";
  }
  return { path, values, status, evaluations, resets };
}

// Run Auto.
export function runAuto(objective, x0, iterations) {
  const oracle = {
    x0,
    evaluations: 0,
    evaluate(x) {
      this.evaluations += 1;
      return objective.evaluate(x);
    },
    value(x) {
      this.evaluations += VALUE_COST;
      return objective.value(x);
    },
  };
  let state = init(oracle, x0);
  const floor = TOLERANCE ** 2 * state.norm2;
  const path = [x0];
  const values = [state.evaluation.value];
  let status = isFinite(state.evaluation.value, state.norm2) ? "running" : "nonfinite";
  while (status === "running" && path.length <= iterations) {
    state = step(oracle, state, floor, TOLERANCE);
    if (state.iteration === path.length) {
      path.push(state.evaluation.x);
      values.push(state.evaluation.value);
    }
    ({ status } = state);
  }
  if (status === "running") status = "max_iterations";
  return { path, values, status, evaluations: oracle.evaluations, resets: 0 };
}

const isFinite = (value, norm2) => Number.isFinite(value) && Number.isFinite(norm2);
