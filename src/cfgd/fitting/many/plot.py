"""Plot one parameter of many fits: a map, or values with their standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cfgd._core import checks
from cfgd._core.extras import import_extra
from cfgd.fitting.plot import new_figure

if TYPE_CHECKING:
    from cfgd.fitting.many.fits import Fits

OWNER = "Fits.plot"
# Percentile of the values at which the colours of a map end on each side: outliers would leave one
# colour for all others.
OUTLIERS = 1.0


def draw(fits: Fits, name: str, ax: Any) -> Any:
    """Draw a parameter; fits that did not converge are left out, grey on a map."""
    if name not in fits.names:
        checks.fail(OWNER, "name", f"be one of the parameters {', '.join(fits.names)}", repr(name))
    if len(fits.shape) > 2:
        wanted = "be called for fits with one or two axes: plot a slice of `fits.values`"
        checks.fail(OWNER, "Y", wanted, f"{len(fits.shape)} axes")
    converged = np.asarray(fits.converged)
    values = np.where(converged, np.asarray(fits.values[name]), np.nan)
    ax = new_figure(OWNER).subplots() if ax is None else ax
    names = ("index of the fit",) if len(fits.shape) == 1 else ("row", "column")
    axes = fits.labels.dims if fits.labels is not None else names
    if len(fits.shape) == 1:
        errors = np.where(converged, np.asarray(fits.errors[name]), np.nan)
        errors = np.where(np.isfinite(errors), errors, np.nan)
        ax.errorbar(np.arange(len(values)), values, errors, fmt="o", markersize=3)
        ax.set(xlabel=axes[0], ylabel=name)
        _whole_ticks(ax.xaxis)
        return ax
    known = values[np.isfinite(values)]
    ends = np.percentile(known, [OUTLIERS, 100 - OUTLIERS]) if known.size else (0.0, 1.0)
    ax.set_facecolor("0.8")
    image = ax.imshow(values, origin="lower", vmin=ends[0], vmax=ends[1], interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label=name, extend="both")
    _whole_ticks(ax.xaxis, ax.yaxis)
    ax.set(xlabel=axes[1], ylabel=axes[0])
    return ax


def _whole_ticks(*axes: Any) -> None:
    """Put the ticks of indices at whole numbers."""
    ticker = import_extra("matplotlib.ticker", f"`{OWNER}`", "plot")
    for axis in axes:
        axis.set_major_locator(ticker.MaxNLocator(integer=True))
