"""A clock that a test sets, in place of the one that runs read."""

import contextlib

import pytest


class FakeClock:
    """A clock whose time passes by `advance`, and by `tick` seconds whenever it is read."""

    def __init__(self, tick):
        self.time, self.tick = 0.0, tick

    def now(self):
        self.time += self.tick
        return self.time

    def advance(self, seconds):
        self.time += seconds


@contextlib.contextmanager
def fake_clock(tick=0.0):
    """Replace the clock of runs; with a `tick`, a time limit bounds the number of chunks."""
    clock = FakeClock(tick)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cfgd.solve.clock.now", clock.now)
        yield clock
