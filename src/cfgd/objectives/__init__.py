"""Objectives: what is minimised.

Names are imported when they are first used: submodules that need no JAX load none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfgd._core.lazy_names import lazy_names

if TYPE_CHECKING:
    from cfgd.objectives.base import Objective as Objective
    from cfgd.objectives.evaluation import Evaluation as Evaluation, Line as Line
    from cfgd.objectives.external import External as External
    from cfgd.objectives.function import Smooth as Smooth
    from cfgd.objectives.gradient_check import (
        GradientCheck as GradientCheck,
        check_gradient as check_gradient,
    )
    from cfgd.objectives.least_squares import LeastSquares as LeastSquares
    from cfgd.objectives.linear.blocks import Blocks as Blocks
    from cfgd.objectives.linear.model import LinearModel as LinearModel
    from cfgd.objectives.local import Local as Local
    from cfgd.objectives.network.model import ShallowNetwork as ShallowNetwork
    from cfgd.objectives.quadratic import Quadratic as Quadratic
    from cfgd.objectives.residual_terms import ResidualTerms as ResidualTerms
    from cfgd.objectives.residuals import Residuals as Residuals

__getattr__ = lazy_names(
    __name__,
    {
        "Objective": "base",
        "Evaluation": "evaluation",
        "Line": "evaluation",
        "External": "external",
        "Smooth": "function",
        "GradientCheck": "gradient_check",
        "check_gradient": "gradient_check",
        "LeastSquares": "least_squares",
        "Blocks": "linear.blocks",
        "LinearModel": "linear.model",
        "Local": "local",
        "ShallowNetwork": "network.model",
        "Quadratic": "quadratic",
        "ResidualTerms": "residual_terms",
        "Residuals": "residuals",
    },
)
