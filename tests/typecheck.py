"""The type checker that executes the annotations of cfgd: where a float is wanted, 0 will do."""

from beartype import BeartypeConf, beartype

_beartyped = beartype(conf=BeartypeConf(is_pep484_tower=True))
_known = set()


def checked(of):
    """A function inside another is made anew at every call: its first one is checked.

    Checking it takes a millisecond, which was a tenth of all tests.
    """
    if "<locals>" in of.__qualname__ and hasattr(of, "__code__"):
        if of.__code__ in _known:
            return of
        _known.add(of.__code__)
    return _beartyped(of)
