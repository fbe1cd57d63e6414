"""Build the `FitProblem` of a fit from checked data and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision, precision_of
from cfgd._core.interruptible import interruptible_trace
from cfgd._core.pytrees import promote_precision
from cfgd.fitting.datasets import DataSet
from cfgd.fitting.model import Call, WeightedResiduals
from cfgd.fitting.problem import FitProblem
from cfgd.fitting.read_parameters import Given
from cfgd.fitting.signature import call_by_name
from cfgd.objectives.parameter_layout import Layout, layout_of
from cfgd.objectives.parameters import Parameters
from cfgd.objectives.residuals import Residuals
from cfgd.objectives.robust import rho_of


def read_models(owner: str, model: Any, data: list[DataSet]) -> list[Callable[..., Any]]:
    """Return the model of each data set: one for all, or those of a dict or list."""
    names = [each.name for each in data]
    if isinstance(model, Mapping):
        by_name = {str(key): each for key, each in model.items()}
        if set(by_name) != set(names):
            wanted = f"have the names {', '.join(names)} of the data sets in y"
            checks.fail(owner, "model", wanted, ", ".join(by_name))
        models = [by_name[name] for name in names]
    elif isinstance(model, list | tuple):
        if len(model) != len(data) or names == [""]:
            wanted = f"be one function or have one for each of {len(data)} data sets"
            checks.fail(owner, "model", wanted, f"{len(model)} functions")
        models = list(model)
    else:
        models = [model] * len(data)
    for each in models:
        checks.function(owner, "model", each, "be a function of x and the parameters")
    return models


def build(
    owner: str,
    models: list[Callable[..., Any]],
    data: list[DataSet],
    given: Given,
    *,
    absolute_sigma: bool,
    loss: str,
    scale: float,
) -> FitProblem:
    """Return the problem of a fit; a free parameter without a value starts at 1 for now."""
    rho_of(owner, loss)
    checks.positive(owner, "scale", scale)
    parameters = given.parameters
    layout, asked = layout_of(owner, parameters)
    calls = calls_of(owner, models, [each.name for each in data], given, asked)
    expressions = {
        name: each.expression for name, each in parameters.items() if each.expression is not None
    }
    fn = WeightedResiduals(tuple(models), expressions, calls, layout)
    fixed = {name: each.value for name, each in parameters.items() if each.kind == "fixed"}
    measured = [each.measured for each in data]
    dtype = precision_of([each.value for each in parameters.values()], measured)
    start, lower, upper = vectors_of(layout, parameters)
    n_unknown_x = sum(each.n_unknown_x for each in measured)
    unknown = np.zeros(n_unknown_x)
    for i, each in enumerate(data):
        _check_shape(owner, fn, fixed, start.astype(dtype), each, i)
    return FitProblem(
        parameters=parameters,
        free=layout.free,
        objective=Residuals(
            fn, loss, scale=scale, args=(fixed, measured), weights=_counting(measured)
        ),
        lower=np.concatenate([lower, unknown - np.inf]),
        upper=np.concatenate([upper, unknown + np.inf]),
        start=np.concatenate([start, unknown]).astype(dtype),
        n_points=sum(each.n_points for each in data),
        absolute_sigma=absolute_sigma,
        data=data,
        given=promote_precision(given.form, dtype),
        n_unknown_x=n_unknown_x,
    )


def calls_of(
    owner: str,
    models: list[Callable[..., Any]],
    sets: list[str],
    given: Given,
    asked: set[str],
) -> tuple[Call, ...]:
    """Return how each model takes its parameters; refuse a parameter that no model uses."""
    parameters = given.parameters
    if given.positional is not None:
        calls = [Call(tuple((None, name) for name in given.positional))] * len(models)
    else:
        pairs = zip(models, sets, strict=True)
        calls = [call_by_name(owner, model, parameters, name) for model, name in pairs]
    taken = {name for call in calls for _, name in call.pairs} | asked
    for name, each in parameters.items():
        if name not in taken and each.kind != "tied":
            wanted = "have only parameters that a model or a tied parameter uses"
            checks.fail(
                owner,
                "fixed" if each.kind == "fixed" else "p0",
                wanted,
                f"{name!r}, which is not used",
            )
    return tuple(calls)


def vectors_of(layout: Layout, parameters: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start, lower and upper bounds of the free numbers."""
    shapes = dict(zip(layout.names, layout.shapes, strict=True))

    def joined(values: dict[str, Any]) -> np.ndarray:
        return layout.ravel(
            {name: np.broadcast_to(np.asarray(values[name]), shapes[name]) for name in values}
        )

    free = {name: parameters[name] for name in parameters.free}
    values = {name: 1.0 if each.value is None else each.value for name, each in free.items()}
    lower = joined({name: each.bounds[0] for name, each in free.items()})
    upper = joined({name: each.bounds[1] for name, each in free.items()})
    return joined(values), lower, upper


def _check_shape(
    owner: str, fn: WeightedResiduals, fixed: dict[str, Any], z: Any, data: DataSet, index: int
) -> None:
    """Refuse y in another shape than the model's result at x, or real y of a complex model.

    The arrays are arguments of the trace: JAX 0.10 keeps constants of a trace that failed, in the
    precision of that trace, and uses them again for the same array in float64.
    """
    passed = checks.checked_signatures(fn)
    signature = index, checks.signature_of((z, fixed, data.measured.x, data.y))
    if signature in passed:
        return

    def predict(z: Any, fixed: Any, x: Any) -> Any:
        return fn.predict(fn.complete(z, fixed), x, index)

    at = f"[{data.name}]" if data.name else ""
    with checks.traceable(owner, "model"), in_precision(z.dtype):
        out = jax.eval_shape(partial(interruptible_trace, predict), z, fixed, data.measured.x)
    if tuple(out.shape) != tuple(data.y.shape):
        wanted = f"have the shape {tuple(out.shape)} of model(x, *p0)"
        checks.fail(owner, f"y{at}", wanted, f"shape {tuple(data.y.shape)}")
    if np.issubdtype(out.dtype, np.complexfloating) and not np.iscomplexobj(data.y):
        wanted = "be complex where the model is (y + 0j, or a model of abs(...))"
        checks.fail(owner, f"y{at}", wanted, f"dtype {data.y.dtype}")
    passed.add(signature)


def _counting(measured: list[Any]) -> Any:
    """Return weights of the residuals, 0 for missing ones, or None if all are present.

    The residuals of missing points are 0 already; the weights exclude them from counts of points.
    """
    if all(each.present is None for each in measured):
        return None
    weights: list[Any] = []
    for each in measured:
        present = np.ones(each.y.shape, each.y.dtype)
        present = present if each.present is None else present * each.present
        weights.append(present.reshape(-1) if each.whitening is not None else present)
        if each.sigma_x is not None:
            weights.append(np.ones(each.n_unknown_x, each.y.dtype))
    return weights
