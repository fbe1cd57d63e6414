// A run: steps until the tolerance is met, no step helps, or the iterations are over.
//
// `path` has x_0, x_1, ...; `values` what f is there; `status` says how the run ended.

const TOLERANCE = 1e-8; // of the gradient at the start, as the library's

// The library waits a thousand iterations for progress before it says `stalled`.
export const MOST_ITERATIONS = 1000;

export function run(objective, method, x0, iterations) {
  let state = method.start(objective, x0);
  let norm2 = method.measure(objective, state);
  const floor = TOLERANCE ** 2 * norm2;
  const end = Math.min(iterations, method.last);
  const path = state.path;
  const values = [state.point.value];
  let status = isSeen(state.point.value, norm2) ? "running" : "nonfinite";
  let evaluations = 1;
  let resets = 0;
  while (status === "running" && path.length <= end) {
    let info;
    [state, info] = method.advance(objective, state, floor);
    norm2 = info.norm2;
    evaluations += info.cost;
    resets += info.reset ? 1 : 0;
    if (info.moved) {
      path.push(state.point.x);
      values.push(state.point.value);
    }
    if (info.ending === "running" && !isSeen(state.point.value, norm2)) status = "nonfinite";
    else if (norm2 <= floor) status = "converged";
    else status = info.ending;
  }
  if (status === "running") {
    const met = method.measure(objective, state) <= floor;
    status = met ? "converged" : method.last === end ? "stages_done" : "max_iterations";
  }
  return { path, values, status, evaluations, resets };
}

// Auto looks at a point in every step: at the start, at a step that is tried, around x.
export function runAuto(objective, auto, x0, iterations) {
  let state = auto.start(x0);
  let floor = 0;
  let status = "running";
  let evaluations = 0;
  const path = [];
  const values = [];
  while (status === "running" && path.length <= iterations) {
    let info;
    [state, info] = auto.advance(objective, state, floor, TOLERANCE);
    evaluations += 1;
    if (path.length === 0) floor = TOLERANCE ** 2 * info.norm2;
    if (path.length === 0 || info.moved) {
      path.push(state.point.x);
      values.push(state.point.value);
    }
    status = info.ending;
    if (status === "running" && !isSeen(state.point.value, info.norm2)) status = "nonfinite";
  }
  if (status === "running") status = "max_iterations";
  return { path, values, status, evaluations, resets: 0 };
}

const isSeen = (value, norm2) => Number.isFinite(value) && Number.isFinite(norm2);
