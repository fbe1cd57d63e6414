// Gauss-Jacobi quadrature for U ~ Beta(1, 1 - alpha): nodes in [0, 1], weights that sum to one.

// Eigenvalues of the Jacobi matrix are the nodes; squared first components the weights.
export function gaussJacobi(alpha, nodes) {
  if (nodes === 1) return { u: [1 / (2 - alpha)], w: [1] };
  const diagonal = [1 / (2 - alpha)];
  const off = [];
  for (let k = 1; k < nodes; k += 1) {
    diagonal.push((1 - alpha ** 2 / ((2 * k - alpha) * (2 * k + 2 - alpha))) / 2);
    // at k = 1 a factor 1 - alpha cancels
    const cancelled = k === 1 ? k - alpha : (k - alpha) ** 2 / (2 * k - alpha - 1);
    off.push((k / (2 * k - alpha)) * Math.sqrt(cancelled / (2 * k + 1 - alpha)));
  }
  const first = tridiagonal(diagonal, off);
  const order = diagonal.map((_, i) => i).sort((i, j) => diagonal[i] - diagonal[j]);
  const squares = order.map((i) => first[i] ** 2);
  const total = squares.reduce((a, b) => a + b, 0);
  return {
    u: order.map((i) => Math.min(1, Math.max(0, diagonal[i]))),
    w: squares.map((square) => square / total),
  };
}

// The QL iteration with implicit shifts: `diagonal` becomes the eigenvalues of a symmetric
// tridiagonal matrix; the first components of its eigenvectors are returned.
function tridiagonal(diagonal, off) {
  const n = diagonal.length;
  const e = [...off, 0];
  const first = diagonal.map((_, i) => (i === 0 ? 1 : 0));
  for (let l = 0; l < n; l += 1) {
    for (let turns = 0; turns < 60; turns += 1) {
      let m = l;
      while (m < n - 1) {
        const size = Math.abs(diagonal[m]) + Math.abs(diagonal[m + 1]);
        if (Math.abs(e[m]) <= Number.EPSILON * size) break;
        m += 1;
      }
      if (m === l) break;
      let g = (diagonal[l + 1] - diagonal[l]) / (2 * e[l]);
      let r = Math.hypot(g, 1);
      g = diagonal[m] - diagonal[l] + e[l] / (g + (g < 0 ? -r : r));
      let s = 1;
      let c = 1;
      let p = 0;
      let i = m - 1;
      for (; i >= l; i -= 1) {
        const f = s * e[i];
        const b = c * e[i];
        r = Math.hypot(f, g);
        e[i + 1] = r;
        if (r === 0) break;
        s = f / r;
        c = g / r;
        g = diagonal[i + 1] - p;
        r = (diagonal[i] - g) * s + 2 * c * b;
        p = s * r;
        diagonal[i + 1] = g + p;
        g = c * r - b;
        const z = first[i + 1];
        first[i + 1] = s * first[i] + c * z;
        first[i] = c * first[i] - s * z;
      }
      if (r === 0 && i >= l) {
        diagonal[i + 1] -= p;
        e[m] = 0;
        continue;
      }
      diagonal[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
  return first;
}

// Rules that were asked for last: a drag asks for the same ones sixty times a second.
const KEPT = 64;
const kept = new Map();

export function rule(alpha, nodes) {
  const key = `${alpha} ${nodes}`;
  if (!kept.has(key)) {
    if (kept.size >= KEPT) kept.clear();
    kept.set(key, gaussJacobi(alpha, nodes));
  }
  return kept.get(key);
}
