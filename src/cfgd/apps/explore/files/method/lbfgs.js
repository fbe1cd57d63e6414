// The solver with which Auto begins on functions: L-BFGS with a diagonal preconditioner,
// backtracking and a check of the curvature at the end, as in cfgd/methods/auto/lbfgs.py.

import { EPS, clipPositive, inner, isZero, times, weightedNorm } from "./algebra.js";
import {
  ONE_SIDED_NOISE, assess, centralDifferences, longestFraction, probeAlongCoordinates,
} from "./curvature_check.js";
import {
  MOST_LOOKS, flatDirections, isSaddle, lowerPoint, unitAlong, valleyLeadsToSaddle,
} from "./flat_directions.js";
import {
  Memory, firstStep, lbfgsDirection, pairBetween, secantDiagonal,
} from "./lbfgs_memory.js";
import { lineSearch, searchAlong } from "./line_search.js";
import { hasLostCoordinates } from "./plateau.js";
import { Start, changeIsNegligible, decreaseIsHidden, detectUnbounded } from "./solver_state.js";

// Iterations without progress after which the curvature is checked, and after which the run ends.
const IDLE = 16;
const TOO_IDLE = 40;
// Iterations between two checks of the curvature.
const CHECK_EVERY = 30;
// How many times the last accepted fraction of a direction is tried first of the next one.
const LONGER = 8;
// Share of f that a predicted decrease must exceed so that f is mostly excess over its minimum.
const EXCESS = 0.1;
// Least curvature of a coordinate relative to the largest one where a point is judged: it allows
// units that differ by 1e60 from one coordinate to another.
const LEAST_CHECKED = 1e-120;

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
    forgotStart: false, // `start` is a later point, because the first one was bad
    decrease: Infinity, // that the last check predicted
    looks: 0, // along flat directions that found a lower value
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
    const found = lineSearch(oracle, state.evaluation, state.search, state.start);
    if (found.evaluation) return advance(oracle, state, found, floor, tolerance);
    if (found.isUnbounded) return { ...state, status: "unbounded" };
    if (state.curvatureIsKnown) {
      state = endWithoutStep(oracle, state, floor, tolerance);
      if (state.status !== "running") return state;
    } else {
      state = { ...state, isStuck: true, needsCheck: true };
    }
  }
}

// Return the status of a point from which no search found a lower value. A saddle is left to the
// other side first, and is one only if its negative curvature is.
function endWithoutStep(oracle, state, floor, tolerance) {
  const { evaluation, search, start, scaling, decrease } = state;
  const isDone =
    state.norm2 <= floor && decreaseIsHidden(evaluation, start, scaling, decrease, tolerance);
  const ending = isDone ? "converged" : "stalled";
  // where most of f is still to fall, its own minimum is zero, and so are curvatures beside it
  const isExcess = isDone && decrease > EXCESS * Math.abs(evaluation.value);
  if (search.offset) { // x passed the check, and was left along its valley in vain
    const leads =
      !isExcess && valleyLeadsToSaddle(oracle, evaluation, start, search.offset, search.p);
    return { ...state, status: leads ? "saddle" : ending };
  }
  if (!search.leavesSaddle) return { ...state, status: ending };
  if (!search.isSecond) {
    const second = { ...search, p: times(-1, search.p), slope: -search.slope, isSecond: true };
    return { ...state, search: second };
  }
  const along = unitAlong(search.p, evaluation.x, start);
  const flat = [{ direction: along, curvature: 0 }];
  const after = lookAlong(oracle, { ...state, status: "saddle" }, flat, tolerance);
  if (after.status === "running") return after;
  if (!isExcess && isSaddle(oracle, evaluation, start, along)) return after;
  // the curvature was rounding: take the step of the memory, which consists of the probes
  const { p, slope } = lbfgsDirection(state.memory, evaluation.gradient, scaling, [0, 0]);
  const t = longestFraction(evaluation.x, start.x, p);
  return { ...state, search: searchAlong(p, slope, t) };
}

// Return the state at an accepted point: update the memory and plan the next search.
function advance(oracle, state, { evaluation, t: accepted }, floor, tolerance) {
  const { evaluation: old } = state;
  const { x, value, gradient: g } = evaluation;
  const norm2 = inner(g, g);
  const { start, isUnbounded } = detectUnbounded(oracle, state.start, evaluation);
  const pair = pairBetween(old, evaluation);
  const memory = state.memory.add(pair);
  const scaling = secantDiagonal(state.scaling, pair);
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
    ...state,
    evaluation,
    norm2,
    start,
    iteration: state.iteration + 1,
    status: isUnbounded ? "unbounded" : "running",
    memory,
    scaling,
    search: searchAlong(p, slope, t),
    needsCheck,
    curvatureIsKnown: false,
    isStuck,
    idle,
    sinceCheck,
    leastNorm2: Math.min(norm2, state.leastNorm2),
  };
}

// Measure the curvature around x; end the run, or plan a Newton step or a step off a saddle.
function checkCurvature(oracle, before, floor, tolerance) {
  const { evaluation, scaling } = before;
  const isStationary = before.norm2 <= floor;
  const fall = before.start.value - evaluation.value;
  const scalingOf = (probes) =>
    clipPositive(probes.map(({ step: s, change }, j) => change[j] / s[j]), LEAST_CHECKED);
  const assessed = (probes, start, stationary, noise) =>
    assess(
      probes, evaluation, start, scalingOf(probes), tolerance, stationary, before.isStuck, noise,
    );

  let state = before;
  const probe = (sign, offset) =>
    probeAlongCoordinates(oracle, evaluation, state.start, scaling, sign, offset);
  const ahead = probe(1);
  let probes = ahead;
  let noise = ONE_SIDED_NOISE;
  let found = assessed(probes, before.start, isStationary, noise);
  if (!found.isConvex) { // one-sided differences did not show that
    probes = centralDifferences(ahead, probe(-1));
    noise = undefined;
    found = assessed(probes, before.start, isStationary);
  }
  const P = scalingOf(probes);
  if (found.isNegligible && !state.forgotStart && state.start.isBadFor(evaluation, P)) {
    // compare with sizes near x from now on; the check is the same, without other evaluations
    state = { ...state, start: new Start(evaluation), forgotStart: true };
    found = assessed(probes, state.start, isStationary, noise);
  }
  const flat = flatDirections(probes, evaluation.x, state.start, fall);
  const checked = afterCheck(state, probes, P, found, floor, tolerance);
  const after = lookAlong(oracle, checked, flat, tolerance);
  if (after.status !== "converged") return after;
  if (hasLostCoordinates(oracle, evaluation, probes, state.start)) {
    return { ...after, status: "stalled" };
  }
  if (isZero(found.valley)) return after;
  // the minimum lies in a flat valley, which may lead to a saddle: check the curvature there, too
  for (const offset of [found.valley, times(-1, found.valley)]) {
    probes = centralDifferences(probe(1, offset), probe(-1, offset));
    const offX = assessed(probes, state.start, true);
    if (offX.leavesSaddle) {
      const wayOut = afterCheck(state, probes, scalingOf(probes), offX, floor, tolerance, offset);
      // a search that fails ends the run at x: its scaling and predictions stay
      return { ...wayOut, idle: 0, scaling: after.scaling, decrease: after.decrease };
    }
  }
  return after;
}

// Return the state after a check, whose probes become the memory.
function afterCheck(state, probes, scaling, found, floor, tolerance, offset = null) {
  const { evaluation, start } = state;
  const isStationary = state.norm2 <= floor;
  const decrease = found.isUnbounded ? Infinity : found.decrease;
  const isDone =
    isStationary && decreaseIsHidden(evaluation, start, scaling, decrease, tolerance);
  const isOver = state.idle >= TOO_IDLE && !offset;
  const isMinimum = !found.leavesSaddle && found.isNegligible && (isStationary || state.isStuck);
  let status = "running";
  if (isMinimum) status = "converged";
  else if (isOver) status = isDone && !found.leavesSaddle ? "converged" : "stalled";
  return {
    ...state,
    memory: Memory.ofProbes(probes),
    scaling,
    search: searchAlong(found.p, found.slope, found.t, found.leavesSaddle, offset),
    needsCheck: false,
    curvatureIsKnown: true,
    checkedNorm2: state.norm2,
    sinceCheck: 0,
    status,
    decrease,
  };
}

// Look along the nearly flat directions of a point where a run would end; go on if f falls.
function lookAlong(oracle, state, flat, tolerance) {
  if (state.status === "running" || state.looks === MOST_LOOKS) return state;
  const offset = lowerPoint(oracle, state.evaluation, state.start, flat, tolerance);
  if (!offset) return state;
  const search = searchAlong(times(-1, offset), 0, 1, true);
  return { ...state, search, idle: 0, looks: state.looks + 1, status: "running" };
}
