"""Mark the calls in which the first Ctrl-C may raise KeyboardInterrupt.

During a run, Ctrl-C takes effect between two evaluations: an exception at an arbitrary place of the
library could leave data half updated. A function of the user, however, may sleep or compute for
minutes. It is called by one of the functions below, and the signal handler of the run
(`solve/interrupt.py`) looks for their frames on the stack. No state has to be kept that could be
out of date in threads, in nested runs or after an error.

Other functions may be called this way, too, if an exception inside them leaves no data half
updated.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def interruptible(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return fn(*args, **kwargs); the first Ctrl-C inside it raises KeyboardInterrupt."""
    return fn(*args, **kwargs)


def interruptible_trace(fn: Callable[..., R], *args: Any) -> R:
    """Return fn(*args) for a function that JAX traces; Ctrl-C raises in runs of one process only.

    With several processes, one of them must not leave a program that the others enter.
    """
    return fn(*args)


def is_interruptible(frame: FrameType | None, caller: str, traces: bool) -> bool:
    """Return whether a marked call, made by the module `caller`, is running in a frame.

    Parameters
    ----------
    frame
        The innermost frame of the main thread.
    caller
        The name of the module that every run passes. A marked call outside of its innermost frame
        belongs to an outer run.
    traces
        Whether functions that JAX traces count.
    """
    marks = (interruptible.__name__, interruptible_trace.__name__ if traces else "")
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module == __name__ and frame.f_code.co_name in marks:
            return True
        if module == caller:
            return False
        frame = frame.f_back
    return False
