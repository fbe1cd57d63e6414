from cfgd.solve.api import minimize as minimize, sweep as sweep
from cfgd.solve.argmin import argmin as argmin
from cfgd.solve.resample import Resample as Resample
from cfgd.solve.solution import ConvergenceError as ConvergenceError, Solution as Solution
