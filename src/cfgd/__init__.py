"""Caputo fractional gradient descent."""

from cfgd import theory as theory
from cfgd.auto import Auto as Auto
from cfgd.calculus import caputo as caputo, gauss_jacobi as gauss_jacobi, smoothing as smoothing
from cfgd.gradient import fractional_gradient as fractional_gradient
from cfgd.method import (
    AdaptiveOrder as AdaptiveOrder,
    AdaptiveTerminal as AdaptiveTerminal,
    GradientDescent as GradientDescent,
    NonAdaptive as NonAdaptive,
    Stage as Stage,
)
from cfgd.objective import (
    LeastSquares as LeastSquares,
    LinearModel as LinearModel,
    Local as Local,
    Objective as Objective,
    Quadratic as Quadratic,
    ShallowNetwork as ShallowNetwork,
    Smooth as Smooth,
)
from cfgd.solution import (
    ConvergenceError as ConvergenceError,
    Solution as Solution,
    Status as Status,
)
from cfgd.solve import minimize as minimize, sweep as sweep
from cfgd.step import (
    ArmijoStep as ArmijoStep,
    ExactStep as ExactStep,
    FixedStep as FixedStep,
    GridStep as GridStep,
    NetworkStep as NetworkStep,
)
