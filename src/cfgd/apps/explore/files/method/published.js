// Published fractional update rules, x_(k+1) = x_k - s_k: those of cfgd.zoo that differ in the plane.
//
// A rule is a function of the order alpha, the rate eta and the nodes. It returns `start(x)`, the
// first memory, `update(evaluation, memory, k, objective)`, which returns the step and the next
// memory, and `cost`, the gradients of an iteration. The other constants are the library's defaults.

import { absolute, inner, minus, moved, product, times } from "./algebra.js";
import { direction, orderOf } from "./direction.js";

const DELTA = 1e-8;
const LOWER = 0.1;
const UPPER = 1.0;
const TERMS = 10;
const B1 = 0.9;
const B2 = 0.999;
const MEMORY = 100;

// Gamma(z) for z in [1, 2], by Lanczos' approximation: relative error 1e-15.
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
  -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
  1.5056327351493116e-7,
];
function gamma(z) {
  const base = z + 6.5;
  const sum = LANCZOS.reduce((total, c, i) => total + (i === 0 ? c : c / (z - 1 + i)), 0);
  return Math.sqrt(2 * Math.PI) * base ** (z - 0.5) * Math.exp(-base) * sum;
}

// D^(1 - alpha) / Gamma(2 - alpha) of both coordinates
const firstTerm = (D, alpha) => D.map((one) => one ** (1 - alpha) / gamma(2 - alpha));

// w_0 = 1, w_j = (1 - (alpha + 1)/j) w_(j - 1)
function binomialWeights(alpha, count) {
  const weights = [1];
  for (let j = 1; j < count; j += 1) weights.push((1 - (alpha + 1) / j) * weights[j - 1]);
  return weights;
}

const weighted = (weights, vectors) =>
  vectors.reduce((sum, vector, j) => moved(sum, weights[j], vector), [0, 0]);

// Rule 1: the gradient times a power of the last step.
function wang({ alpha, eta }) {
  return {
    cost: 1,
    start: (x) => x,
    update({ x, gradient }, before, k) {
      const D = k === 0 ? [1, 1] : absolute(minus(x, before));
      return [times(eta, product(gradient, firstTerm(D, alpha))), x];
    },
  };
}

// Rule 5: the Caputo derivative with the previous point as terminal, not normalised.
function wei({ alpha, eta, nodes }) {
  const order = orderOf(alpha, 0, nodes);
  return {
    cost: 1 + 2 * nodes,
    start: (x) => x,
    update({ x }, c, k, objective) {
      const D = k === 0 ? [1, 1] : absolute(minus(x, c));
      const d = direction(objective, x, c, order);
      return [times(eta, product(d, firstTerm(D, alpha))), x];
    },
  };
}

// Rule 7: the gradient times a power of |x|.
function herrera({ alpha, eta }) {
  return {
    cost: 1,
    start: () => null,
    update({ x, gradient }) {
      const size = absolute(x).map((one) => one + DELTA);
      return [times(eta, product(gradient, firstTerm(size, alpha))), null];
    },
  };
}

// Rule 11: a rate that is a power of the length of the last step, clipped.
function liu({ alpha, eta }) {
  return {
    cost: 1,
    start: (x) => x,
    update({ x, gradient }, before) {
      const s = minus(x, before);
      const power = (Math.sqrt(inner(s, s)) + DELTA) ** (1 - alpha);
      return [times(eta * Math.min(Math.max(power, LOWER), UPPER), gradient), x];
    },
  };
}

// Rule 13: Adam on the fractional difference of the gradients.
function fracAdam({ alpha, eta }) {
  const weights = binomialWeights(alpha, TERMS + 1);
  return {
    cost: 1,
    start: () => ({ gradients: [], m: [0, 0], v: [0, 0] }),
    update({ gradient }, memory, k) {
      const gradients = [gradient, ...memory.gradients].slice(0, TERMS + 1);
      const G = weighted(weights, gradients);
      const m = moved(times(B1, memory.m), 1 - B1, G);
      const v = moved(times(B2, memory.v), 1 - B2, product(G, G));
      const step = m.map((one, j) => {
        const size = Math.sqrt(v[j] / (1 - B2 ** (k + 1))) + DELTA;
        return (eta * (one / (1 - B1 ** (k + 1)))) / size;
      });
      return [step, { gradients, m, v }];
    },
  };
}

// Rule 15: the gradient flow with a fractional derivative in time.
function xie({ alpha, eta }) {
  const weights = binomialWeights(alpha, MEMORY + 1).slice(1);
  return {
    cost: 1,
    start: (x) => ({ x0: x, past: [] }),
    update({ x, gradient }, { x0, past: before }) {
      const past = [minus(x, x0), ...before].slice(0, MEMORY);
      const memory = weighted(weights, past);
      const next = minus(moved(x0, -(eta ** alpha), gradient), memory);
      return [minus(x, next), { x0, past }];
    },
  };
}

export const PUBLISHED = { wang, wei, herrera, liu, fracAdam, xie };

// A rule as a method of `run`.
export class UpdateRule {
  constructor(rule) {
    Object.assign(this, { rule, last: Infinity });
  }

  init(objective, x0) {
    return { k: 0, evaluation: objective.evaluate(x0), path: [x0], memory: this.rule.start(x0) };
  }

  step(objective, state, floor) {
    const { evaluation, k, path } = state;
    const norm2 = this.measure(objective, state);
    const isMoving = norm2 > floor;
    if (!isMoving) return [state, { norm2, cost: 0, status: "running", reset: false, moved: false }];
    const [step, memory] = this.rule.update(evaluation, state.memory, k, objective);
    const next = objective.evaluate(minus(evaluation.x, step));
    const info = { norm2, cost: this.rule.cost, status: "running", reset: false, moved: true };
    return [{ k: k + 1, evaluation: next, path, memory }, info];
  }

  measure(objective, { evaluation }) {
    return inner(evaluation.gradient, evaluation.gradient);
  }
}
