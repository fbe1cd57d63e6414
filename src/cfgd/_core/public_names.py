"""Tab completion of public objects: it shows documented names, and not the library's own."""

from __future__ import annotations

from typing import ClassVar


class ListsPublicNames:
    """Base class whose `dir` leaves out the names in `_internal` of the class and its bases.

    These members are public to the other modules of the library and to subclasses, not to users. A
    test compares the other names with the documented ones.
    """

    _internal: ClassVar[tuple[str, ...]] = ()

    def __dir__(self) -> list[str]:
        internal = {name for each in type(self).__mro__ for name in vars(each).get("_internal", ())}
        return sorted(set(super().__dir__()) - internal)
