from cfgd.methods.auto.auto import Auto as Auto
from cfgd.methods.base import Info as Info, Method as Method, State as State
from cfgd.methods.paper import order as order, settings as settings, terminal as terminal
from cfgd.methods.paper.direction import fractional_gradient as fractional_gradient
from cfgd.methods.paper.fractional import Fractional as Fractional
from cfgd.methods.paper.network_step import NetworkStep as NetworkStep
from cfgd.methods.paper.order import Stage as Stage
from cfgd.methods.paper.presets import (
    AdaptiveOrder as AdaptiveOrder,
    AdaptiveTerminal as AdaptiveTerminal,
    GradientDescent as GradientDescent,
    NonAdaptive as NonAdaptive,
)
from cfgd.methods.paper.step import (
    ArmijoStep as ArmijoStep,
    Chosen as Chosen,
    ExactStep as ExactStep,
    FixedStep as FixedStep,
    GridStep as GridStep,
    StepRule as StepRule,
)
