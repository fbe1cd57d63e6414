// The state of the page, all of which a link carries: function, points, settings and view.

import { KNOWN } from "./known.js";
import { METHODS, OWN, STEPS } from "./method/presets.js";
import { MOST_ITERATIONS } from "./method/run.js";
import { parse } from "./formula/parser.js";

export const FRACTIONAL = ["nonadaptive", "terminal", "order"];
const MOST_LAG = 5;

// The numbers, with the ends of their sliders; a typed value may go as far as `wanted` says.
export const NUMBERS = {
  alpha: { least: 0.01, most: 0.99, by: 0.01, wanted: "lie in (0, 1)", ok: (v) => v > 0 && v < 1 },
  beta: { least: -2, most: 2, by: 0.01, wanted: "be a number", ok: () => true },
  gamma: { least: -2, most: 2, by: 0.01, wanted: "be a number", ok: () => true },
  betaFixed: { least: -2, most: 2, by: 0.01, wanted: "be a number", ok: () => true },
  gammaFixed: { least: -2, most: 2, by: 0.01, wanted: "be a number", ok: () => true },
  lag: { least: 1, most: MOST_LAG, by: 1, whole: true },
  nodes: { least: 1, most: 30, by: 1, whole: true },
  eta: { least: -5, most: 1, by: 0.05, logarithmic: true, wanted: "be positive", ok: (v) => v > 0 },
  iterations: { least: 1, most: 300, by: 1, whole: true, limit: MOST_ITERATIONS },
  stages: { least: 2, most: 8, by: 1, whole: true },
};

// Return a typed number, or a message if it is wrong.
export function numberFrom(name, text) {
  const { least, most, whole, limit = most, wanted, ok } = NUMBERS[name];
  const value = /^\s*[-−+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$/.test(text)
    ? Number(text.replace("−", "-"))
    : NaN;
  const words = whole ? `be an integer from ${least} to ${limit}` : wanted;
  const good = whole
    ? Number.isInteger(value) && value >= least && value <= limit
    : Number.isFinite(value) && ok(value);
  const word = name.replace("Fixed", "");
  return good ? { value } : { sentence: `${word} must ${words}, got ${text.trim() || "nothing"}.` };
}

export function ofKnown(known) {
  const { id, formula, view, start, terminal, past, gamma } = known;
  return { known: id, formula, view, start, terminal, past, gamma };
}

export const DEFAULTS = {
  ...ofKnown(KNOWN[0]),
  atStart: false, // whether the past points are the start itself
  alpha: 0.5,
  given: "gamma",
  beta: 0.1, // for a moving terminal; the next two for a fixed one
  betaFixed: 0.7,
  gammaFixed: 0.3,
  lag: 1,
  nodes: 10,
  step: "exact",
  eta: 0.01,
  iterations: 60,
  stages: 4,
  shown: OWN,
  of: "terminal", // whose slice is shown, along which coordinate, at which iteration
  along: "x",
  k: 0,
  equal: false, // whether a unit of x is drawn as long as one of y
};

// Return as many past points as the lag needs: new ones a little further back than the last.
export function pastOf({ past, lag, start, view }) {
  const points = past.slice(0, lag);
  const back = [0.06 * (view[1] - view[0]), 0.06 * (view[3] - view[2])];
  while (points.length < lag) {
    const last = points.at(-1) ?? start;
    points.push([tidy(last[0] - back[0]), tidy(last[1] + back[1])]);
  }
  return points;
}

const tidy = (value) => Number(value.toPrecision(3));

// Return the settings of a method. With a moving terminal a useful gamma is negative (momentum); with
// a fixed one a negative gamma would push x away from it, so that each has its own gamma.
export function settingOf(name, state) {
  const past = state.atStart ? null : pastOf(state);
  if (name !== "nonadaptive" && name !== "order") return { ...state, past };
  return { ...state, past, beta: state.betaFixed, gamma: state.gammaFixed };
}

const numbers = (list) => list.flat().join(",");

export function linkOf(state) {
  const fields = new URLSearchParams();
  const known = KNOWN.find(({ id }) => id === state.known);
  fields.set("f", known && known.formula === state.formula ? known.id : state.formula);
  for (const name of ["start", "terminal", "view"]) fields.set(name, numbers(state[name]));
  if (state.equal) fields.set("equal", "1");
  fields.set("past", state.atStart ? "start" : numbers(pastOf(state)));
  const given = [state.given, `${state.given}Fixed`];
  for (const name of ["alpha", ...given, "lag", "nodes", "step", "eta", "iterations", "stages"]) {
    fields.set(name, String(state[name]));
  }
  fields.set("show", state.shown.join(",") || "none");
  for (const name of ["of", "along", "k"]) fields.set(name, String(state[name]));
  return `#${fields}`;
}

// Return the state of a link, with defaults where it is incomplete or wrong.
export function ofLink(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  const text = fields.get("f");
  const known = KNOWN.find(({ id }) => id === text);
  if (known) Object.assign(state, ofKnown(known));
  else if (text !== null && isFormula(text)) Object.assign(state, { known: "", formula: text });
  const start = pointsFrom(fields.get("start"));
  if (start.length === 1) [state.start] = start;
  const terminal = pointsFrom(fields.get("terminal"));
  if (terminal.length === 1) [state.terminal] = terminal;
  const view = numbersFrom(fields.get("view"));
  if (view.length === 4 && view[0] < view[1] && view[2] < view[3]) state.view = view;
  state.equal = fields.get("equal") === "1";
  state.atStart = fields.get("past") === "start";
  const past = pointsFrom(fields.get("past"));
  if (past.length >= 1 && past.length <= MOST_LAG) state.past = past;
  if (fields.has("beta")) state.given = "beta";
  for (const name of Object.keys(NUMBERS)) {
    const typed = fields.get(name) ?? fields.get(name.replace("Fixed", "Stays")); // of earlier links
    const read = typed === null ? {} : numberFrom(name, typed);
    if ("value" in read) state[name] = read.value;
  }
  if (Object.hasOwn(STEPS, fields.get("step") ?? "")) state.step = fields.get("step");
  if (fields.has("show")) {
    const shown = fields.get("show").split(",");
    state.shown = METHODS.filter((name) => shown.includes(name));
  }
  if (FRACTIONAL.includes(fields.get("of"))) state.of = fields.get("of");
  if (["x", "y"].includes(fields.get("along"))) state.along = fields.get("along");
  const k = Number(fields.get("k"));
  if (Number.isInteger(k) && k >= 0) state.k = Math.min(k, MOST_ITERATIONS);
  return state;
}

function isFormula(text) {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}

function numbersFrom(text) {
  const read = (text ?? "").split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  return read.every((one) => Number.isFinite(one) && Math.abs(one) <= 1e9) ? read : [];
}

function pointsFrom(text) {
  const read = numbersFrom(text);
  if (read.length % 2 === 1) return [];
  return Array.from({ length: read.length / 2 }, (_, i) => read.slice(2 * i, 2 * i + 2));
}
