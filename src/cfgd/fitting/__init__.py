from cfgd.fitting.curve_fit import curve_fit as curve_fit
from cfgd.fitting.fit import Fit as Fit
from cfgd.objectives.parameters import Parameter as Parameter, Parameters as Parameters
