"""Caputo fractional gradient descent.

Public names are imported when they are first used, so that `import cfgd` alone loads no JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

from cfgd._core.version import __version__ as __version__

# For type checkers and editors. Where a module and its function share a name (`caputo`), the import
# names the module.
if TYPE_CHECKING:
    from cfgd import distributed as distributed, theory as theory, zoo as zoo
    from cfgd.calculus import gauss_jacobi as gauss_jacobi
    from cfgd.calculus.caputo import caputo as caputo
    from cfgd.calculus.smoothing import smoothing as smoothing
    from cfgd.fitting import (
        Fit as Fit,
        Fits as Fits,
        Parameter as Parameter,
        Parameters as Parameters,
    )
    from cfgd.fitting.curve_fit import curve_fit as curve_fit
    from cfgd.fitting.many.curve_fit_many import curve_fit_many as curve_fit_many
    from cfgd.methods import (
        AdaptiveOrder as AdaptiveOrder,
        AdaptiveTerminal as AdaptiveTerminal,
        ArmijoStep as ArmijoStep,
        Auto as Auto,
        Chosen as Chosen,
        ExactStep as ExactStep,
        FixedStep as FixedStep,
        Fractional as Fractional,
        GradientDescent as GradientDescent,
        GridStep as GridStep,
        NetworkStep as NetworkStep,
        NonAdaptive as NonAdaptive,
        Stage as Stage,
        StepRule as StepRule,
        fractional_gradient as fractional_gradient,
        order as order,
        settings as settings,
        terminal as terminal,
    )
    from cfgd.objectives import (
        Blocks as Blocks,
        External as External,
        GradientCheck as GradientCheck,
        LeastSquares as LeastSquares,
        LinearModel as LinearModel,
        Local as Local,
        Objective as Objective,
        Quadratic as Quadratic,
        Residuals as Residuals,
        ResidualTerms as ResidualTerms,
        ShallowNetwork as ShallowNetwork,
        Smooth as Smooth,
        check_gradient as check_gradient,
    )
    from cfgd.solve import (
        ConvergenceError as ConvergenceError,
        Resample as Resample,
        Solution as Solution,
        minimize as minimize,
        sweep as sweep,
    )
    from cfgd.solve.argmin import argmin as argmin
    from cfgd.status import Status as Status

__all__ = [
    "AdaptiveOrder",
    "AdaptiveTerminal",
    "ArmijoStep",
    "Auto",
    "Blocks",
    "Chosen",
    "ConvergenceError",
    "ExactStep",
    "External",
    "Fit",
    "Fits",
    "FixedStep",
    "Fractional",
    "GradientCheck",
    "GradientDescent",
    "GridStep",
    "LeastSquares",
    "LinearModel",
    "Local",
    "NetworkStep",
    "NonAdaptive",
    "Objective",
    "Parameter",
    "Parameters",
    "Quadratic",
    "Resample",
    "ResidualTerms",
    "Residuals",
    "ShallowNetwork",
    "Smooth",
    "Solution",
    "Stage",
    "Status",
    "StepRule",
    "argmin",
    "caputo",
    "check_gradient",
    "curve_fit",
    "curve_fit_many",
    "distributed",
    "fractional_gradient",
    "gauss_jacobi",
    "minimize",
    "order",
    "settings",
    "smoothing",
    "sweep",
    "terminal",
    "theory",
    "zoo",
]

# Packages in the order in which a public name is looked up.
_PACKAGES = ("calculus", "objectives", "methods", "solve", "fitting", "status")
_MODULES = ("distributed", "integrations", "theory", "zoo")


def __getattr__(name: str) -> Any:
    """Import and return a public name: `cfgd.integrations.torch` works without JAX."""
    if name in _PACKAGES or name in _MODULES:
        return importlib.import_module(f"cfgd.{name}")
    if name in __all__:
        for package in _PACKAGES:
            found = getattr(importlib.import_module(f"cfgd.{package}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module 'cfgd' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, without the modules that define them."""
    return [*__all__, "__version__"]
