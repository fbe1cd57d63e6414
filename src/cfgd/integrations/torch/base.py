"""What the optimizers share: groups, the curvature of a loss, a step along the direction."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any

import torch

from cfgd.integrations.torch import check, running
from cfgd.integrations.torch.arithmetic import Arithmetic, Each, Foreach, Tensors
from cfgd.integrations.torch.curvature import exact, gradients, hutchinson
from cfgd.integrations.torch.direction import direction

# an exact diagonal takes a product with the Hessian for each number: more than this is a mistake
MOST_EXACT = 20_000
# of neither beta nor gamma
GAMMA = -0.25


class Fractional(torch.optim.Optimizer, abc.ABC):
    """x moves along d = g + gamma D (x - c) with c = x_{k - lag}, in a way that subclasses say."""

    decoupled = False  # whether the weight decay is no part of the loss

    def __init__(self, params: Any, options: dict[str, Any]) -> None:
        if options["beta"] is None and options["gamma"] is None:
            options["gamma"] = GAMMA
        super().__init__(params, options)

    @abc.abstractmethod
    def start(self, p: Any) -> dict[str, Any]:
        """What the movement remembers of a parameter."""

    @abc.abstractmethod
    def move(
        self, many: Arithmetic, x: Tensors, d: Tensors, states: Tensors, group: dict[str, Any]
    ) -> None:
        """Take x along d, in place."""

    def check(self, group: dict[str, Any]) -> None:
        owner = type(self).__name__
        check.options(owner, group)
        group["curvature"] = check.curvature(owner, group["curvature"], group["params"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As in torch. A group's own `beta` or `gamma` goes before the default of either."""
        if isinstance(param_group, dict) and ("beta" in param_group) != ("gamma" in param_group):
            param_group.setdefault("beta", None)
            param_group.setdefault("gamma", None)
        super().add_param_group(param_group)
        try:
            self.check(self.param_groups[-1])
        except ValueError:
            self.param_groups.pop()
            raise
        self.param_groups[-1].update(running.COUNTERS)

    def observe(self, loss: Any) -> None:
        """Measure the curvature of a loss where that is due; at other times this costs nothing.

        Before `loss.backward()`, whose graph is used and left, and with the loss as it is, not
        scaled by a GradScaler. Several losses before one step add up, as their gradients do. A
        measurement that is not finite is left out.
        """
        due = [group for group in self.param_groups if running.is_due(group)]
        params = [p for group in due for p in group["params"] if p.requires_grad]
        if not params:
            return
        self._check_loss(loss)
        self._check_size(due)
        with torch.enable_grad():
            slopes = dict(zip(params, gradients(loss, params), strict=True))
        for groups in self._together(due):
            of = [p for group in groups for p in group["params"] if slopes.get(p) is not None]
            found = dict(zip(of, self._measured(groups[0], of, slopes), strict=True))
            for group in groups:
                group["drawn"] += 1
                known = [p for p in group["params"] if p in found]
                means = [self._state_of(p, group)["curvature"] for p in known]
                with torch.no_grad():
                    running.take_in(group, means, [found[p] for p in known])

    @staticmethod
    def _together(due: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """Groups with the same kind of probes share them: a product has all of their parameters."""
        parts: dict[Any, list[dict[str, Any]]] = {}
        for group in due:
            parts.setdefault((group["curvature"], group["probes"]), []).append(group)
        return list(parts.values())

    def _measured(self, group: dict[str, Any], params: Tensors, slopes: dict[Any, Any]) -> Tensors:
        of = [slopes[p] for p in params]
        if group["curvature"] == "exact":
            return exact(of, params)
        place = next(i for i, one in enumerate(self.param_groups) if one is group)
        seed = f"{group['seed']} {place} {group['drawn']}"
        return hutchinson(of, params, group["probes"], seed)

    def _check_loss(self, loss: Any) -> None:
        owner = f"{type(self).__name__}.observe"
        tensor = isinstance(loss, torch.Tensor)
        if not tensor or loss.numel() != 1 or not loss.requires_grad:
            wanted = "be a tensor of one number with a graph, before its backward()"
            got = f"shape {tuple(loss.shape)}" if tensor else repr(loss)
            graph = " without a graph" if tensor and not loss.requires_grad else ""
            check.fail(owner, "loss", wanted, got + graph)
        group = torch.distributed
        if group.is_available() and group.is_initialized() and group.get_world_size() > 1:
            wanted = "be the loss of all processes: with several, give `curvature` instead"
            check.fail(owner, "loss", wanted, f"that of one of {group.get_world_size()}")

    def _check_size(self, due: list[dict[str, Any]]) -> None:
        slow = [p.numel() for g in due if g["curvature"] == "exact" for p in g["params"]]
        if sum(slow) > MOST_EXACT:
            wanted = f"be 'hutchinson' for more than {MOST_EXACT} numbers"
            check.fail(type(self).__name__, "curvature", wanted, f"'exact' for {sum(slow)}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As in torch; a loss after this belongs to another step."""
        for group in self.param_groups:
            group["open"] = False
        super().zero_grad(set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; `closure`, if given, makes loss and gradients, and calls `observe` too."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                self._advance(group)
        return loss

    def _advance(self, group: dict[str, Any]) -> None:
        moved = [p for p in group["params"] if p.grad is not None]
        if any(p.grad.is_sparse for p in moved):
            name = type(self).__name__
            raise RuntimeError(f"`{name}` must be given dense gradients, got a sparse one.")
        if moved and running.is_old(group):
            raise RuntimeError(
                f"`{type(self).__name__}.step` must follow `optimizer.observe(loss)`, called "
                "before each `loss.backward()`, or `curvature` be given, got no curvature of the "
                f"last {group['every']} steps."
            )
        for many, x in _parts(moved, group["foreach"]):
            states = [self._state_of(p, group) for p in x]
            d = direction(
                many,
                x,
                [p.grad for p in x],
                [state["past"][state["step"] % len(state["past"])] for state in states],
                _curvature(group, x, states),
                gamma=check.gamma_of(group),
                decay=0.0 if self.decoupled else group["weight_decay"],
                maximize=group["maximize"],
            )
            for state in states:
                state["step"] += 1
            self.move(many, x, d, states, group)
        running.after_a_step(group)

    # torch.compile leaves a step as it is: right, and not faster. It counts on the host; what
    # inductor (torch 2.13) made of the counts was a program for each, and other numbers.
    _advance = torch.compiler.disable(_advance)

    def _state_of(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        if not state:
            state["step"] = 0
            # before the first lag steps the terminal is the start: c = x, a gradient step
            state["past"] = [torch.clone(p.detach()) for _ in range(group["lag"])]
            if running.is_measured(group):
                state["curvature"] = torch.zeros_like(p, requires_grad=False)
            state.update(self.start(p))
        return state


def _curvature(group: dict[str, Any], x: Tensors, states: Tensors) -> Tensors | float:
    given = group["curvature"]
    if isinstance(given, float):
        return given
    if isinstance(given, list):
        place = dict(zip(group["params"], given, strict=True))
        return [place[p] for p in x]
    return [state["curvature"] for state in states]


def _parts(params: Tensors, foreach: bool | None) -> Iterator[tuple[Arithmetic, Tensors]]:
    """Vectorised where tensors are of one type on one device; by default where torch does it."""
    if foreach is None:
        foreach = bool(params) and all(p.device.type != "cpu" for p in params)
    if not foreach:
        yield from ((Each, [p]) for p in params)
        return
    alike: dict[Any, Tensors] = {}
    for p in params:
        alike.setdefault((p.device, p.dtype), []).append(p)
    yield from ((Foreach, some) for some in alike.values())
