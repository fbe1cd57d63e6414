"""The type checker that executes the annotations of cfgd: where a float is wanted, 0 will do."""

import inspect

import jaxtyping
from beartype import BeartypeConf, beartype

_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))

# Calls of a function that one test checks. Annotations of shapes do not depend on numbers, and the
# functions of a solver are called hundreds of times in a run: to check all calls took two fifths of
# the time of all tests.
CALLS = 2


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
_calls: dict = {}  # of functions, in this test


def check_again():
    """Check the next calls of all functions: a test begins."""
    for function in _calls:
        function.__no_type_check__ = False
    _calls.clear()


def _counted(function, typechecker):
    """Return a type checker that leaves the function alone after some calls.

    The attribute is what `typing.no_type_check` sets; jaxtyping reads it at every call.
    """

    def decorate(of):
        check = typechecker(of)

        def count_and_check(*args, **kwargs):
            _calls[function] = _calls.get(function, 0) + 1
            # a call is checked twice: its arguments, and then its result with them
            if _calls[function] >= 2 * CALLS:
                function.__no_type_check__ = True
            return check(*args, **kwargs)

        return count_and_check

    return decorate


def _first_time(typechecker):
    """A function inside another is made anew at every call: the first one is checked.

    To decorate it takes a millisecond, which was a quarter of all tests.
    """

    def decorate(of):
        if "<locals>" in getattr(of, "__qualname__", "") and hasattr(of, "__code__"):
            if of.__code__ in _known:
                return of
            _known.add(of.__code__)
        function = of.__init__ if inspect.isclass(of) else of
        is_function = inspect.isfunction(function)
        counted = _counted(function, typechecker) if is_function else typechecker
        return _decorator(of, typechecker=counted)

    return decorate


jaxtyping.jaxtyped = _first_time
