"""Fit a torch model to all of its data at once with the core's `Auto`.

Value, gradient and, for squared errors, the Jacobian are computed by torch's autograd as functions
of one vector of all parameters; the solver is the core's, which uses JAX and NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from cfgd.integrations.torch.checks import fail
from cfgd.integrations.torch.sample_jacobian import SampleJacobian

if TYPE_CHECKING:
    from cfgd.solve.solution import Solution

OWNER = "minimize"
# Entries of the largest Jacobian that is computed and factorised (128 MB in double precision);
# larger problems are solved with the gradient only.
MAX_JACOBIAN_ENTRIES = 2**24
# Outputs times rows of the Jacobian that one backward pass computes together, where samples depend
# on one another. Measured on a network
# with 481 parameters and 500 outputs: 0.13 s with 2^14, 0.27 s with all rows at once, whose memory
# (each layer's numbers for every output and row) also grows with the square of the outputs.
PASS_NUMBERS = 2**14


def minimize(model: Any, loss: Any, data: Any = None, **options: Any) -> Solution:
    """Fit a torch model to all of its data: minimise loss(model(inputs), targets), or a closure.

    For `MSELoss` and `mse_loss` the core's `Auto` takes Levenberg-Marquardt steps with the Jacobian
    of the model, otherwise L-BFGS steps. The parameters of the model are set to the best point,
    also where an error or Ctrl-C ends the run, and to the point of the solution that a `callback`
    gets. Parameters that do not require a gradient do not change.

    The computation is in the precision of the parameters: call `model.double()` first for more than
    four or five digits. The model must be deterministic: call `model.eval()` if it has dropout.

    Model and loss may call `torch.autograd.grad(..., create_graph=True)`, as networks for
    differential equations do.

    Parameters
    ----------
    model : torch.nn.Module or iterable of torch.nn.Parameter
        The model; with a closure also its parameters, such as `[*net.parameters(), rate]`.
    loss : callable
        Function of outputs and targets that returns a tensor of one number. Without `data` it is a
        closure as for `torch.optim.LBFGS`: a function without arguments that returns the loss. It
        may call `backward()`, or leave that to `minimize`.
    data : (inputs, targets), optional
        The inputs are a tensor or a tuple of tensors.
    **options
        Further keyword arguments of `cfgd.minimize`, such as `max_iterations` or `tolerance`.

    Returns
    -------
    Solution
        `solution.x` has the parameters as one vector in the order of `model.parameters()`.

    Raises
    ------
    ValueError
        If `model` is neither a module nor an iterable of parameters, or has no trainable real
        parameters of one precision on one device; if `data` is not (inputs, targets), or the
        targets have another shape than the output; or if the loss is not one number, does not
        depend on the parameters, or differs between two calls.

    Examples
    --------
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
    problem = ModelLoss.of(model, loss, data)
    gradients = [p.grad for p in problem.params]
    try:
        with torch.enable_grad():
            return _minimize(problem, options)
    finally:
        for p, gradient in zip(problem.params, gradients, strict=True):
            p.grad = gradient


def _minimize(problem: ModelLoss, options: dict[str, Any]) -> Solution:
    """Run the core's `minimize` and set the parameters of the model."""
    import cfgd
    from cfgd.objectives.external_residuals import ExternalResiduals

    x0 = problem.initial_point()
    problem.check(x0)
    factor = problem.squared_factor()
    objective: Any
    if factor is None or problem.output_size() * x0.size > MAX_JACOBIAN_ENTRIES:
        objective = cfgd.External(problem.value_and_gradient)
    else:
        objective = ExternalResiduals(problem.residuals(factor), problem.jacobian(factor))
    callback = options.get("callback")
    if callable(callback):

        def call_back(so_far: Solution) -> Any:
            problem.set_parameters(so_far.x)
            return callback(so_far)

        options["callback"] = call_back
    try:
        solution = cfgd.minimize(objective, x0, **options)
    except BaseException as error:
        problem.set_parameters(error.solution.x if hasattr(error, "solution") else x0)
        raise
    problem.set_parameters(solution.x)
    return solution


class ModelLoss(NamedTuple):
    """A loss as a function of one vector of the trainable parameters.

    It is loss(model(*inputs), targets), or loss() for a closure. Parameters are set in place, and
    gradients are those of autograd: model and loss are called as their author wrote them.
    """

    model: Any
    loss: Any
    inputs: tuple[Any, ...]
    targets: Any
    params: list[Any]
    is_closure: bool

    @classmethod
    def of(cls, model: Any, loss: Any, data: Any) -> ModelLoss:
        """Return the function, with checked arguments."""
        is_module = isinstance(model, torch.nn.Module)
        if not is_module and data is not None:
            fail(OWNER, "model", "be a torch.nn.Module", type(model).__name__)
        if not callable(loss):
            wanted = "be a function of outputs and targets" if data is not None else "be a closure"
            fail(OWNER, "loss", wanted, repr(loss))
        if data is None and type(loss).__module__.startswith("torch.nn"):
            fail(OWNER, "data", "be `(inputs, targets)` for a loss of torch.nn", "None")
        if data is not None and (not isinstance(data, tuple | list) or len(data) != 2):
            wanted = "be `(inputs, targets)`, the inputs a tensor or a tuple of tensors"
            got = f"{len(data)} parts" if isinstance(data, tuple | list) else type(data).__name__
            fail(OWNER, "data", wanted, got)
        params = [p for p in _parameters(model) if p.requires_grad]
        if not params:
            fail(OWNER, "model", "have parameters that require a gradient", "none")
        kinds = sorted({f"{p.dtype} on {p.device}" for p in params})
        if len(kinds) > 1:
            fail(OWNER, "model", "have its parameters in one precision and on one device", kinds)
        if not params[0].dtype.is_floating_point:
            fail(OWNER, "model", "have real parameters", kinds[0])
        if data is None:
            return cls(model, loss, (), None, params, is_closure=True)
        inputs = tuple(data[0]) if isinstance(data[0], tuple | list) else (data[0],)
        return cls(model, loss, inputs, data[1], params, is_closure=False)

    def initial_point(self) -> np.ndarray:
        """Return the current parameters as one vector, half precision as float32."""
        vector = torch.nn.utils.parameters_to_vector(p.detach() for p in self.params)
        has_numpy_dtype = vector.dtype in (torch.float32, torch.float64)
        return np.array((vector if has_numpy_dtype else vector.float()).cpu().numpy())

    def set_parameters(self, x: np.ndarray) -> None:
        """Copy the entries of a vector into the model."""
        first = self.params[0]
        vector = torch.tensor(x, dtype=first.dtype, device=first.device)
        with torch.no_grad():
            parts = vector.split([p.numel() for p in self.params])
            for p, part in zip(self.params, parts, strict=True):
                p.copy_(part.view(p.shape))

    def _output(self, x: np.ndarray) -> Any:
        """Return the output of the model for all inputs, with its graph."""
        self.set_parameters(x)
        return self.model(*self.inputs)

    def _value(self, x: np.ndarray) -> Any:
        """Return the loss, with its graph unless the closure has called backward."""
        self.set_parameters(x)
        self._clear_gradients()
        if self.is_closure:
            return self.loss()
        return self.loss(self.model(*self.inputs), self.targets)

    def _clear_gradients(self) -> None:
        for p in self.params:
            p.grad = None

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss and its gradient at a vector."""
        value = self._value(x)
        parts = [p.grad for p in self.params]
        if all(part is None for part in parts):  # there was no backward()
            parts = torch.autograd.grad(value, self.params, allow_unused=True)
        parts = [
            torch.zeros_like(p) if part is None else part
            for p, part in zip(self.params, parts, strict=True)
        ]
        gradient = _numpy(torch.nn.utils.parameters_to_vector(parts))
        self._clear_gradients()
        return _numpy(torch.as_tensor(value)), gradient

    def output_size(self) -> int:
        """Return the number of outputs for all inputs."""
        return int(self._output(self.initial_point()).numel())

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
            errors = self._output(x).detach() - self.targets
            return _numpy(scale * errors.reshape(-1))

        return residuals

    def jacobian(self, factor: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return the Jacobian of `residuals` as a function of a vector.

        It is computed sample by sample until samples turn out to depend on one another.
        """
        scale = math.sqrt(2 * factor)
        output = self._output(self.initial_point())
        by_samples: SampleJacobian | None = None
        if SampleJacobian.applies(self.inputs, output):
            by_samples = SampleJacobian(self.model, self.inputs, output)

        def jacobian(x: np.ndarray) -> np.ndarray:
            nonlocal by_samples
            output = self._output(x)
            if by_samples is not None:
                rows = by_samples(output)
                if rows is not None:
                    return scale * _numpy(rows)
                by_samples = None
            return scale * self._jacobian_of_batch(output.reshape(-1))

        return jacobian

    def _jacobian_of_batch(self, output: Any) -> np.ndarray:
        """Return the Jacobian of the outputs of one batch, by backward passes through all of it."""
        units = torch.eye(len(output), dtype=output.dtype, device=output.device)
        size = max(1, PASS_NUMBERS // len(output))
        return np.concatenate([self._rows(output, block) for block in units.split(size)])

    def _rows(self, output: Any, cotangents: Any) -> np.ndarray:
        """Return rows of the derivative of the output: a product for each row of `cotangents`."""
        parts = torch.autograd.grad(
            output,
            self.params,
            cotangents,
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=True,
        )
        n = len(cotangents)
        return np.concatenate(
            [
                np.zeros((n, p.numel())) if part is None else _numpy(part.reshape(n, -1))
                for p, part in zip(self.params, parts, strict=True)
            ],
            axis=1,
        )

    def check(self, x0: np.ndarray) -> None:
        """Require a scalar and deterministic loss that has a gradient, and targets that fit."""
        values = []
        for _ in range(2):
            value = self._value(x0)
            has_called_backward = any(p.grad is not None for p in self.params)
            is_tensor = isinstance(value, torch.Tensor)
            if not has_called_backward and (not is_tensor or value.numel() != 1):
                got = tuple(value.shape) if is_tensor else type(value).__name__
                fail(OWNER, "loss", "return a tensor of one number", got)
            if not has_called_backward and not value.requires_grad:
                fail(OWNER, "loss", "depend on the parameters of the model", "a constant")
            values.append(float(_numpy(torch.as_tensor(value))))
        self._clear_gradients()
        if math.isfinite(values[0]) and values[0] != values[1]:
            wanted = "give the same numbers every time: `model.eval()` turns dropout off"
            fail(OWNER, "model", wanted, f"losses of {values[0]:.6g} and {values[1]:.6g}")
        if self.squared_factor() is not None:
            shape = tuple(self._output(x0).shape)
            if shape != tuple(self.targets.shape):
                wanted = f"have targets of the shape of the model's output, {shape}"
                fail(OWNER, "data", wanted, tuple(self.targets.shape))


def _parameters(model: Any) -> list[Any]:
    """Return the parameters of a module, or those that were given themselves."""
    if isinstance(model, torch.nn.Module):
        return list(model.parameters())
    wanted = "be a torch.nn.Module or an iterable of its parameters"
    try:
        params = [model] if isinstance(model, torch.Tensor) else list(model)
    except TypeError:
        fail(OWNER, "model", wanted, type(model).__name__)
    for p in params:
        if not isinstance(p, torch.Tensor) or not p.is_leaf:
            fail(OWNER, "model", wanted, type(p).__name__)
    return params


def _numpy(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy())
