from cfgd.solve.api import minimize as minimize, sweep as sweep
from cfgd.solve.curve_fit import Fit as Fit, curve_fit as curve_fit
from cfgd.solve.solution import ConvergenceError as ConvergenceError, Solution as Solution
