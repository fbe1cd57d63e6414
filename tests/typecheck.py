"""The type checker that executes the annotations of cfgd: where a float is wanted, 0 will do."""

import jaxtyping
from beartype import BeartypeConf, beartype

_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(of):
    """Return a function that checks its arguments as `of` is annotated, made at its first call.

    To make one takes about a millisecond. Most of the 2,000 functions of the library are imported
    by every worker and called by few tests.
    """
    made = None

    def check(*args, **kwargs):
        nonlocal made
        if made is None:
            made = _beartype(of)
        return made(*args, **kwargs)

    return check


_decorator = jaxtyping.jaxtyped
_known = set()


def _first_time(typechecker):
    """A function inside another is made anew at every call: the first one is checked.

    To decorate it takes a millisecond, which was a quarter of all tests.
    """

    def decorate(of):
        if "<locals>" in getattr(of, "__qualname__", "") and hasattr(of, "__code__"):
            if of.__code__ in _known:
                return of
            _known.add(of.__code__)
        return _decorator(of, typechecker=typechecker)

    return decorate


jaxtyping.jaxtyped = _first_time
