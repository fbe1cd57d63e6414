// What is minimised: a formula of x and y with its slopes. Points are pairs of numbers.

import { parse } from "./parser.js";
import { Tape } from "./tape.js";

export class Objective {
  constructor(formula) {
    this.formula = formula;
    this.tape = new Tape(parse(formula));
    this.seen = { value: 0, slope: 0, curvature: 0 };
  }

  value(x) {
    return this.tape.value(x[0], x[1]);
  }

  // f along x + t v at t = 0; the next call writes over what this one gave
  along(x, v) {
    return this.tape.along(x[0], x[1], v[0], v[1], this.seen);
  }

  // the objective at a point: value and gradient
  at(x) {
    const { value, slope: first } = this.tape.along(x[0], x[1], 1, 0, this.seen);
    const { slope: second } = this.tape.along(x[0], x[1], 0, 1, this.seen);
    return { x, value, gradient: [first, second] };
  }

  // f_j, f_j' and f_j'' at t: only coordinate j of x is replaced
  slice(x, j, t) {
    return j === 0
      ? this.tape.along(t, x[1], 1, 0, this.seen)
      : this.tape.along(x[0], t, 0, 1, this.seen);
  }

  // f_j''(x_j) of both coordinates: the diagonal of the Hessian
  diagonal(x) {
    return [this.slice(x, 0, x[0]).curvature, this.slice(x, 1, x[1]).curvature];
  }
}
