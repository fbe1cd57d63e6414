"""SciPy's unit tests of `minimize`, run with cfgd's callables as the method.

The tests are those of the installed SciPy, unchanged. Their module `optimize` is replaced by one
whose `minimize` uses cfgd's method instead of the requested one, and passes on only the options
that both have.
"""

import warnings

import pytest
import scipy
import scipy.optimize
import scipy.sparse

import cfgd
from cfgd.integrations.scipy import adaptive_order, adaptive_terminal, auto
from problems import few, quick

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    suite = pytest.importorskip("scipy.optimize.tests.test_optimize")


class Optimize:
    """`scipy.optimize` with `method` instead of the requested method."""

    def __init__(self, method, options, hess=True):
        self.method, self.options, self.hess = method, options, hess

    def __getattr__(self, name):
        return getattr(scipy.optimize, name)

    def minimize(self, *args, **kwargs):
        options = kwargs.pop("options", None) or {}
        common = {name: options[name] for name in ("maxiter", "gtol") if name in options}
        if not self.hess:
            kwargs = {k: v for k, v in kwargs.items() if k not in ("hess", "hessp")}
        kwargs |= {"method": self.method, "options": self.options | common}
        return scipy.optimize.minimize(*args, **kwargs)


STAGES = {"stages": [cfgd.Stage(20, gamma=1.0), cfgd.Stage(20_000, gamma=0.0)]}
AUTO = {"auto": Optimize(auto, {}), "auto, no Hessian": Optimize(auto, {}, hess=False)}
PAPER_METHODS = {
    "adaptive_terminal": Optimize(adaptive_terminal, {"gamma": -0.1, "maxiter": 20_000}),
    "adaptive_order": Optimize(adaptive_order, STAGES),
}

# test and requested method, which decides whether the test passes a gradient and a Hessian
APPLICABLE = [
    ("TestOptimizeSimple", "test_bfgs_double_evaluations"),
    ("TestOptimizeSimple", "test_bfgs_numerical_jacobian"),
    ("TestOptimizeSimple", "test_finite_differences_jac"),
    ("TestOptimizeSimple", "test_minimize_l_bfgs_b"),
    ("TestOptimizeSimple", "test_minimize_tol_parameter"),
    ("TestOptimizeSimple", "test_minimize_callback_copies_array", "newton-cg"),
    ("TestOptimizeSimple", "test_minimize_callback_copies_array", "trust-exact"),
    ("TestOptimizeSimple", "test_no_increase", "bfgs"),
    ("TestOptimizeSimple", "test_respect_maxiter", "BFGS"),
    ("TestOptimizeSimple", "test_respect_maxiter", "Newton-CG"),
    ("TestOptimizeSimple", "test_respect_maxiter", "trust-exact"),
    ("TestOptimizeSimple", "test_minimize_coerce_args_param"),
    ("TestOptimizeSimple", "test_nan_values", "bfgs"),
    ("TestOptimizeSimple", "test_duplicate_evaluations", "bfgs"),
    ("TestOptimizeSimple", "test_duplicate_evaluations", "trust-exact"),
    ("TestOptimizeSimple", "test_callback_stopiteration", "bfgs", 0),
    ("TestOptimizeSimple", "test_callback_stopiteration", "bfgs", 1),
    ("TestOptimizeSimple", "test_callback_stopiteration", "bfgs", 2),
    ("TestOptimizeSimple", "test_ndim_error"),
    ("TestOptimizeWrapperNoDisp", "test_cg_cornercase"),
    ("TestNewtonCg", "test_rosenbrock"),
    ("TestNewtonCg", "test_himmelblau"),
    ("TestNewtonCg", "test_finite_difference"),
    ("TestNewtonCg", "test_hessian_update_strategy"),
    ("TestOptimizeResultAttributes", "test_attributes_present"),
    (None, "test_result_x_shape_when_len_x_is_one"),
    (None, "test_x_overwritten_user_function"),
    (None, "test_minimize_maxiter_noninteger", "bfgs"),
    (None, "test_sparse_hessian", "Newton-CG", scipy.sparse.csr_array),
]
# tests that other methods are subject to, and why they do not apply
NOT_APPLICABLE = {
    "test_bfgs_nan": "calls fmin_bfgs, not minimize; a start that is NaN is in test_scipy.py",
    "test_bfgs_nan_return": "expects the NaN of the second call; cfgd returns the best point",
    "test_bfgs_gh_2169": "calls fmin_bfgs, not minimize",
    "test_bfgs_infinite": "expects a point with f = -inf; cfgd returns the best finite one",
    "test_finite_differences_hess": "expects an error of methods that need a Hessian",
    "test_initial_step_scaling": "expects SciPy's lengths of the first steps",
    "test_minimize_automethod": "uses bounds and constraints, which raise",
    "test_minimize_invalid_bounds": "uses bounds, which raise",
    "test_minimize_with_scalar": "uses bounds; a scalar start is in test_scipy.py",
    "test_gh12594": "uses bounds, which raise",
    "test_slsqp_respect_bounds": "uses constraints, which raise",
    "test_respect_maxiter_trust_constr_ineq_constraints": "uses constraints, which raise",
    "test_minimize_warnings_gh1953": "expects SciPy's wording of a warning under `disp`",
    "test_runtime_warning": "expects SciPy's wording of a warning under `disp`",
    "test_obj_func_returns_scalar": "expects SciPy's wording; cfgd's is in test_scipy.py",
    "test_ncg_zero_xtol": "expects the minimum of the cosine nearest to 0.1; cfgd finds another",
    "test_ncg_negative_maxiter": "expects a negative maxiter to be accepted; cfgd raises",
    "test_cg": "expects the iterates of SciPy 0.7, as test_bfgs and test_ncg do",
    "test_custom": "uses a custom method",
    "test_gh10771": "uses a custom method",
    "test_l_bfgs_b": "calls fmin_l_bfgs_b",
    "test_l_bfgs_b_numjac": "calls fmin_l_bfgs_b",
    "test_l_bfgs_b_funjac": "calls fmin_l_bfgs_b",
    "test_l_bfgs_b_maxiter": "calls fmin_l_bfgs_b",
    "test_minimize_l_bfgs_b_ftol": "uses the option ftol of L-BFGS-B",
    "test_minimize_l_bfgs_maxls": "uses the option maxls of L-BFGS-B",
    "test_minimize_l_bfgs_b_maxfun_interruption": "uses the option maxfun of L-BFGS-B",
    "test_smoke": "uses the option workers",
}
WRITTEN_FOR = "1.17"


def run(monkeypatch, optimize, class_name, name, *args):
    if not hasattr(getattr(suite, class_name) if class_name else suite, name):
        pytest.skip(f"SciPy {scipy.__version__} has no {name}")
    monkeypatch.setattr(suite, "optimize", optimize)
    monkeypatch.setattr(suite, "MINIMIZE_METHODS", ["cfgd"])
    owner = getattr(suite, class_name)() if class_name else suite
    if hasattr(owner, "setup_method"):
        owner.setup_method()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(owner, name)(*args)


def case_id(case):
    return " ".join(str(getattr(part, "__name__", part)) for part in case[1:])


@pytest.mark.parametrize("optimize", AUTO.values(), ids=AUTO)
@pytest.mark.parametrize("case", APPLICABLE, ids=map(case_id, APPLICABLE))
def test_auto(monkeypatch, optimize, case):
    run(monkeypatch, optimize, *case)


# A selection, because every function is compiled again. Left out: tests that count calls with
# SciPy's counters, which do not count in a thread of JAX, and tests on Rosenbrock's function, whose
# minimum to 1e-4 needs a smaller tolerance than these tests set.
SELECTED = [
    ("TestOptimizeSimple", "test_respect_maxiter", "trust-exact"),
    ("TestOptimizeSimple", "test_nan_values", "bfgs"),
    ("TestOptimizeSimple", "test_callback_stopiteration", "bfgs", 1),
    ("TestNewtonCg", "test_himmelblau"),
    ("TestOptimizeSimple", "test_no_increase", "bfgs"),
    ("TestOptimizeSimple", "test_minimize_callback_copies_array", "trust-exact"),
    (None, "test_x_overwritten_user_function"),
]


@pytest.mark.slow
@pytest.mark.parametrize("optimize", quick(PAPER_METHODS, ["adaptive_terminal"]))
@pytest.mark.parametrize("case", few([(case,) for case in SELECTED], 4), ids=map(case_id, SELECTED))
def test_paper_methods(monkeypatch, optimize, case):
    run(monkeypatch, optimize, *case)


@pytest.mark.skipif(
    not scipy.__version__.startswith(WRITTEN_FOR), reason="the list is of another SciPy"
)
def test_every_simple_test_is_listed():
    names = {name for name in dir(suite.TestOptimizeSimple) if name.startswith("test_")}
    assert names <= {case[1] for case in APPLICABLE} | set(NOT_APPLICABLE)
