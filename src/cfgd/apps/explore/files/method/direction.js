// The direction of the paper:
//
//   d_j = E[f_j'(T_j)] + beta (x_j - c_j) E[f_j''(T_j)],   T_j = c_j + U (x_j - c_j)

import { rule } from "../calculus/quadrature.js";
import { smoothedSlope } from "../calculus/smoothing.js";

// Solve gamma = beta - (1 - alpha)/(2 - alpha) for beta.
export const betaOf = (alpha, gamma) => gamma + (1 - alpha) / (2 - alpha);

// Return alpha, beta and nodes with the gamma that they give.
export function orderOf(alpha, beta, nodes) {
  const { u, w } = rule(alpha, nodes);
  const mean = u.reduce((sum, node, l) => sum + node * w[l], 0);
  return { alpha, beta, nodes, gamma: beta + mean - 1 };
}

export function direction(objective, x, c, { alpha, beta, nodes }) {
  return [0, 1].map((j) =>
    smoothedSlope((t) => objective.slice(x, j, t), alpha, beta, c[j], x[j], nodes),
  );
}
