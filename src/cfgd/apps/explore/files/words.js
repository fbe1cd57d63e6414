// What the page says of its methods and of how runs end, and how it writes numbers.

export const NAMES = {
  gradient: "Gradient descent",
  nonadaptive: "Non-adaptive",
  terminal: "Adaptive terminal",
  order: "Adaptive order",
  auto: "Auto",
};

export const ABOUT = {
  gradient: "terminal = x: the direction is the gradient",
  nonadaptive: "the terminal stays: ends at a Tikhonov solution",
  terminal: "the terminal follows, lag iterations back",
  order: "the terminal stays, gamma falls to 0 in stages",
  auto: "nothing to choose: the span of the last terminals",
};

export const ENDINGS = {
  converged: "converged",
  stages_done: "stages done",
  max_iterations: "still on its way",
  nonfinite: "left all numbers",
  unbounded: "falls without end",
  saddle: "at a saddle",
  stalled: "no step helps",
};

// Short, and with a minus sign.
export function shown(value, digits = 4) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "no number";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-3 ? exponent(value, digits) : plain(value, digits);
  return text.replaceAll("-", "−");
}

const plain = (value, digits) => String(Number(value.toPrecision(digits)));

const exponent = (value, digits) =>
  Number(value.toPrecision(digits)).toExponential().replace("e+", "e");

export const pointShown = (x) => `(${shown(x[0])}, ${shown(x[1])})`;
