"""The type checker that executes the annotations of cfgd: where a float is wanted, 0 will do."""

import jaxtyping
from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

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
