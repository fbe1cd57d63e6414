// The settings that each method's run depends on: a change of others needs no new run.

import { PUBLISHED } from "./published.js";

const SHARED = ["formula", "start", "step", "eta", "iterations"];
const ORDER = ["alpha", "given", "beta", "gamma", "nodes"];
export const NEEDS = {
  gradient: SHARED,
  nonadaptive: [...SHARED, ...ORDER, "terminal"],
  terminal: [...SHARED, ...ORDER, "lag", "past"],
  order: [...SHARED, ...ORDER, "terminal", "stages"],
  auto: ["formula", "start", "iterations"],
  ...Object.fromEntries(
    Object.keys(PUBLISHED).map((name) => [name, ["formula", "start", "iterations", "alpha", "eta", "nodes"]]),
  ),
};
