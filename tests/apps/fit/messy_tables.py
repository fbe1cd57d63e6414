"""Tables with rare texts, and files with given content."""

import numpy as np
import pandas as pd

from cfgd.apps.fit.options import FitOptions
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.run import fit

MEMORY = 1e8  # bytes, more than any of the files needs


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def city_table(rows=400, seed=0):
    """Return a table whose cities are frequent or rare, with what each adds to y."""
    random = np.random.default_rng(seed)
    city = random.choice(["Bonn", "Köln", "Ulm"], rows, p=[0.5, 0.3, 0.2]).astype(object)
    city[:3] = ["Aa", "Bb", "Bb"]
    x = random.normal(size=rows)
    return pd.DataFrame(
        {
            "x": x,
            "city": city,
            "y": 1 + 2 * x + 3.0 * (city == "Köln") + 0.1 * random.normal(size=rows),
        }
    )


def fitted(path, **options):
    return fit(FitOptions(path, "y", **{"test": 0.0, **options}), ProgressReporter())
