// Fractional = terminal x order x step: propose a direction, then choose its length.

import { inner, moved, product } from "./algebra.js";
import { direction } from "./direction.js";

// A terminal is `here` (c = x: the direction is the gradient), `stays` (at one point) or `follows`
// (at a distance of `lag` iterations). `orders(k)` gives alpha, beta, gamma and nodes.
export class Fractional {
  constructor({ terminal, orders, step, last = Infinity, vanishes = false }) {
    Object.assign(this, { terminal, orders, step, last, vanishes });
  }

  // Whether a run is judged by f and its gradient, and not by its direction alone.
  get seeksMinimiser() {
    return this.vanishes || !this.terminal.stays;
  }

  start(objective, x0) {
    return { k: 0, point: objective.at(x0), path: [x0], memory: this.step.start };
  }

  terminalAt(k, path) {
    const { here, stays, lag, past } = this.terminal;
    if (here) return path[k];
    if (stays) return stays;
    if (k >= lag) return path[k - lag];
    return past === null ? path[0] : past[lag - k - 1];
  }

  directionAt(objective, { k, point, path }) {
    const { here, stays } = this.terminal;
    const c = this.terminalAt(k, path);
    const same = c[0] === point.x[0] && c[1] === point.x[1];
    if (here || (same && !stays)) return point.gradient;
    return direction(objective, point.x, c, this.orders(k));
  }

  propose(objective, state) {
    const { point, k } = state;
    const g = point.gradient;
    const d = this.directionAt(objective, state);
    const slope = inner(g, d);
    const { here, stays } = this.terminal;
    if (stays) {
      const square = inner(d, d);
      const norm2 = this.seeksMinimiser ? inner(g, g) : square;
      return { d, norm2, descent: square, gamma: this.orders(k).gamma, reset: false };
    }
    const norm2 = inner(g, g);
    const reset = !here && this.step.stalls(slope, norm2);
    return reset ? { d: g, norm2, descent: norm2, reset } : { d, norm2, descent: slope, reset };
  }

  line(objective, point, { d, descent, gamma }) {
    const { stays } = this.terminal;
    const curvature = () => {
      const own = objective.along(point.x, d).curvature;
      if (!stays) return own;
      const [first, second] = objective.diagonal(point.x);
      return own + inner(product([gamma * first, gamma * second], d), d);
    };
    return { objective, point, d, slope: descent, curvature, descendsOnF: !stays };
  }

  advance(objective, state, floor) {
    const proposal = this.propose(objective, state);
    const line = this.line(objective, state.point, proposal);
    const chosen = this.step.choose(line, state.memory);
    const moves = proposal.norm2 > floor;
    const eta = moves ? chosen.eta : 0;
    const point = objective.at(moved(state.point.x, -eta, proposal.d));
    // a stage whose direction has vanished waits for the next one
    const waits = this.terminal.stays && this.seeksMinimiser;
    const alongGradient = proposal.descent === proposal.norm2;
    const after = {
      k: state.k + (moves ? 1 : 0),
      point,
      path: state.path,
      memory: chosen.memory,
    };
    const info = {
      norm2: proposal.norm2,
      cost: moves ? 1 + this.directionCost(state.k) + chosen.cost : 0,
      ending: moves && eta === 0 && alongGradient && !waits ? "stalled" : "running",
      reset: proposal.reset && moves,
      moved: moves,
    };
    return [after, info];
  }

  directionCost(k) {
    return this.terminal.here ? 0 : 2 * this.orders(k).nodes;
  }

  // The squared norm that the tolerance is about.
  measure(objective, state) {
    const d = this.seeksMinimiser ? state.point.gradient : this.directionAt(objective, state);
    return inner(d, d);
  }
}
