from cfgd.objective.base import Objective as Objective, Point as Point
from cfgd.objective.least_squares import LeastSquares as LeastSquares
from cfgd.objective.quadratic import Quadratic as Quadratic
from cfgd.objective.smooth import Smooth as Smooth
