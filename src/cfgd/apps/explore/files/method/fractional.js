// Fractional = terminal x order x step: compute a direction, then choose the step size.

import { inner, moved, product } from "./algebra.js";
import { direction } from "./direction.js";

// A terminal has `isGradient` (c = x, so that the direction is the gradient), `fixed` (the one point
// where it is), or `lag` and `past` (c_k = x_(k - lag)). `orders(k)` returns alpha, beta, gamma, nodes.
export class Fractional {
  constructor({ terminal, orders, stepRule, last = Infinity, vanishes = false }) {
    Object.assign(this, { terminal, orders, stepRule, last, vanishes });
  }

  // Whether a run converges to a minimiser of f, and not to a Tikhonov solution where d vanishes.
  get seeksMinimiser() {
    return this.vanishes || !this.terminal.fixed;
  }

  init(objective, x0) {
    return { k: 0, evaluation: objective.evaluate(x0), path: [x0], memory: this.stepRule.init };
  }

  terminalAt(k, path) {
    const { isGradient, fixed, lag, past } = this.terminal;
    if (isGradient) return path[k];
    if (fixed) return fixed;
    if (k >= lag) return path[k - lag];
    return past === null ? path[0] : past[lag - k - 1];
  }

  directionAt(objective, { k, evaluation, path }) {
    const { isGradient, fixed } = this.terminal;
    const c = this.terminalAt(k, path);
    const isSame = c[0] === evaluation.x[0] && c[1] === evaluation.x[1];
    if (isGradient || (isSame && !fixed)) return evaluation.gradient;
    return direction(objective, evaluation.x, c, this.orders(k));
  }

  propose(objective, state) {
    const { evaluation, k } = state;
    const g = evaluation.gradient;
    const d = this.directionAt(objective, state);
    const slope = inner(g, d);
    const { isGradient, fixed } = this.terminal;
    if (fixed) {
      const square = inner(d, d);
      const norm2 = this.seeksMinimiser ? inner(g, g) : square;
      return { d, norm2, descent: square, gamma: this.orders(k).gamma, reset: false };
    }
    const norm2 = inner(g, g);
    const reset = !isGradient && this.stepRule.isNoDescent(slope, norm2);
    return reset ? { d: g, norm2, descent: norm2, reset } : { d, norm2, descent: slope, reset };
  }

  line(objective, evaluation, { d, descent, gamma }) {
    const { fixed } = this.terminal;
    const curvature = () => {
      const curvatureOfF = objective.along(evaluation.x, d).curvature;
      if (!fixed) return curvatureOfF;
      const [first, second] = objective.diagonal(evaluation.x);
      return curvatureOfF + inner(product([gamma * first, gamma * second], d), d);
    };
    return { objective, evaluation, d, slope: descent, curvature, decreasesF: !fixed };
  }

  step(objective, state, floor) {
    const proposal = this.propose(objective, state);
    const line = this.line(objective, state.evaluation, proposal);
    const chosen = this.stepRule.choose(line, state.memory);
    const moves = proposal.norm2 > floor;
    const eta = moves ? chosen.eta : 0;
    const evaluation = objective.evaluate(moved(state.evaluation.x, -eta, proposal.d));
    // a stage whose direction has vanished waits for the next one
    const waits = this.terminal.fixed && this.seeksMinimiser;
    const alongGradient = proposal.descent === proposal.norm2;
    const after = {
      k: state.k + (moves ? 1 : 0),
      evaluation,
      path: state.path,
      memory: chosen.memory,
    };
    const info = {
      norm2: proposal.norm2,
      cost: moves ? 1 + this.directionCost(state.k) + chosen.cost : 0,
      status: moves && eta === 0 && alongGradient && !waits ? "stalled" : "running",
      reset: proposal.reset && moves,
      moved: moves,
    };
    return [after, info];
  }

  directionCost(k) {
    return this.terminal.isGradient ? 0 : 2 * this.orders(k).nodes;
  }

  // Return the squared norm that the tolerance bounds.
  measure(objective, state) {
    const d = this.seeksMinimiser ? state.evaluation.gradient : this.directionAt(objective, state);
    return inner(d, d);
  }
}
