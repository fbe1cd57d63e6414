// The solver that Auto takes for a function of two variables: L-BFGS with a diagonal preconditioner,
// backtracking and a check of the curvature at the end, as in cfgd/methods/auto/lbfgs.py.

import {
  EPS, TINY, clipPositive, inner, isZero, minus, moved, plus, times, weightedNorm,
} from "./algebra.js";
import {
  ONE_SIDED_NOISE, assess, centralDifferences, longestFraction, probeAlongCoordinates,
} from "./curvature_check.js";
import {
  Memory, firstDiagonal, firstStep, lbfgsDirection, pairOf, secantDiagonal,
} from "./lbfgs_memory.js";
import { Start, changeIsNegligible, gradientExploded } from "./solver_state.js";

// Share of the decrease along the slope that a step must achieve.
const ACCEPT = 1e-4;
// How often a step is shortened at most, each time at least to its half.
const MOST_TRIES = 40;
// Iterations without progress after which the curvature is checked, and after which the run ends.
const IDLE = 16;
const TOO_IDLE = 40;
// Iterations between two checks of the curvature.
const CHECK_EVERY = 30;
// How many times the last accepted fraction of a direction is tried first of the next one.
const LONGER = 8;
// Powers of eps that say when rounding hides a decrease: of slopes, and of values.
const HIDDEN_SLOPE = 0.6;
const HIDDEN_CHANGE = 0.8;
// Slope at the end of a step whose decrease is hidden, relative to that at its start.
const SLOPE_AT_END = 0.8;

const NO_OFFSET = [0, 0];

// Evaluate the start and return the state there.
export function init(oracle, x0) {
  const evaluation = oracle.evaluate(x0);
  const { gradient: g } = evaluation;
  const start = new Start(evaluation);
  const p = start.norm > 0 ? firstStep(x0, g) : g;
  const norm2 = inner(g, g);
  return {
    evaluation,
    norm2,
    start,
    iteration: 0,
    status: "running",
    memory: new Memory(),
    scaling: [1, 1], // P, positive
    search: searchAlong(p, inner(g, p), longestFraction(x0, x0, p)),
    needsCheck: norm2 === 0, // of the curvature, before the next step
    curvatureIsKnown: false, // the memory consists of probes around x
    isStuck: false, // no step lowers f
    checkedNorm2: Infinity, // |g|^2 where a check showed that f can be lowered further
    idle: 0, // iterations without progress
    sinceCheck: 0,
    leastNorm2: norm2,
  };
}

// Make one iteration, or end the run.
export function step(oracle, before, floor, tolerance) {
  let state = before;
  for (;;) {
    if (state.needsCheck) {
      state = checkCurvature(oracle, state, floor, tolerance);
      if (state.status !== "running") return state;
    }
    const found = lineSearch(oracle, state);
    if (found.evaluation) return advance(state, found, floor, tolerance);
    if (found.isUnbounded) return { ...state, status: "unbounded" };
    if (state.curvatureIsKnown) {
      const status = state.search.leavesSaddle ? "saddle" : "stalled";
      return { ...state, status: gradientExploded(state) ? "unbounded" : status };
    }
    state = { ...state, isStuck: true, needsCheck: true };
  }
}

// The next line search, along x + offset - t p, with the first trial t.
function searchAlong(p, slope, t, leavesSaddle = false, offset = NO_OFFSET) {
  return { p, slope, t, leavesSaddle, offset };
}

// Backtrack from the first trial until f decreases by a share of what the slope predicts.
function lineSearch(oracle, { evaluation: origin, search, start }) {
  const x = plus(origin.x, search.offset);
  let { t } = search;
  for (let tries = 0; tries <= MOST_TRIES; tries += 1) {
    const at = oracle.evaluate(moved(x, -t, search.p));
    const isFinite = Math.abs(at.value) < Infinity && inner(at.gradient, at.gradient) < Infinity;
    const { enough, value } = decreases(search, t, origin, at);
    if (enough && isFinite) return { evaluation: { ...at, value }, computedValue: at.value, t };
    if (start.isUnboundedAt(at.value)) return { isUnbounded: true };
    // to the minimum of the parabola through both values and the slope, within [t/10, t/2]
    const parabola = (search.slope * t * t) / (2 * (value - origin.value + search.slope * t));
    const within = Math.min(Math.max(parabola, t / 10), t / 2);
    t = Math.abs(parabola) < Infinity ? within : t / 10;
  }
  return { isUnbounded: false };
}

// Return whether f decreases by a share of what the slope predicts, and its value as it counts. Where
// rounding may hide the decrease, a value that is not larger is enough, and one that is larger by
// rounding counts as the old one if the slopes at both ends show a decrease.
function decreases({ p, slope, leavesSaddle }, t, { value }, at) {
  const enough = at.value <= value - ACCEPT * t * slope;
  if (leavesSaddle) return { enough: enough && at.value < value, value: at.value };
  if (enough) return { enough, value: at.value };
  const mayHide = slope <= EPS ** HIDDEN_SLOPE * Math.abs(value) + 1e3 * TINY;
  const falls = inner(at.gradient, p) >= -SLOPE_AT_END * slope;
  const mayBeSame = at.value <= value + EPS ** HIDDEN_CHANGE * Math.abs(value) + TINY;
  const isSame = mayHide && falls && mayBeSame;
  const counted = isSame && value < at.value ? value : at.value;
  return { enough: mayHide && counted <= value, value: counted };
}

// Return the state at an accepted point: update the memory and plan the next search.
function advance(state, { evaluation, computedValue, t: accepted }, floor, tolerance) {
  const { evaluation: old } = state;
  const { x, value, gradient: g } = evaluation;
  const norm2 = inner(g, g);
  const start = state.start.withScaleOf(evaluation);
  const pair = pairOf(minus(x, old.x), minus(g, old.gradient));
  const memory = state.memory.add(pair);
  const scaling = secantDiagonal(state.iteration === 0 ? firstDiagonal(pair) : state.scaling, pair);
  const rounding = 4 * EPS * Math.abs(old.value);
  const progress = value < old.value - rounding || norm2 < state.leastNorm2 / 2;
  const idle = progress ? 0 : state.idle + 1;
  const { p, slope } = lbfgsDirection(memory, g, scaling, pair.step);
  // where a step was shortened, the next one starts shorter, too
  const t = Math.min(longestFraction(x, start.x, p), LONGER * accepted, 1);
  const isNegligible =
    norm2 <= floor &&
    changeIsNegligible(
      evaluation, start, scaling, p, slope / 2, weightedNorm(p, scaling), tolerance,
    );
  const isStuck = idle >= TOO_IDLE;
  const sinceCheck = state.sinceCheck + 1;
  const needsCheck =
    (isNegligible && norm2 <= state.checkedNorm2 / 100) ||
    idle === IDLE ||
    isStuck ||
    (sinceCheck >= CHECK_EVERY && !memory.isFlat);
  return {
    evaluation,
    norm2,
    start,
    iteration: state.iteration + 1,
    status: start.isUnboundedAt(computedValue) ? "unbounded" : "running",
    memory,
    scaling,
    search: searchAlong(p, slope, t),
    needsCheck,
    curvatureIsKnown: false,
    isStuck,
    checkedNorm2: state.checkedNorm2,
    idle,
    sinceCheck,
    leastNorm2: Math.min(norm2, state.leastNorm2),
  };
}

// Measure the curvature around x; end the run, or plan a Newton step or a step off a saddle.
function checkCurvature(oracle, state, floor, tolerance) {
  const { evaluation, start, isStuck } = state;
  const isStationary = state.norm2 <= floor;
  const probe = (sign, offset) =>
    probeAlongCoordinates(oracle, evaluation, start, state.scaling, sign, offset);
  // 1e-30 allows units that differ by 1e15 from one coordinate to another
  const scalingOf = (probes) =>
    clipPositive(probes.map(({ step: s, change }, j) => change[j] / s[j]), 1e-30);
  const assessed = (probes, stationary, noise) =>
    assess(probes, evaluation, start, scalingOf(probes), tolerance, stationary, isStuck, noise);

  const ahead = probe(1);
  let probes = ahead;
  let found = assessed(probes, isStationary, ONE_SIDED_NOISE);
  if (!found.isConvex) { // one-sided differences did not show that
    probes = centralDifferences(ahead, probe(-1));
    found = assessed(probes, isStationary);
  }
  const after = afterCheck(state, probes, scalingOf(probes), found, isStationary);
  if (after.status !== "converged" || isZero(found.valley)) return after;
  // the minimum lies in a flat valley, which may lead to a saddle: check the curvature there, too
  for (const offset of [found.valley, times(-1, found.valley)]) {
    probes = centralDifferences(probe(1, offset), probe(-1, offset));
    const offX = assessed(probes, true);
    if (offX.leavesSaddle) {
      const search = searchAlong(offX.p, offX.slope, offX.t, true, offset);
      const memory = Memory.ofProbes(probes);
      return { ...after, memory, scaling: scalingOf(probes), search, idle: 0, status: "running" };
    }
  }
  return after;
}

// Return the state after a check, whose probes become the memory.
function afterCheck(state, probes, scaling, found, isStationary) {
  const isOver = state.idle >= TOO_IDLE;
  const isMinimum = !found.leavesSaddle && found.isNegligible && (isStationary || state.isStuck);
  let status = "running";
  if (isOver && gradientExploded(state)) status = "unbounded";
  else if (isMinimum) status = "converged";
  else if (isOver) status = "stalled";
  return {
    ...state,
    memory: Memory.ofProbes(probes),
    scaling,
    search: searchAlong(found.p, found.slope, found.t, found.leavesSaddle),
    needsCheck: false,
    curvatureIsKnown: true,
    checkedNorm2: state.norm2,
    sinceCheck: 0,
    status,
  };
}
