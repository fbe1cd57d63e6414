// The methods that the page draws: presets of terminal, order and step, Auto, and published rules.

import { betaOf, orderOf } from "./direction.js";
import { Fractional } from "./fractional.js";
import { PUBLISHED, UpdateRule } from "./published.js";
import { run, runAuto } from "./run.js";
import { armijoStep, exactStep, fixedStep, gridStep } from "./step.js";

export const OWN = ["gradient", "nonadaptive", "terminal", "order", "auto"];
export const METHODS = [...OWN, ...Object.keys(PUBLISHED)];

export const STEPS = {
  exact: exactStep,
  fixed: ({ eta }) => fixedStep(eta),
  grid: gridStep,
  armijo: armijoStep,
};

// Return beta, computed from gamma where that is the given one.
const betaIn = ({ alpha, given, beta, gamma }) =>
  given === "beta" ? beta : betaOf(alpha, gamma);

// Return the stages of the adaptive order, of equal length, in which gamma decreases to 0.
function stagesOf({ alpha, nodes, stages, iterations, ...rest }) {
  const { gamma } = orderOf(alpha, betaIn({ alpha, ...rest }), nodes);
  const length = Math.floor(iterations / stages);
  return Array.from({ length: stages }, (_, s) => ({
    iterations: s < stages - 1 ? length : iterations - length * (stages - 1),
    gamma: stages === 1 ? gamma : gamma * (1 - s / (stages - 1)),
  }));
}

export function fractional(name, setting) {
  const { alpha, nodes, iterations } = setting;
  const stepRule = STEPS[setting.step](setting);
  const order = orderOf(alpha, betaIn(setting), nodes);
  const orders = () => order;
  if (name === "gradient") return new Fractional({ terminal: { isGradient: true }, orders, stepRule });
  if (name === "nonadaptive") {
    return new Fractional({ terminal: { fixed: setting.terminal }, orders, stepRule });
  }
  if (name === "terminal") {
    const terminal = { lag: setting.lag, past: setting.past };
    return new Fractional({ terminal, orders, stepRule });
  }
  const stages = stagesOf(setting);
  const all = stages.flatMap((stage) => {
    const one = orderOf(alpha, betaOf(alpha, stage.gamma), nodes);
    return Array(stage.iterations).fill(one);
  });
  return new Fractional({
    terminal: { fixed: setting.terminal },
    orders: (k) => all[Math.min(k, all.length - 1)],
    stepRule,
    last: iterations,
    vanishes: true,
  });
}

// Run a method by its name in `METHODS`.
export function runMethod(name, objective, setting) {
  const { start, iterations } = setting;
  if (name === "auto") return runAuto(objective, start, iterations);
  if (name in PUBLISHED) {
    return run(objective, new UpdateRule(PUBLISHED[name](setting)), start, iterations);
  }
  return run(objective, fractional(name, setting), start, iterations);
}
