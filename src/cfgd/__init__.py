"""Caputo fractional gradient descent."""

from cfgd import theory as theory
from cfgd.calculus import caputo as caputo, gauss_jacobi as gauss_jacobi, smoothing as smoothing
from cfgd.method import (
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
from cfgd.objective import (
    LeastSquares as LeastSquares,
    LinearModel as LinearModel,
    Local as Local,
    Objective as Objective,
    Quadratic as Quadratic,
    ShallowNetwork as ShallowNetwork,
    Smooth as Smooth,
)
from cfgd.solve import (
    ConvergenceError as ConvergenceError,
    Solution as Solution,
    minimize as minimize,
    sweep as sweep,
)
from cfgd.status import Status as Status
