from cfgd.method.auto import Auto as Auto
from cfgd.method.base import Info as Info, Method as Method, State as State
from cfgd.method.direction import fractional_gradient as fractional_gradient
from cfgd.method.fractional import Fractional as Fractional
from cfgd.method.network_step import NetworkStep as NetworkStep
from cfgd.method.order import Stage as Stage
from cfgd.method.presets import (
    AdaptiveOrder as AdaptiveOrder,
    AdaptiveTerminal as AdaptiveTerminal,
    GradientDescent as GradientDescent,
    NonAdaptive as NonAdaptive,
)
from cfgd.method.step import (
    ArmijoStep as ArmijoStep,
    Chosen as Chosen,
    ExactStep as ExactStep,
    FixedStep as FixedStep,
    GridStep as GridStep,
    StepRule as StepRule,
)
