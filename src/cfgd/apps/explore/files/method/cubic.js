// The cubic through values and slopes at two points of a line: cfgd/methods/auto/cubic.py.
// A trial is { t, value, slope }, the slope being the derivative in t.

// Share of an interval that a trial keeps from its ends.
const MARGIN = 0.1;

// Return the minimum of the cubic through two trials, not too near to either of them.
export function trialBetween(low, high) {
  const width = high.t - low.t;
  const found = minimumOf(low, high);
  // f may not be finite at the far end
  const t = Number.isFinite(found) ? found : low.t + MARGIN * width;
  const ends = [low.t + MARGIN * width, high.t - MARGIN * width];
  return Math.min(Math.max(t, Math.min(...ends)), Math.max(...ends));
}

function minimumOf(low, high) {
  if (!Number.isFinite(high.value) || !Number.isFinite(high.slope)) return NaN;
  const d1 = low.slope + high.slope - (3 * (low.value - high.value)) / (low.t - high.t);
  const underRoot = d1 * d1 - low.slope * high.slope;
  if (!(underRoot >= 0)) return (low.t + high.t) / 2;
  const root = Math.sqrt(underRoot);
  const d2 = high.t > low.t ? root : -root;
  const bottom = high.slope - low.slope + 2 * d2;
  return bottom ? high.t - ((high.t - low.t) * (high.slope + d2 - d1)) / bottom : NaN;
}

// Return the second derivative of the cubic at the second trial.
export function curvatureAtEnd(low, high) {
  const width = high.t - low.t;
  return ((6 * (low.value - high.value)) / width + 2 * low.slope + 4 * high.slope) / width;
}
