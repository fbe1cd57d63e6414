// Auto on a plain function: steps in the span of the last few terminals and the scaled gradients
// there. Every `advance` looks at the objective once: at the start, at a step that is tried, or at
// a probe around the point.

import { EPS, inner, isZero, minus, moved, plus, times } from "./algebra.js";
import { planOfProbes, planOfSteps } from "./plan.js";
import {
  HALF, NOISE, ONE_SIDED_NOISE, PROBES, firstProbe, nextProbe, probed,
} from "./probe.js";
import { newScaling, probedScaling } from "./scaling.js";
import { Memory, pairOf } from "./subspace.js";
import { Around, Start, judged, shorter, trialOf } from "./trial.js";

// iterations without progress after which the curvature is looked at, and after which the run ends
const IDLE = 16;
const TOO_IDLE = 40;
// iterations after which the curvature is looked at
const BLIND = 30;
// how often a step may be shortened, each time at least to its half
const MOST_TRIES = 40;
// how much longer than the last step, as a part of its direction, the next one may begin
const LONGER = 8;

export class Auto {
  // `k` is -1 until the start was looked at.
  start(x0) {
    return {
      k: -1,
      point: { x: x0, value: Infinity, gradient: [0, 0] },
      norm2: 0,
      eta: NaN,
      gamma: NaN,
      memory: new Memory(),
      P: [1, 1], // the scaling, positive
      reach: 1, // of a direction, the part that is tried first
      trial: trialOf([0, 0], { t: 0 }),
      looked: false, // the memory is of probes around the point
      stuck: false, // no step helps: the probes have the last word
      asked: Infinity, // |g|^2 where probes last showed that there is more to gain
      sides: 0, // of a flat valley that were looked at
      idle: 0, // iterations without progress
      blind: 0, // iterations since the curvature was looked at
      least: Infinity, // |g|^2 so far
      begin: null, // what is known of the start
    };
  }

  advance(objective, state, floor, tolerance) {
    const { trial, point } = state;
    const at = objective.at(plus(moved(point.x, -trial.t, trial.p), trial.aside));
    const norm2 = inner(at.gradient, at.gradient);
    const finite = Math.abs(at.value) < Infinity && norm2 < Infinity;
    const first = state.k < 0;
    const stepping = trial.probe < 0;
    const { good, value } = stepping ? judged(trial, point, at) : { good: false, value: at.value };
    const look = { at, value, norm2, finite, floor, tolerance };
    if (first || (stepping && finite && good)) return accepted(state, look, first);
    return stepping ? rejected(state, look) : seenAround(state, look);
  }
}

// A step was made, or the start was seen.
function accepted(state, { at, value, norm2, finite, floor, tolerance }, first) {
  const { trial, point: old } = state;
  const point = { x: at.x, value, gradient: at.gradient };
  const begin = first ? new Start(point, norm2) : state.begin.learns(point, norm2);
  const pair = pairOf(minus(at.x, old.x), minus(at.gradient, old.gradient));
  const memory = first ? state.memory : state.memory.then(pair);
  const P = newScaling(state.P, pair, state.k);
  const better = value < old.value - 4 * EPS * Math.abs(old.value) || norm2 < state.least / 2;
  const idle = better || first ? 0 : state.idle + 1;
  // where steps had to be shortened, the next one begins shorter, too
  const reach = first ? state.reach : Math.min(LONGER * trial.t, 1);
  const near = norm2 <= floor;
  const around = new Around(memory, point, begin, P);
  const plan = planOfSteps(around, pair.step, reach, first, near, tolerance);
  const stuck = idle >= TOO_IDLE;
  const blind = first ? state.blind : state.blind + 1;
  const asks =
    (near && plan.quiet && norm2 <= state.asked / 100) ||
    idle === IDLE ||
    stuck ||
    (blind >= BLIND && !memory.flat);
  const after = {
    k: state.k + 1,
    point,
    norm2,
    eta: first ? state.eta : trial.t * trial.eta,
    gamma: first ? state.gamma : trial.gamma,
    P,
    reach,
    ...(asks ? firstProbe(around) : { memory, trial: plan.trial }),
    looked: false,
    stuck,
    asked: state.asked,
    sides: 0,
    idle,
    blind,
    least: Math.min(norm2, state.least),
    begin,
  };
  const falls = begin.isFarAbove(at.value) && !first;
  return [after, info(after, falls ? "unbounded" : finite ? "running" : "nonfinite", !first)];
}

// The step was too long: a shorter one, or, where none helps, a look at the curvature.
function rejected(state, { at, value }) {
  const { trial, point, begin } = state;
  const gaveUp = trial.tries >= MOST_TRIES;
  const stuck = state.stuck || gaveUp;
  const end = gaveUp && state.looked;
  const around = new Around(state.memory, point, begin, state.P);
  const next =
    stuck && !state.looked ? firstProbe(around) : { trial: shorter(trial, point, value) };
  let ending = "running";
  if (begin.isFarAbove(at.value) || (end && isPole(state))) ending = "unbounded";
  else if (end) ending = trial.leaves ? "saddle" : "stalled";
  const after = { ...state, ...next, stuck };
  return [after, info(after, ending, false)];
}

// One look around the point more; after the last one it is known whether more is to gain.
function seenAround(state, { at, floor, tolerance }) {
  const { trial, point, begin, norm2 } = state;
  const memory = probed(
    state.memory, trial.probe, minus(at.x, point.x), minus(at.gradient, point.gradient),
  );
  const home = state.sides === 0;
  const again = () => {
    const around = new Around(memory, point, begin, state.P);
    const after = { ...state, memory, trial: nextProbe(around, trial.probe, trial.aside) };
    return [after, info(after, "running", false)];
  };
  const half = trial.probe === HALF - 1 && home;
  const all = trial.probe === PROBES - 1;
  if (!half && !all) return again();
  const P = probedScaling(memory);
  const around = new Around(memory, point, begin, P);
  const near = norm2 <= floor || !home;
  const blur = half ? ONE_SIDED_NOISE : NOISE;
  const plan = planOfProbes(around, near, tolerance, trial.aside, state.stuck, blur);
  if (!all && !plan.convex) return again();
  const { leaves } = plan.trial;
  const done = !leaves && ((plan.quiet && (near || state.stuck)) || !home);
  const aside = home ? plan.flat : times(-1, trial.aside);
  if (done && state.sides < 2 && !isZero(aside)) {
    const after = { ...state, ...firstProbe(around, aside), sides: state.sides + 1 };
    return [after, info(after, "running", false)];
  }
  const idle = leaves && !home ? 0 : state.idle; // a way out is new
  const end = idle >= TOO_IDLE;
  const after = {
    ...state,
    memory: memory.settled(),
    P,
    reach: 1,
    trial: plan.trial,
    looked: true,
    asked: norm2,
    idle,
    blind: 0,
  };
  let ending = "running";
  if (end && isPole(state)) ending = "unbounded";
  else if (done) ending = "converged";
  else if (end) ending = "stalled";
  return [after, info(after, ending, false)];
}

// At a pole the gradient grows for ever.
function isPole({ norm2, point, begin }) {
  const steep = begin.norm > 0 && norm2 > begin.norm ** 2 / EPS ** 1.2;
  return steep && point.value < begin.value;
}

const info = (state, ending, stepped) => ({ norm2: state.norm2, ending, moved: stepped });
