from cfgd.fitting.curve_fit import curve_fit as curve_fit
from cfgd.fitting.fit import Fit as Fit
from cfgd.fitting.many.curve_fit_many import curve_fit_many as curve_fit_many
from cfgd.fitting.many.fits import Fits as Fits
from cfgd.objectives.parameters import Parameter as Parameter, Parameters as Parameters
