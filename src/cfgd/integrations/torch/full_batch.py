"""A torch model on all of its data at once, by the core: `Auto`, with nothing to tune.

The model is a function of one vector, by torch.func; value, gradient and, for squared errors, the
Jacobian are torch's, everything else is the core's, which is JAX and NumPy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from cfgd.integrations.torch.check import fail

if TYPE_CHECKING:
    from cfgd.solve.solution import Solution

OWNER = "minimize"
# entries of a Jacobian that is made and factorised; more of them, and the gradient has to do
MOST_ENTRIES = 2**24
WANTED = "be `(inputs, targets)`, the inputs a tensor or a tuple of tensors"


def minimize(model: Any, loss: Any, data: Any, **options: Any) -> Solution:
    """Fit a torch model to all of its data: min over parameters of loss(model(inputs), targets).

    `Auto` of the core decides how: for `MSELoss` and `mse_loss` it takes Tikhonov (Levenberg and
    Marquardt's) steps with the Jacobian of the model, else steps in the span of the last terminals.
    The parameters of the model become the best point that was found; `solution.x` has them as one
    vector in the order of `model.parameters()`. Parameters that do not require a gradient stay.

    It is computed in the precision of the parameters: for more than four or five digits, and for
    an answer that can be taken at its word, `model.double()` first. The model must give the same
    numbers every time: `model.eval()` where it has dropout. `options` are those of `cfgd.minimize`.

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

    problem = Problem.of(model, loss, data)
    x0 = problem.start()
    problem.check_numbers(x0)
    factor, entries = problem.squared(), problem.outputs() * x0.size
    objective: Any
    if factor is None or entries > MOST_ENTRIES:
        objective = cfgd.External(problem.value_and_gradient)
    else:
        objective = ExternalResiduals(problem.residuals(factor), problem.jacobian(factor))
    solution = cfgd.minimize(objective, x0, **options)
    problem.set_parameters(solution.x)
    return solution


class Problem(NamedTuple):
    """loss(model(*inputs), targets) as a function of one vector of all parameters."""

    model: Any
    loss: Any
    inputs: tuple[Any, ...]
    targets: Any
    params: dict[str, Any]

    @classmethod
    def of(cls, model: Any, loss: Any, data: Any) -> Problem:
        if not isinstance(model, torch.nn.Module):
            fail(OWNER, "model", "be a torch.nn.Module", type(model).__name__)
        if not callable(loss):
            fail(OWNER, "loss", "be a function of outputs and targets", repr(loss))
        if not isinstance(data, tuple | list) or len(data) != 2:
            got = f"{len(data)} parts" if isinstance(data, tuple | list) else type(data).__name__
            fail(OWNER, "data", WANTED, got)
        inputs = tuple(data[0]) if isinstance(data[0], tuple | list) else (data[0],)
        params = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not params:
            fail(OWNER, "model", "have parameters that require a gradient", "none")
        kinds = sorted({f"{p.dtype} on {p.device}" for p in params.values()})
        if len(kinds) > 1:
            fail(OWNER, "model", "have its parameters in one precision and place", kinds)
        if not next(iter(params.values())).dtype.is_floating_point:
            fail(OWNER, "model", "have real parameters", kinds[0])
        return cls(model, loss, inputs, data[1], params)

    def start(self) -> np.ndarray:
        flat = torch.nn.utils.parameters_to_vector(p.detach() for p in self.params.values())
        wide = flat.dtype in (torch.float32, torch.float64)
        return np.array(flat.cpu().numpy() if wide else flat.cpu().float().numpy())

    def set_parameters(self, x: np.ndarray) -> None:
        with torch.no_grad():
            for p, part in zip(self.params.values(), self.split(self.tensor(x)), strict=True):
                p.copy_(part)

    def tensor(self, x: np.ndarray) -> Any:
        one = next(iter(self.params.values()))
        return torch.tensor(x, dtype=one.dtype, device=one.device)

    def split(self, v: Any) -> list[Any]:
        parts = v.split([p.numel() for p in self.params.values()])
        return [part.view(p.shape) for part, p in zip(parts, self.params.values(), strict=True)]

    def output(self, v: Any) -> Any:
        params = dict(zip(self.params, self.split(v), strict=True))
        return torch.func.functional_call(self.model, params, self.inputs)

    def value(self, v: Any) -> Any:
        return self.loss(self.output(v), self.targets)

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, value = torch.func.grad_and_value(self.value)(self.tensor(x))
        return _numpy(value), _numpy(gradient)

    def outputs(self) -> int:
        with torch.no_grad():
            return int(self.output(self.tensor(self.start())).numel())

    def squared(self) -> float | None:
        """Of a sum of squares, what to multiply it by; None of another loss."""
        kind = self.loss
        by_name = kind is torch.nn.functional.mse_loss
        if not by_name and type(kind) is not torch.nn.MSELoss:
            return None
        reduction = "mean" if by_name else kind.reduction
        return {"mean": 1 / self.outputs(), "sum": 1.0}.get(reduction)

    def residuals(self, factor: float) -> Any:
        """r with |r|^2/2 for the loss."""
        scale = math.sqrt(2 * factor)

        def of(x: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return _numpy(scale * (self.output(self.tensor(x)) - self.targets).reshape(-1))

        return of

    def jacobian(self, factor: float) -> Any:
        scale = math.sqrt(2 * factor)

        def flat(v: Any) -> Any:
            return self.output(v).reshape(-1)

        def of(x: np.ndarray) -> np.ndarray:
            return scale * _numpy(torch.func.jacrev(flat)(self.tensor(x)))

        return of

    def check_numbers(self, x0: np.ndarray) -> None:
        """One number, the same each time."""
        values = []
        for _ in range(2):
            with torch.no_grad():
                value = self.value(self.tensor(x0))
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                got = (
                    tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
                )
                fail(OWNER, "loss", "return a tensor of one number", got)
            values.append(float(value))
        if math.isfinite(values[0]) and values[0] != values[1]:
            wanted = "give the same numbers every time: `model.eval()` turns dropout off"
            fail(OWNER, "model", wanted, f"losses of {values[0]:.6g} and {values[1]:.6g}")
        self._check_gradient(x0)
        if self.squared() is not None:
            with torch.no_grad():
                shape = tuple(self.output(self.tensor(x0)).shape)
            if shape != tuple(self.targets.shape):
                wanted = f"have targets of the shape of the model's output, {shape}"
                fail(OWNER, "data", wanted, tuple(self.targets.shape))

    def _check_gradient(self, x0: np.ndarray) -> None:
        """A penalty that a loss takes from `model.parameters()` is out of torch.func's sight."""
        params = list(self.params.values())
        with torch.enable_grad():
            value = self.loss(self.model(*self.inputs), self.targets)
            found = torch.autograd.grad(value, params, allow_unused=True)
        whole = [
            torch.zeros_like(p) if g is None else g for p, g in zip(params, found, strict=True)
        ]
        direct = _numpy(torch.nn.utils.parameters_to_vector(whole))
        seen = self.value_and_gradient(x0)[1]
        if not np.allclose(
            direct, seen, rtol=1e-3, atol=1e-3 * np.abs(direct).max(), equal_nan=True
        ):
            wanted = "depend on the parameters through the outputs of the model alone"
            fail(OWNER, "loss", wanted, "a gradient with another part: make a penalty an output")


def _numpy(v: Any) -> np.ndarray:
    return np.asarray(v.detach().cpu().numpy())
