"""Tab completion that shows what users call, without the members that other modules call."""

from __future__ import annotations

from typing import ClassVar


class ListsPublicNames:
    """Base class whose `dir` leaves out the names in `_internal` of the class and its bases."""

    _internal: ClassVar[tuple[str, ...]] = ()

    def __dir__(self) -> list[str]:
        internal = {name for each in type(self).__mro__ for name in vars(each).get("_internal", ())}
        return sorted(set(super().__dir__()) - internal)
