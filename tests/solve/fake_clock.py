"""A clock that a test sets, in place of the one that runs read."""

import contextlib

import pytest


class FakeClock:
    """`now` returns `time`; `advance` is how time passes."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    def advance(self, seconds):
        self.time += seconds


@contextlib.contextmanager
def fake_clock():
    clock = FakeClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cfgd.solve.clock.now", clock.now)
        yield clock
