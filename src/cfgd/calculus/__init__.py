"""Functions of one variable: the Caputo derivative, the smoothing, and the rule behind both."""

from cfgd.calculus.caputo import caputo as caputo
from cfgd.calculus.quadrature import gauss_jacobi as gauss_jacobi
from cfgd.calculus.smoothing import smoothing as smoothing
