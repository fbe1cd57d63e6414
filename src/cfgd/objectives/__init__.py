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
