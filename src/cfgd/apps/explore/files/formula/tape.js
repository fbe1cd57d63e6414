// Forward-mode automatic differentiation to second order: the tree of a formula becomes a tape of
// operations on jets. The jet of a number u along x + t v is u(0), u'(0) and u''(0).

import { FUNCTIONS } from "./functions.js";

const MOST_MULTIPLIED = 64; // the largest exponent that is computed by multiplications

export class Tape {
  constructor(tree) {
    this.steps = []; // of values alone
    this.jets = []; // of values, slopes and curvatures
    this.u = [0, 0];
    this.du = [0, 0];
    this.ddu = [0, 0];
    this.last = this.append(tree);
    this.u = new Float64Array(this.u);
    this.du = new Float64Array(this.du);
    this.ddu = new Float64Array(this.ddu);
  }

  value(x, y) {
    const { u, steps } = this;
    u[0] = x;
    u[1] = y;
    for (let i = 0; i < steps.length; i += 1) steps[i](u);
    return u[this.last];
  }

  // Write value, slope and curvature of f along (x, y) + t (a, b) at t = 0 to `out`.
  along(x, y, a, b, out) {
    const { u, du, ddu, steps, jets, last } = this;
    u[0] = x;
    u[1] = y;
    du[0] = a;
    du[1] = b;
    for (let i = 0; i < steps.length; i += 1) {
      steps[i](u);
      jets[i](u, du, ddu);
    }
    out.value = u[last];
    out.slope = du[last];
    out.curvature = ddu[last];
    return out;
  }

  // Append the operations of a tree; return the index of its number.
  append(tree) {
    if (tree.op === "x") return 0;
    if (tree.op === "y") return 1;
    const fixed = constant(tree);
    if (fixed !== null) return this.allocate(fixed);
    if (tree.op === "^") return this.power(tree);
    if (tree.of) return this.unary(tree, this.append(tree.of));
    return this.binary(tree.op, this.append(tree.left), this.append(tree.right));
  }

  allocate(value) {
    this.du.push(0);
    this.ddu.push(0);
    return this.u.push(value) - 1;
  }

  record(step, jet) {
    this.steps.push(step);
    this.jets.push(jet);
  }

  binary(op, i, j) {
    const k = this.allocate(0);
    if (op === "+") {
      this.record(
        (u) => { u[k] = u[i] + u[j]; },
        (u, d, dd) => { d[k] = d[i] + d[j]; dd[k] = dd[i] + dd[j]; },
      );
    } else if (op === "-") {
      this.record(
        (u) => { u[k] = u[i] - u[j]; },
        (u, d, dd) => { d[k] = d[i] - d[j]; dd[k] = dd[i] - dd[j]; },
      );
    } else if (op === "*") {
      this.record(
        (u) => { u[k] = u[i] * u[j]; },
        (u, d, dd) => {
          d[k] = d[i] * u[j] + u[i] * d[j];
          dd[k] = dd[i] * u[j] + 2 * d[i] * d[j] + u[i] * dd[j];
        },
      );
    } else {
      this.record(
        (u) => { u[k] = u[i] / u[j]; },
        (u, d, dd) => {
          d[k] = (d[i] - u[k] * d[j]) / u[j];
          dd[k] = (dd[i] - 2 * d[k] * d[j] - u[k] * dd[j]) / u[j];
        },
      );
    }
    return k;
  }

  unary({ op }, i) {
    const k = this.allocate(0);
    if (op === "negative") {
      this.record(
        (u) => { u[k] = -u[i]; },
        (u, d, dd) => { d[k] = -d[i]; dd[k] = -dd[i]; },
      );
      return k;
    }
    const { value, slope, curvature } = FUNCTIONS[op];
    return this.chain(k, i, value, slope, curvature);
  }

  // g(u): the chain rule, twice.
  chain(k, i, value, slope, curvature) {
    this.record(
      (u) => { u[k] = value(u[i]); },
      (u, d, dd) => {
        const first = slope(u[i], u[k]);
        d[k] = first * d[i];
        dd[k] = curvature(u[i], u[k]) * d[i] * d[i] + first * dd[i];
      },
    );
    return k;
  }

  power({ left, right }) {
    const n = constant(right);
    const i = this.append(left);
    if (n === null) return this.exponential(i, this.append(right));
    const raised = Number.isInteger(n) && Math.abs(n) <= MOST_MULTIPLIED ? multiplied : Math.pow;
    return this.chain(
      this.allocate(0),
      i,
      (u) => raised(u, n),
      (u) => (n === 0 ? 0 : n * raised(u, n - 1)),
      (u) => (n === 0 || n === 1 ? 0 : n * (n - 1) * raised(u, n - 2)),
    );
  }

  // u_i ^ u_j = exp(w), w = u_j log u_i
  exponential(i, j) {
    const k = this.allocate(0);
    this.record(
      (u) => { u[k] = Math.pow(u[i], u[j]); },
      (u, d, dd) => {
        const log = Math.log(u[i]);
        const relative = d[i] / u[i];
        const dw = d[j] * log + u[j] * relative;
        const ddw =
          dd[j] * log + 2 * d[j] * relative + u[j] * (dd[i] / u[i] - relative * relative);
        d[k] = u[k] * dw;
        dd[k] = u[k] * (ddw + dw * dw);
      },
    );
    return k;
  }
}

// Return u^n by repeated squaring, which is more accurate than Math.pow for small n.
function multiplied(u, n) {
  if (n < 0) return 1 / multiplied(u, -n);
  let power = 1;
  for (let square = u, left = n; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) power *= square;
    square *= square;
  }
  return power;
}

// Return the value of a tree without x and y, else null.
function constant(tree) {
  if (tree.op === "number") return tree.value;
  if (tree.op === "x" || tree.op === "y") return null;
  if (tree.of) {
    const u = constant(tree.of);
    if (u === null) return null;
    return tree.op === "negative" ? -u : FUNCTIONS[tree.op].value(u);
  }
  const u = constant(tree.left);
  const v = constant(tree.right);
  if (u === null || v === null) return null;
  if (tree.op === "+") return u + v;
  if (tree.op === "-") return u - v;
  if (tree.op === "*") return u * v;
  if (tree.op === "/") return u / v;
  return Math.pow(u, v);
}
