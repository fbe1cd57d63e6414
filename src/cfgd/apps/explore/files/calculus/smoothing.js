// The smoothing F of Theorem 1, whose slope at x_j is the coordinate d_j of the direction:
//
//   F'(z) = E[f'(T)] + beta (z - c) E[f''(T)],   T = c + U (z - c)
//   F(z)  = f(c) + E[(1 - alpha beta) (f(T) - f(c)) / U + beta h f'(T)]
//           - beta (1 - alpha) h f'(c),   h = z - c

import { rule } from "./quadrature.js";

const NODES = 64; // for the curve, whatever the direction has

// `slice(t)` gives value, slope and curvature of a function of one variable.
export function smoothing(slice, alpha, beta, c) {
  const { u, w } = rule(alpha, NODES);
  const { value: there, slope: begins } = { ...slice(c) };
  return (z) => {
    const h = z - c;
    let mean = 0;
    for (let l = 0; l < NODES; l += 1) {
      const { value, slope } = slice(c + u[l] * h);
      mean += w[l] * (((1 - alpha * beta) * (value - there)) / u[l] + beta * h * slope);
    }
    return there + mean - beta * (1 - alpha) * h * begins;
  };
}

// F'(z) by a rule of so many nodes: a coordinate of the direction.
export function smoothedSlope(slice, alpha, beta, c, z, nodes) {
  const { u, w } = rule(alpha, nodes);
  const h = z - c;
  let first = 0;
  let second = 0;
  for (let l = 0; l < nodes; l += 1) {
    const { slope, curvature } = slice(c + u[l] * h);
    first += w[l] * slope;
    second += w[l] * curvature;
  }
  return first + beta * h * second;
}
