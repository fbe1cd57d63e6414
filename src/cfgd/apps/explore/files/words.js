// The texts for methods and statuses, and the format of numbers.

export const NAMES = {
  gradient: "Gradient descent",
  nonadaptive: "Non-adaptive",
  terminal: "Adaptive terminal",
  order: "Adaptive order",
  auto: "Auto (L-BFGS)",
  wang: "1 Wang 2017",
  wei: "5 Wei 2020",
  herrera: "7 Herrera 2022",
  liu: "11 Liu 2023",
  fracAdam: "13 Frac-Adam 2025",
  xie: "15 Xie 2022",
};

export const ABOUT = {
  gradient: "terminal = x: the direction is the gradient",
  nonadaptive: "fixed terminal: converges to a Tikhonov solution",
  terminal: "moving terminal: x from lag iterations ago (rule 16 of cfgd.zoo)",
  order: "fixed terminal; gamma decreases to 0 in stages",
  auto: "no parameters to choose: L-BFGS with a diagonal preconditioner",
  wang: "gradient times a power of the last step, step size eta",
  wei: "Caputo derivative from the last point, not normalised, step size eta",
  herrera: "gradient times a power of |x|, step size eta",
  liu: "step size: eta times a power of the length of the last step",
  fracAdam: "Adam on a fractional difference of gradients, step size eta",
  xie: "gradient flow with a fractional time derivative, step size eta",
};

export const STATUSES = {
  converged: "converged",
  stages_done: "stages done",
  max_iterations: "iteration limit",
  nonfinite: "not finite",
  unbounded: "unbounded below",
  saddle: "at a saddle",
  stalled: "no step lowers f",
};

// Format a number with few digits and a minus sign.
export function shown(value, digits = 4) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "not a number";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-3 ? exponent(value, digits) : plain(value, digits);
  return text.replaceAll("-", "−");
}

const plain = (value, digits) => String(Number(value.toPrecision(digits)));

const exponent = (value, digits) =>
  Number(value.toPrecision(digits)).toExponential().replace("e+", "e");

export const pointShown = (x) => `(${shown(x[0])}, ${shown(x[1])})`;
