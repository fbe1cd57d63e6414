// An objective: a formula of x and y with its derivatives. Points are pairs of numbers.

import { parse } from "./parser.js";
import { Tape } from "./tape.js";

export class Objective {
  constructor(formula) {
    this.formula = formula;
    this.tape = new Tape(parse(formula));
    this.derivatives = { value: 0, slope: 0, curvature: 0 };
  }

  value(x) {
    return this.tape.value(x[0], x[1]);
  }

  // Return f and its derivatives along x + t v at t = 0; the next call overwrites them.
  along(x, v) {
    return this.tape.along(x[0], x[1], v[0], v[1], this.derivatives);
  }

  // Return value and gradient at a point.
  evaluate(x) {
    const { value, slope: first } = this.tape.along(x[0], x[1], 1, 0, this.derivatives);
    const { slope: second } = this.tape.along(x[0], x[1], 0, 1, this.derivatives);
    return { x, value, gradient: [first, second] };
  }

  // Return f_j, f_j' and f_j'' at t: coordinate j of x is replaced.
  slice(x, j, t) {
    return j === 0
      ? this.tape.along(t, x[1], 1, 0, this.derivatives)
      : this.tape.along(x[0], t, 0, 1, this.derivatives);
  }

  // Return the diagonal of the Hessian: f_j''(x_j) of both coordinates.
  diagonal(x) {
    return [this.slice(x, 0, x[0]).curvature, this.slice(x, 1, x[1]).curvature];
  }
}
