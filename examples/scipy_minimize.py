"""Minimise a NumPy function by cfgd through `scipy.optimize.minimize`."""

import numpy as np
from scipy.optimize import minimize, rosen, rosen_der

from cfgd.integrations.scipy import auto

x0 = np.tile([-1.2, 1.0], 25)
ours = minimize(rosen, x0, jac=rosen_der, method=auto)
theirs = minimize(rosen, x0, jac=rosen_der, method="L-BFGS-B", options={"maxfun": 10_000})
print(f"cfgd      {ours.fun:.1e} after {ours.nfev} gradients")
print(f"L-BFGS-B  {theirs.fun:.1e} after {theirs.nfev} gradients")
print(ours.message)
