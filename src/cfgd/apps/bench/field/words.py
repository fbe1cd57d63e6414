"""How a verdict is said."""

from __future__ import annotations


def at_most(what: str, measured: float, most: float) -> str:
    return f"{what}: {measured:.4g} (wanted at most {most:g}): {holds(measured <= most)}"


def count(what: str, found: int, of: int, wanted: int, things: str = "cases") -> str:
    return f"{what} in {found} of {of} {things} (wanted {wanted}): {holds(found >= wanted)}"


def holds(it: bool) -> str:
    return "holds" if it else "DOES NOT HOLD"


def share(of: int, part: int, whole: int) -> int:
    """So many of `of` as `part` of `whole`, rounded up."""
    return -(-part * of // whole)
