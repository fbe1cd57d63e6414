"""Fit a torch model to all of its data at once with the core's `Auto`.

Value, gradient and, for squared errors, the Jacobian are computed by `torch.func` as functions of
one vector of all parameters; the solver is the core's, which uses JAX and NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from cfgd.integrations.torch.checks import fail

if TYPE_CHECKING:
    from cfgd.solve.solution import Solution

OWNER = "minimize"
# Entries of the largest Jacobian that is computed and factorised (128 MB in double precision);
# larger problems are solved with the gradient only.
MAX_JACOBIAN_ENTRIES = 2**24
# Relative tolerance of the check that torch.func computes the gradient of the whole loss: above the
# rounding of float32 sums, and below any penalty that matters.
GRADIENT_RTOL = 1e-3


def minimize(model: Any, loss: Any, data: Any, **options: Any) -> Solution:
    """Fit a torch model to all of its data: minimise loss(model(inputs), targets).

    For `MSELoss` and `mse_loss` the core's `Auto` takes Levenberg-Marquardt steps with the Jacobian
    of the model, otherwise L-BFGS steps. The parameters of the model are set to the best point.
    Parameters that do not require a gradient do not change.

    The computation is in the precision of the parameters: call `model.double()` first for more than
    four or five digits. The model must be deterministic: call `model.eval()` if it has dropout.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    loss : callable
        Function of outputs and targets that returns a tensor of one number.
    data : (inputs, targets)
        The inputs are a tensor or a tuple of tensors.
    **options
        Those of `cfgd.minimize`.

    Returns
    -------
    Solution
        `solution.x` has the parameters as one vector in the order of `model.parameters()`.

    >>> import torch
    >>> from cfgd.integrations.torch import minimize
    >>> _ = torch.manual_seed(0)
    >>> x = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]
    >>> tanh = torch.nn.Tanh()
    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 6), tanh, torch.nn.Linear(6, 1)).double()
    >>> solution = minimize(model, torch.nn.MSELoss(), (x, torch.sin(3 * x)), max_iterations=60)
    >>> bool(((model(x) - torch.sin(3 * x)) ** 2).mean() < 1e-6)
    True
    """
    import cfgd
    from cfgd.objectives.external_residuals import ExternalResiduals

    problem = ModelLoss.of(model, loss, data)
    x0 = problem.initial_point()
    problem.check(x0)
    factor = problem.squared_factor()
    objective: Any
    if factor is None or problem.output_size() * x0.size > MAX_JACOBIAN_ENTRIES:
        objective = cfgd.External(problem.value_and_gradient)
    else:
        objective = ExternalResiduals(problem.residuals(factor), problem.jacobian(factor))
    solution = cfgd.minimize(objective, x0, **options)
    problem.set_parameters(solution.x)
    return solution


class ModelLoss(NamedTuple):
    """loss(model(*inputs), targets) as a function of one vector of the trainable parameters."""

    model: Any
    loss: Any
    inputs: tuple[Any, ...]
    targets: Any
    params: dict[str, Any]

    @classmethod
    def of(cls, model: Any, loss: Any, data: Any) -> ModelLoss:
        """Return the function, with checked arguments."""
        if not isinstance(model, torch.nn.Module):
            fail(OWNER, "model", "be a torch.nn.Module", type(model).__name__)
        if not callable(loss):
            fail(OWNER, "loss", "be a function of outputs and targets", repr(loss))
        if not isinstance(data, tuple | list) or len(data) != 2:
            wanted = "be `(inputs, targets)`, the inputs a tensor or a tuple of tensors"
            got = f"{len(data)} parts" if isinstance(data, tuple | list) else type(data).__name__
            fail(OWNER, "data", wanted, got)
        inputs = tuple(data[0]) if isinstance(data[0], tuple | list) else (data[0],)
        params = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not params:
            fail(OWNER, "model", "have parameters that require a gradient", "none")
        kinds = sorted({f"{p.dtype} on {p.device}" for p in params.values()})
        if len(kinds) > 1:
            fail(OWNER, "model", "have its parameters in one precision and on one device", kinds)
        if not next(iter(params.values())).dtype.is_floating_point:
            fail(OWNER, "model", "have real parameters", kinds[0])
        return cls(model, loss, inputs, data[1], params)

    def initial_point(self) -> np.ndarray:
        """Return the current parameters as one vector, half precision as float32."""
        vector = torch.nn.utils.parameters_to_vector(p.detach() for p in self.params.values())
        has_numpy_dtype = vector.dtype in (torch.float32, torch.float64)
        return np.array((vector if has_numpy_dtype else vector.float()).cpu().numpy())

    def set_parameters(self, x: np.ndarray) -> None:
        """Copy the entries of a vector into the model."""
        with torch.no_grad():
            for p, part in zip(self.params.values(), self._split(self._tensor(x)), strict=True):
                p.copy_(part)

    def _tensor(self, x: np.ndarray) -> Any:
        p = next(iter(self.params.values()))
        return torch.tensor(x, dtype=p.dtype, device=p.device)

    def _split(self, vector: Any) -> list[Any]:
        parts = vector.split([p.numel() for p in self.params.values()])
        return [part.view(p.shape) for part, p in zip(parts, self.params.values(), strict=True)]

    def _output(self, vector: Any) -> Any:
        params = dict(zip(self.params, self._split(vector), strict=True))
        return torch.func.functional_call(self.model, params, self.inputs)

    def _value(self, vector: Any) -> Any:
        return self.loss(self._output(vector), self.targets)

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss and its gradient at a vector."""
        gradient, value = torch.func.grad_and_value(self._value)(self._tensor(x))
        return _numpy(value), _numpy(gradient)

    def output_size(self) -> int:
        """Return the number of outputs for all inputs."""
        with torch.no_grad():
            return int(self._output(self._tensor(self.initial_point())).numel())

    def squared_factor(self) -> float | None:
        """Return c if the loss is c times the sum of squared errors, None for another loss."""
        is_function = self.loss is torch.nn.functional.mse_loss
        if not is_function and type(self.loss) is not torch.nn.MSELoss:
            return None
        reduction = "mean" if is_function else self.loss.reduction
        return {"mean": 1 / self.output_size(), "sum": 1.0}.get(reduction)

    def residuals(self, factor: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function r for which the loss is |r|^2 / 2."""
        scale = math.sqrt(2 * factor)

        def residuals(x: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                errors = self._output(self._tensor(x)) - self.targets
                return _numpy(scale * errors.reshape(-1))

        return residuals

    def jacobian(self, factor: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return the Jacobian of `residuals` as a function of a vector."""
        scale = math.sqrt(2 * factor)

        def flat_output(vector: Any) -> Any:
            return self._output(vector).reshape(-1)

        def jacobian(x: np.ndarray) -> np.ndarray:
            return scale * _numpy(torch.func.jacrev(flat_output)(self._tensor(x)))

        return jacobian

    def check(self, x0: np.ndarray) -> None:
        """Require a scalar and deterministic loss, its full gradient, and targets that fit."""
        values = []
        for _ in range(2):
            with torch.no_grad():
                value = self._value(self._tensor(x0))
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                is_tensor = isinstance(value, torch.Tensor)
                got = tuple(value.shape) if is_tensor else type(value).__name__
                fail(OWNER, "loss", "return a tensor of one number", got)
            values.append(float(value))
        if math.isfinite(values[0]) and values[0] != values[1]:
            wanted = "give the same numbers every time: `model.eval()` turns dropout off"
            fail(OWNER, "model", wanted, f"losses of {values[0]:.6g} and {values[1]:.6g}")
        self._check_gradient(x0)
        if self.squared_factor() is not None:
            with torch.no_grad():
                shape = tuple(self._output(self._tensor(x0)).shape)
            if shape != tuple(self.targets.shape):
                wanted = f"have targets of the shape of the model's output, {shape}"
                fail(OWNER, "data", wanted, tuple(self.targets.shape))

    def _check_gradient(self, x0: np.ndarray) -> None:
        """Require that torch.func and autograd agree on the gradient.

        torch.func does not differentiate a penalty that the loss takes from `model.parameters()`.
        """
        params = list(self.params.values())
        with torch.enable_grad():
            value = self.loss(self.model(*self.inputs), self.targets)
            by_autograd = torch.autograd.grad(value, params, allow_unused=True)
        parts = [
            torch.zeros_like(p) if g is None else g
            for p, g in zip(params, by_autograd, strict=True)
        ]
        expected = _numpy(torch.nn.utils.parameters_to_vector(parts))
        atol = GRADIENT_RTOL * np.abs(expected).max()
        gradient = self.value_and_gradient(x0)[1]
        if not np.allclose(expected, gradient, rtol=GRADIENT_RTOL, atol=atol, equal_nan=True):
            wanted = "depend on the parameters through the outputs of the model alone"
            fail(OWNER, "loss", wanted, "a gradient with another part: make a penalty an output")


def _numpy(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy())
