"""SciPy's own unit tests of `minimize`, with our callables in the place of its methods.

They come with SciPy and are run as they are: their `optimize` is one whose `minimize` has our
method, whatever method they ask for, with the options that are not of theirs alone.
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
    own = pytest.importorskip("scipy.optimize.tests.test_optimize")


class Optimize:
    """scipy.optimize with another `minimize`."""

    def __init__(self, method, options, hess=True):
        self.method, self.options, self.hess = method, options, hess

    def __getattr__(self, name):
        return getattr(scipy.optimize, name)

    def minimize(self, *args, **given):
        options = given.pop("options", None) or {}
        common = {name: options[name] for name in ("maxiter", "gtol") if name in options}
        if not self.hess:
            given = {name: of for name, of in given.items() if name not in ("hess", "hessp")}
        given |= {"method": self.method, "options": self.options | common}
        return scipy.optimize.minimize(*args, **given)


STAGES = {"stages": [cfgd.Stage(20, gamma=1.0), cfgd.Stage(20_000, gamma=0.0)]}
AUTO = {"auto": Optimize(auto, {}), "auto, no Hessian": Optimize(auto, {}, hess=False)}
PAPERS = {
    "adaptive_terminal": Optimize(adaptive_terminal, {"gamma": -0.1, "maxiter": 20_000}),
    "adaptive_order": Optimize(adaptive_order, STAGES),
}

# the test and whom it takes us for, which decides what it hands over: gradient, Hessian, neither
APPLY = [
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
# Of those that run over methods, or that any method could be asked for.
DO_NOT_APPLY = {
    "test_bfgs_nan": "calls fmin_bfgs, not minimize; a start that is NaN is in test_scipy.py",
    "test_bfgs_nan_return": "wants the NaN of the second call; ours is the best point seen",
    "test_bfgs_gh_2169": "calls fmin_bfgs, not minimize",
    "test_bfgs_infinite": "wants a point where f is -inf; ours is the best finite one, `unbounded`",
    "test_finite_differences_hess": "wants an error of methods that need a Hessian; none here does",
    "test_initial_step_scaling": "wants first steps of SciPy's own lengths",
    "test_minimize_automethod": "has bounds and constraints, which are refused",
    "test_minimize_invalid_bounds": "has bounds, which are refused",
    "test_minimize_with_scalar": "has bounds; a scalar start is in test_scipy.py",
    "test_gh12594": "has bounds, which are refused",
    "test_slsqp_respect_bounds": "has constraints, which are refused",
    "test_respect_maxiter_trust_constr_ineq_constraints": "has constraints, which are refused",
    "test_minimize_warnings_gh1953": "wants a warning under `disp`, in SciPy's words",
    "test_runtime_warning": "wants a warning under `disp`, in SciPy's words",
    "test_obj_func_returns_scalar": "wants SciPy's words; ours are in test_scipy.py",
    "test_ncg_zero_xtol": "wants the minimum of the cosine nearest to 0.1; ours is another one",
    "test_ncg_negative_maxiter": "wants a negative maxiter to be taken; it is refused",
    "test_cg": "wants the iterates of SciPy 0.7, as test_bfgs and test_ncg do",
    "test_custom": "has a method of its own, as test_gh10771",
    "test_gh10771": "has a method of its own",
    "test_l_bfgs_b": "calls fmin_l_bfgs_b, as its kin do",
    "test_l_bfgs_b_numjac": "calls fmin_l_bfgs_b",
    "test_l_bfgs_b_funjac": "calls fmin_l_bfgs_b",
    "test_l_bfgs_b_maxiter": "calls fmin_l_bfgs_b",
    "test_minimize_l_bfgs_b_ftol": "has the option ftol of L-BFGS-B",
    "test_minimize_l_bfgs_maxls": "has the option maxls of L-BFGS-B",
    "test_minimize_l_bfgs_b_maxfun_interruption": "has the option maxfun of L-BFGS-B",
    "test_smoke": "has the option workers, of TestWorkers",
}
WRITTEN_FOR = "1.17"


def _run(monkeypatch, optimize, home, name, *given):
    if not hasattr(getattr(own, home) if home else own, name):
        pytest.skip(f"SciPy {scipy.__version__} has no {name}")
    monkeypatch.setattr(own, "optimize", optimize)
    monkeypatch.setattr(own, "MINIMIZE_METHODS", ["ours"])
    of = getattr(own, home)() if home else own
    if hasattr(of, "setup_method"):
        of.setup_method()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(of, name)(*given)


def _id(case):
    return " ".join(str(getattr(part, "__name__", part)) for part in case[1:])


@pytest.mark.parametrize("optimize", AUTO.values(), ids=AUTO)
@pytest.mark.parametrize("case", APPLY, ids=map(_id, APPLY))
def test_auto(monkeypatch, optimize, case):
    _run(monkeypatch, optimize, *case)


# Every function is compiled anew: those that may say something else of another method. Calls come
# from a thread of JAX, where SciPy's counters do not count; Rosenbrock's valley to 1e-4 takes a
# smaller tolerance than `test_rosenbrock` and its kin have.
SOME = [
    ("TestOptimizeSimple", "test_respect_maxiter", "trust-exact"),
    ("TestOptimizeSimple", "test_nan_values", "bfgs"),
    ("TestOptimizeSimple", "test_callback_stopiteration", "bfgs", 1),
    ("TestNewtonCg", "test_himmelblau"),
    ("TestOptimizeSimple", "test_no_increase", "bfgs"),
    ("TestOptimizeSimple", "test_minimize_callback_copies_array", "trust-exact"),
    (None, "test_x_overwritten_user_function"),
]


@pytest.mark.parametrize("optimize", quick(PAPERS, ["adaptive_terminal"]))
@pytest.mark.parametrize("case", few([(case,) for case in SOME], 4), ids=map(_id, SOME))
def test_papers(monkeypatch, optimize, case):
    _run(monkeypatch, optimize, *case)


@pytest.mark.skipif(not scipy.__version__.startswith(WRITTEN_FOR), reason="other tests")
def test_none_of_the_simple_ones_is_forgotten():
    names = {name for name in dir(own.TestOptimizeSimple) if name.startswith("test_")}
    assert names <= {case[1] for case in APPLY} | set(DO_NOT_APPLY)
