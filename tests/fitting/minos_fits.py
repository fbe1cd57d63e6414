"""Twenty fits whose 95 % intervals were computed by MINOS (iminuit 2.33), for the test of profiles.

`minos.json` beside this file holds data, starts, limits and what MINOS gave. It was written by

    python tests/fitting/minos_fits.py tests/fitting/minos.json

in an environment that has NumPy and iminuit; cfgd and JAX are not used there. Models take the array
namespace as their first argument.
"""

import json
import sys
from pathlib import Path

import numpy as np

MODELS = {
    "decay": lambda xp, t, a, b, c: a * xp.exp(-b * t) + c,
    "saturation": lambda xp, t, vmax, km: vmax * t / (km + t),
    "logistic": lambda xp, t, top, rate, middle: top / (1 + xp.exp(-rate * (t - middle))),
    "peak": lambda xp, t, height, at, width, base: (
        height * xp.exp(-(((t - at) / width) ** 2) / 2) + base
    ),
    "lorentzian": lambda xp, t, area, at, width: area * width / ((t - at) ** 2 + width**2),
    "two decays": lambda xp, t, a, b, c, d: a * xp.exp(-b * t) + c * xp.exp(-d * t),
    "power": lambda xp, t, a, b: a * t**b,
    "sine": lambda xp, t, size, frequency, phase: size * xp.sin(frequency * t + phase),
    "hill": lambda xp, t, low, high, half, n: low + (high - low) / (1 + (half / t) ** n),
    "line": lambda xp, t, a, b: a + b * t,
    "parabola": lambda xp, t, a, b, c: a + b * t + c * t**2,
    "gompertz": lambda xp, t, a, b, c: a * xp.exp(-b * xp.exp(-c * t)),
    "rise": lambda xp, t, a, b: a * (1 - xp.exp(-b * t)),
    "arrhenius": lambda xp, t, a, e: a * xp.exp(-e / t),
    "stretched": lambda xp, t, a, b, n: a * xp.exp(-((b * t) ** n)),
    "damped": lambda xp, t, a, b, w, p: a * xp.exp(-b * t) * xp.cos(w * t + p),
    "rational": lambda xp, t, a, b, c: (a + b * t) / (1 + c * t),
    "logarithm": lambda xp, t, a, b: a * xp.log(t + b),
}

# name: (model, true parameters, x, sigma of each y, limits)
T = np.linspace(0.2, 5.0, 14)
FITS = {
    "decay": ("decay", [3.0, 0.8, 0.5], T, 0.1, {}),
    "saturation": ("saturation", [4.0, 1.5], T, 0.15, {}),
    "logistic": ("logistic", [5.0, 1.7, 2.2], T, 0.2, {}),
    "peak": ("peak", [3.0, 2.4, 0.6, 0.4], np.linspace(0, 5, 25), 0.2, {}),
    "lorentzian": ("lorentzian", [2.0, 2.6, 0.7], np.linspace(0, 5, 25), 0.15, {}),
    "two decays": ("two decays", [3.0, 3.0, 2.0, 0.4], np.linspace(0, 5, 40), 0.03, {}),
    "power": ("power", [1.5, 0.6], T, 0.1, {}),
    "sine": ("sine", [1.3, 2.1, 0.4], T, 0.2, {}),
    "hill": ("hill", [0.3, 4.0, 1.6, 2.5], np.geomspace(0.1, 20, 18), 0.12, {}),
    "line": ("line", [1.0, -0.7], T, 0.3, {}),
    "parabola": ("parabola", [1.0, -0.7, 0.2], T, 0.3, {}),
    "gompertz": ("gompertz", [4.0, 3.0, 0.9], T, 0.15, {}),
    "rise": ("rise", [2.0, 0.5], T, 0.12, {}),
    "arrhenius": ("arrhenius", [8.0, 2.0], T + 0.5, 0.2, {}),
    "stretched": ("stretched", [3.0, 0.6, 0.7], T, 0.06, {}),
    "damped": ("damped", [2.0, 0.4, 3.0, 0.3], np.linspace(0, 5, 30), 0.15, {}),
    "rational": ("rational", [1.0, 2.0, 0.5], T, 0.05, {}),
    "logarithm": ("logarithm", [1.2, 0.7], T, 0.1, {}),
    # the interval of km ends at its limit, and the estimate of the other fit is at a limit
    "limit in the interval": ("saturation", [4.0, 0.25], T, 0.4, {"km": [0.1, 9.0]}),
    "estimate at a limit": ("decay", [3.0, 0.8, -0.05], T, 0.1, {"c": [0.0, 9.0]}),
}


def main(path):
    from iminuit import Minuit
    from iminuit.cost import LeastSquares

    found = {}
    for seed, (name, (which, true, x, error, limits)) in enumerate(FITS.items()):
        model, random = MODELS[which], np.random.default_rng(seed)
        sigma = error * random.uniform(0.7, 1.4, len(x))
        y = model(np, x, *true) + sigma * random.normal(size=len(x))
        names = model.__code__.co_varnames[2:]
        start = dict(zip(names, [float(v) for v in true], strict=True))
        for limited, (low, _) in limits.items():
            start[limited] = max(start[limited], low + 0.2)
        cost = LeastSquares(x, y, sigma, lambda x, *p, model=model: model(np, x, *p))
        minuit = Minuit(cost, *start.values(), name=names)
        for limited, pair in limits.items():
            minuit.limits[limited] = pair
        minuit.strategy, minuit.tol = 2, 1e-6
        minuit.migrad(ncall=100_000)
        assert minuit.valid, name
        minuit.minos(cl=0.95)
        found[name] = {
            "model": which,
            "x": x.tolist(),
            "y": y.tolist(),
            "sigma": sigma.tolist(),
            "start": start,
            "limits": limits,
            "estimates": {n: minuit.values[n] for n in names},
            "chi_square": minuit.fval,
            "intervals": {
                n: [
                    limits[n][0] if m.at_lower_limit else minuit.values[n] + m.lower,
                    limits[n][1] if m.at_upper_limit else minuit.values[n] + m.upper,
                ]
                for n, m in minuit.merrors.items()
            },
            "valid": {n: [m.lower_valid, m.upper_valid] for n, m in minuit.merrors.items()},
        }
    Path(path).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
