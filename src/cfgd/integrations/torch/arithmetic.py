"""In-place arithmetic on lists of tensors: vectorised (`foreach`), and as a loop over tensors.

Both classes have the same functions, so that an optimizer is written once for both. `scalar` is one
number for all tensors; `scalars` are one number for each. The core has no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Tensors = list[Any]


class Foreach:
    """torch's vectorised functions, which launch few kernels for many tensors."""

    @staticmethod
    def sub_(a: Tensors, b: Tensors) -> None:
        torch._foreach_sub_(a, b)

    @staticmethod
    def copy_(a: Tensors, b: Tensors) -> None:
        torch._foreach_copy_(a, b)

    @staticmethod
    def neg_(a: Tensors) -> None:
        torch._foreach_neg_(a)

    @staticmethod
    def mul_(a: Tensors, scalar: float) -> None:
        torch._foreach_mul_(a, scalar)

    @staticmethod
    def add(a: Tensors, b: Tensors, scalar: float) -> Tensors:
        return list(torch._foreach_add(a, b, alpha=scalar))

    @staticmethod
    def add_(a: Tensors, b: Tensors, scalar: float) -> None:
        torch._foreach_add_(a, b, alpha=scalar)

    @staticmethod
    def lerp_(a: Tensors, b: Tensors, scalar: float) -> None:
        torch._foreach_lerp_(a, b, scalar)

    @staticmethod
    def addcmul(a: Tensors, b: Tensors, c: Tensors, scalar: float) -> Tensors:
        return list(torch._foreach_addcmul(a, b, c, scalar))

    @staticmethod
    def addcmul_(a: Tensors, b: Tensors, c: Tensors, scalar: float) -> None:
        torch._foreach_addcmul_(a, b, c, scalar)

    @staticmethod
    def sqrt_add_(a: Tensors, b: Tensors, scalars: Sequence[float]) -> None:
        """Set a to sqrt(b) + scalars."""
        torch._foreach_copy_(a, b)
        torch._foreach_sqrt_(a)
        torch._foreach_add_(a, list(scalars))

    @staticmethod
    def addcdiv_(a: Tensors, b: Tensors, c: Tensors, scalars: Sequence[float]) -> None:
        torch._foreach_addcdiv_(a, b, c, list(scalars))


class ForLoop:
    """A loop over the tensors."""

    @staticmethod
    def sub_(a: Tensors, b: Tensors) -> None:
        for p, q in zip(a, b, strict=True):
            p.sub_(q)

    @staticmethod
    def copy_(a: Tensors, b: Tensors) -> None:
        for p, q in zip(a, b, strict=True):
            p.copy_(q)

    @staticmethod
    def neg_(a: Tensors) -> None:
        for p in a:
            p.neg_()

    @staticmethod
    def mul_(a: Tensors, scalar: float) -> None:
        for p in a:
            p.mul_(scalar)

    @staticmethod
    def add(a: Tensors, b: Tensors, scalar: float) -> Tensors:
        return [torch.add(p, q, alpha=scalar) for p, q in zip(a, b, strict=True)]

    @staticmethod
    def add_(a: Tensors, b: Tensors, scalar: float) -> None:
        for p, q in zip(a, b, strict=True):
            p.add_(q, alpha=scalar)

    @staticmethod
    def lerp_(a: Tensors, b: Tensors, scalar: float) -> None:
        for p, q in zip(a, b, strict=True):
            p.lerp_(q, scalar)

    @staticmethod
    def addcmul(a: Tensors, b: Tensors, c: Tensors, scalar: float) -> Tensors:
        return [torch.addcmul(p, q, r, value=scalar) for p, q, r in zip(a, b, c, strict=True)]

    @staticmethod
    def addcmul_(a: Tensors, b: Tensors, c: Tensors, scalar: float) -> None:
        for p, q, r in zip(a, b, c, strict=True):
            p.addcmul_(q, r, value=scalar)

    @staticmethod
    def sqrt_add_(a: Tensors, b: Tensors, scalars: Sequence[float]) -> None:
        """Set a to sqrt(b) + scalars."""
        for p, q, s in zip(a, b, scalars, strict=True):
            torch.sqrt(q, out=p).add_(s)

    @staticmethod
    def addcdiv_(a: Tensors, b: Tensors, c: Tensors, scalars: Sequence[float]) -> None:
        for p, q, r, s in zip(a, b, c, scalars, strict=True):
            p.addcdiv_(q, r, value=s)


Arithmetic = type[Foreach] | type[ForLoop]
