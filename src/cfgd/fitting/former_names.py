"""Former names of attributes of results, which still work and say what they are called now."""

from __future__ import annotations

from typing import Any, ClassVar

from cfgd._core import checks


class FormerNames:
    """Base of results with `dof` and `residual_std`."""

    _internal: ClassVar[tuple[str, ...]] = ("deviation", "freedom")

    @property
    def freedom(self) -> Any:
        """The former name of `dof`."""
        return self._renamed("freedom", "dof")

    @property
    def deviation(self) -> Any:
        """The former name of `residual_std`."""
        return self._renamed("deviation", "residual_std")

    def _renamed(self, former: str, name: str) -> Any:
        owner = type(self).__name__
        checks.warn(f"`{owner}.{former}` is now called `{name}`.", DeprecationWarning)
        return getattr(self, name)
