"""The base class of the optimizers: options, measured curvature, and a step along the direction."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from cfgd.integrations.torch import checks, curvature as curvatures
from cfgd.integrations.torch.arithmetic import Arithmetic, Foreach, ForLoop, Tensors
from cfgd.integrations.torch.direction import direction
from cfgd.integrations.torch.options import (
    Group,
    check_options,
    checked_curvature,
    gamma_of_group,
)

# An exact diagonal takes one product with the Hessian per number, so more numbers are a mistake.
MAX_EXACT = 20_000
# the default if neither beta nor gamma is given, as in `cfgd.integrations.optax`
DEFAULT_GAMMA = -0.25


class CaputoOptimizer(torch.optim.Optimizer, abc.ABC):
    """Base of the optimizers along d = g + gamma D (x - c) with c = x_{k - lag}.

    Subclasses define `_update`, the step along d. `CFGD` documents the options.
    """

    # whether the weight decay is applied to x directly, and is not part of the loss
    _decoupled_weight_decay = False
    # options of a subclass; it sets them before it calls `__init__`
    _own_defaults: dict[str, Any] = {}  # noqa: RUF012

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        *,
        alpha: float = 0.5,
        beta: float | None = None,
        gamma: float | None = None,
        lag: int = 1,
        curvature: Any = "hutchinson",
        every: int = 10,
        probes: int = 1,
        keep: float = 0.9,
        seed: int = 0,
        weight_decay: float = 0.0,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            **self._own_defaults,
            "alpha": alpha,
            "beta": beta,
            "gamma": DEFAULT_GAMMA if beta is None and gamma is None else gamma,
            "lag": lag,
            "curvature": curvature,
            "every": every,
            "probes": probes,
            "keep": keep,
            "seed": seed,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @abc.abstractmethod
    def _update(
        self, ops: Arithmetic, x: Tensors, d: Tensors, states: Tensors, group: Group
    ) -> None:
        """Move x along d, in place; d may be overwritten."""

    def _initial_state(self, p: Any) -> dict[str, Any]:
        """Return what a subclass stores for a parameter."""
        return {}

    def _check_group(self, group: Group) -> None:
        owner = type(self).__name__
        check_options(owner, group)
        group["curvature"] = checked_curvature(owner, group["curvature"], group["params"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, as in torch; its own `beta` or `gamma` overrides the default of either."""
        if isinstance(param_group, dict) and ("beta" in param_group) != ("gamma" in param_group):
            param_group.setdefault("beta", None)
            param_group.setdefault("gamma", None)
        super().add_param_group(param_group)
        try:
            self._check_group(self.param_groups[-1])
        except ValueError:
            self.param_groups.pop()
            raise
        self.param_groups[-1].update(curvatures.COUNTERS)

    def observe(self, loss: Any) -> None:
        """Measure the curvature of a loss if a measurement is due; otherwise do nothing.

        Call it before `loss.backward()`, whose graph it uses and retains, and with the loss itself,
        not with one that a GradScaler has scaled. The curvatures of several losses before one step
        add up, as their gradients do. A measurement that is not finite is left out.

        Parameters
        ----------
        loss : torch.Tensor
            The loss of the batch: one number with its graph, before `backward()`.

        Raises
        ------
        ValueError
            If `loss` is not a tensor of one number with a graph, if there are several processes, or
            if the exact diagonal is asked for too many parameters.
        """
        due = [group for group in self.param_groups if curvatures.is_due(group)]
        params = [p for group in due for p in group["params"] if p.requires_grad]
        if not params:
            return
        self._check_loss(loss)
        self._check_size(due)
        with torch.enable_grad():
            slopes = dict(zip(params, curvatures.gradients(loss, params), strict=True))
        for groups in self._groups_with_common_probes(due):
            used = [p for group in groups for p in group["params"] if slopes.get(p) is not None]
            measured = dict(zip(used, self._measure(groups[0], used, slopes), strict=True))
            for group in groups:
                group["drawn"] += 1
                members = [p for p in group["params"] if p in measured]
                means = [self._state_of(p, group)["curvature"] for p in members]
                with torch.no_grad():
                    curvatures.update_means(group, means, [measured[p] for p in members])

    @staticmethod
    def _groups_with_common_probes(due: list[Group]) -> list[list[Group]]:
        """Return lists of groups with the same probes: one product serves all of a list."""
        by_kind: dict[Any, list[Group]] = {}
        for group in due:
            by_kind.setdefault((group["curvature"], group["probes"]), []).append(group)
        return list(by_kind.values())

    def _measure(self, group: Group, params: Tensors, slopes: dict[Any, Any]) -> Tensors:
        """Return the diagonal of the Hessian for some parameters, by the kind of the group."""
        of_params = [slopes[p] for p in params]
        if group["curvature"] == "exact":
            return curvatures.exact(of_params, params)
        index = next(i for i, other in enumerate(self.param_groups) if other is group)
        seed = f"{group['seed']} {index} {group['drawn']}"
        return curvatures.hutchinson(of_params, params, group["probes"], seed)

    def _check_loss(self, loss: Any) -> None:
        owner = f"{type(self).__name__}.observe"
        is_tensor = isinstance(loss, torch.Tensor)
        if not is_tensor or loss.numel() != 1 or not loss.requires_grad:
            wanted = "be a tensor of one number with a graph, before its backward()"
            got = f"shape {tuple(loss.shape)}" if is_tensor else repr(loss)
            graph = " without a graph" if is_tensor and not loss.requires_grad else ""
            checks.fail(owner, "loss", wanted, got + graph)
        group = torch.distributed
        if group.is_available() and group.is_initialized() and group.get_world_size() > 1:
            wanted = "be the loss of all processes: with several, give `curvature` instead"
            checks.fail(owner, "loss", wanted, f"that of one of {group.get_world_size()}")

    def _check_size(self, due: list[Group]) -> None:
        size = sum(p.numel() for g in due if g["curvature"] == "exact" for p in g["params"])
        if size > MAX_EXACT:
            wanted = f"be 'hutchinson' for more than {MAX_EXACT} numbers"
            checks.fail(type(self).__name__, "curvature", wanted, f"'exact' for {size}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients, as in torch; a loss that is observed later belongs to a new step."""
        for group in self.param_groups:
            group["open"] = False
        super().zero_grad(set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step; `closure`, if given, computes loss and gradients and calls `observe`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: Group) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        if any(p.grad.is_sparse for p in params):
            name = type(self).__name__
            raise RuntimeError(f"`{name}` must be given dense gradients, got a sparse one.")
        if params and curvatures.is_outdated(group):
            raise RuntimeError(
                f"`{type(self).__name__}.step` must follow `optimizer.observe(loss)`, called "
                "before each `loss.backward()`, or `curvature` be given, got no curvature of the "
                f"last {group['every']} steps."
            )
        for ops, x in _vectorised(params, group["foreach"]):
            states = [self._state_of(p, group) for p in x]
            d = direction(
                ops,
                x,
                [p.grad for p in x],
                [state["past"][state["step"] % len(state["past"])] for state in states],
                _curvature_of(group, x, states),
                gamma=gamma_of_group(group),
                weight_decay=0.0 if self._decoupled_weight_decay else group["weight_decay"],
                maximize=group["maximize"],
            )
            for state in states:
                state["step"] += 1
            self._update(ops, x, d, states, group)
        curvatures.count_step(group)

    # torch.compile must not compile a step: the counters are Python integers, for each value of
    # which inductor (torch 2.13) compiled another program, with different numbers.
    _step_group = torch.compiler.disable(_step_group)

    def _state_of(self, p: Any, group: Group) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        if not state:
            state["step"] = 0
            # ring of the last `lag` points; at first c = x_0, so that step 0 is a gradient step
            state["past"] = [torch.clone(p.detach()) for _ in range(group["lag"])]
            if curvatures.is_measured(group):
                state["curvature"] = torch.zeros_like(p, requires_grad=False)
            state.update(self._initial_state(p))
        return state


def _curvature_of(group: Group, x: Tensors, states: Tensors) -> Tensors | float:
    """Return D for the parameters x, as given or as measured."""
    given = group["curvature"]
    if isinstance(given, float):
        return given
    if isinstance(given, list):
        by_param = dict(zip(group["params"], given, strict=True))
        return [by_param[p] for p in x]
    return [state["curvature"] for state in states]


def _vectorised(params: Tensors, foreach: bool | None) -> Iterator[tuple[Arithmetic, Tensors]]:
    """Yield the parameters in lists, with `foreach` one list for each device and dtype.

    The default is torch's: `foreach` unless a parameter is on the CPU.
    """
    if foreach is None:
        foreach = bool(params) and all(p.device.type != "cpu" for p in params)
    if not foreach:
        yield from ((ForLoop, [p]) for p in params)
        return
    by_kind: dict[Any, Tensors] = {}
    for p in params:
        by_kind.setdefault((p.device, p.dtype), []).append(p)
    yield from ((Foreach, alike) for alike in by_kind.values())
