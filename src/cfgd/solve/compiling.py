"""How long JAX compiled: users wait for it, so it is counted, apart from the run."""

from __future__ import annotations

import threading
from typing import Any

import jax

_STAGES = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")
# tracing reports functions inside functions too: count our own ones
_OURS = ("begin", "blanks", "chunk", "look", "recorded", "settle")


class _Clock(threading.local):
    seconds = 0.0


_clock = _Clock()
_started: list[bool] = []


def _count(event: str, duration_secs: float, **about: Any) -> None:
    stage = event.rsplit("/", 1)[-1]
    name = str(about.get("fun_name", "")).removeprefix("jit(").removesuffix(")")
    if stage in _STAGES and name in _OURS:
        _clock.seconds += duration_secs


def seconds_compiling() -> float:
    """Of this thread, since its first call."""
    if not _started:
        _started.append(True)
        jax.monitoring.register_event_duration_secs_listener(_count)
    return _clock.seconds
