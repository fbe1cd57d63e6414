// The methods that the page draws: presets of terminal, order and step, and Auto.

import { Auto } from "./auto.js";
import { betaOf, memoryOf } from "./direction.js";
import { Fractional } from "./fractional.js";
import { run, runAuto } from "./run.js";
import { armijoStep, exactStep, fixedStep, gridStep } from "./step.js";

export const METHODS = ["gradient", "nonadaptive", "terminal", "order", "auto"];

export const STEPS = {
  exact: exactStep,
  fixed: ({ eta }) => fixedStep(eta),
  grid: gridStep,
  armijo: armijoStep,
};

// beta as it was given, or as it follows from gamma
const betaIn = ({ alpha, given, beta, gamma }) =>
  given === "beta" ? beta : betaOf(alpha, gamma);

// The stages of the adaptive order: in so many equal parts gamma falls to 0.
function stagesOf({ alpha, nodes, stages, iterations, ...rest }) {
  const { gamma } = memoryOf(alpha, betaIn({ alpha, ...rest }), nodes);
  const length = Math.floor(iterations / stages);
  return Array.from({ length: stages }, (_, s) => ({
    iterations: s < stages - 1 ? length : iterations - length * (stages - 1),
    gamma: stages === 1 ? gamma : gamma * (1 - s / (stages - 1)),
  }));
}

export function fractional(name, setting) {
  const { alpha, nodes, iterations } = setting;
  const step = STEPS[setting.step](setting);
  const memory = memoryOf(alpha, betaIn(setting), nodes);
  const orders = () => memory;
  if (name === "gradient") return new Fractional({ terminal: { here: true }, orders, step });
  if (name === "nonadaptive") {
    return new Fractional({ terminal: { stays: setting.terminal }, orders, step });
  }
  if (name === "terminal") {
    const terminal = { lag: setting.lag, past: setting.past };
    return new Fractional({ terminal, orders, step });
  }
  const stages = stagesOf(setting);
  const memories = stages.flatMap((stage) => {
    const one = memoryOf(alpha, betaOf(alpha, stage.gamma), nodes);
    return Array(stage.iterations).fill(one);
  });
  return new Fractional({
    terminal: { stays: setting.terminal },
    orders: (k) => memories[Math.min(k, memories.length - 1)],
    step,
    last: iterations,
    vanishes: true,
  });
}

// The path of a method, its values, and how it ended.
export function walk(name, objective, setting) {
  const { start, iterations } = setting;
  if (name === "auto") return runAuto(objective, new Auto(), start, iterations);
  return run(objective, fractional(name, setting), start, iterations);
}
