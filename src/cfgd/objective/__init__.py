from cfgd.objective.base import Objective as Objective
from cfgd.objective.blocks import Blocks as Blocks
from cfgd.objective.external import External as External
from cfgd.objective.least_squares import LeastSquares as LeastSquares
from cfgd.objective.line import Line as Line, Point as Point
from cfgd.objective.linear_model import LinearModel as LinearModel
from cfgd.objective.local import Local as Local
from cfgd.objective.network import ShallowNetwork as ShallowNetwork
from cfgd.objective.quadratic import Quadratic as Quadratic
from cfgd.objective.residuals import Residuals as Residuals
from cfgd.objective.smooth import Smooth as Smooth
