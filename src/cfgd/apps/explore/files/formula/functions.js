// The functions that a formula may use: value, slope and curvature of each, and its constants.

export const CONSTANTS = { pi: Math.PI, e: Math.E };

const square = (u) => u * u;

// slope and curvature are given u and the value there
export const FUNCTIONS = {
  sin: { value: Math.sin, slope: Math.cos, curvature: (u, v) => -v },
  cos: { value: Math.cos, slope: (u) => -Math.sin(u), curvature: (u, v) => -v },
  tan: {
    value: Math.tan,
    slope: (u, v) => 1 + v * v,
    curvature: (u, v) => 2 * v * (1 + v * v),
  },
  asin: {
    value: Math.asin,
    slope: (u) => 1 / Math.sqrt((1 - u) * (1 + u)),
    curvature: (u) => u / ((1 - u) * (1 + u)) ** 1.5,
  },
  acos: {
    value: Math.acos,
    slope: (u) => -1 / Math.sqrt((1 - u) * (1 + u)),
    curvature: (u) => -u / ((1 - u) * (1 + u)) ** 1.5,
  },
  atan: {
    value: Math.atan,
    slope: (u) => 1 / (1 + u * u),
    curvature: (u) => (-2 * u) / square(1 + u * u),
  },
  sinh: { value: Math.sinh, slope: Math.cosh, curvature: (u, v) => v },
  cosh: { value: Math.cosh, slope: Math.sinh, curvature: (u, v) => v },
  tanh: {
    value: Math.tanh,
    slope: (u, v) => 1 - v * v,
    curvature: (u, v) => -2 * v * (1 - v * v),
  },
  exp: { value: Math.exp, slope: (u, v) => v, curvature: (u, v) => v },
  log: { value: Math.log, slope: (u) => 1 / u, curvature: (u) => -1 / (u * u) },
  sqrt: {
    value: Math.sqrt,
    slope: (u, v) => 0.5 / v,
    curvature: (u, v) => -0.25 / (v * v * v),
  },
  abs: { value: Math.abs, slope: Math.sign, curvature: () => 0 },
};
FUNCTIONS.ln = FUNCTIONS.log;
