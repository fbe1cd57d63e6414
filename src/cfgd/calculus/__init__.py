"""Functions of one variable: Caputo derivatives, smoothing, and Gauss-Jacobi quadrature."""

from cfgd.calculus.caputo import caputo as caputo
from cfgd.calculus.quadrature import gauss_jacobi as gauss_jacobi
from cfgd.calculus.smoothing import smoothing as smoothing
