"""How `cfgd launch` ends its processes: with processes and a clock that the tests make up."""

import signal

import pytest

from cfgd._core.process_group import FOLLOWED
from cfgd.apps.launch import Supervisor


class FakeProcess:
    """A process that ends at a time, or by one of the signals that it does not ignore."""

    def __init__(self, index, clock, ends=None, ignores=()):
        self.index, self.clock, self.ends, self.ignores = index, clock, ends, ignores
        self.code, self.received, self.is_stopped = None, [], False

    def send(self, number):
        if self.code is None:
            self.received.append((round(self.clock.time, 1), signal.Signals(number).name))
            if number not in self.ignores:
                self.code = -number

    def advance(self):
        if self.code is None and self.ends is not None and self.clock.time >= self.ends[0]:
            self.code = self.ends[1]


class World:
    """Processes and a clock: `pause` lets the time pass and does what is due then."""

    def __init__(self):
        self.time, self.processes, self.events = 0.0, [], []

    def add(self, ends=None, ignores=()):
        process = FakeProcess(len(self.processes), self, ends, ignores)
        self.processes.append(process)
        return process

    def at(self, time, action):
        self.events.append((time, action))

    def pause(self, seconds):
        self.time += seconds
        assert self.time < 100, "the launcher does not end"
        for event in [event for event in self.events if event[0] <= self.time]:
            self.events.remove(event)
            event[1]()
        for process in self.processes:
            process.advance()

    def run(self):
        self.supervisor = Supervisor(self.processes, lambda: self.time, self.pause)
        return self.supervisor.wait()


@pytest.fixture
def world():
    return World()


STUBBORN = (signal.SIGINT, signal.SIGTERM)


def test_all_succeed(world, capfd):
    first, second = world.add((3, 0)), world.add((50, 0))
    assert world.run() == 0
    assert first.received == second.received == []
    assert capfd.readouterr().err == ""


def test_the_others_get_ten_seconds_after_a_failure(world, capfd):
    """Then SIGTERM, which JAX's processes ignore, and SIGKILL: 15 seconds in all."""
    other = world.add(ignores=STUBBORN)
    world.add((2, 7))
    assert world.run() == 7
    (terminated, first), (killed, second) = other.received
    assert (first, second) == ("SIGTERM", "SIGKILL")
    assert terminated == pytest.approx(13, abs=0.2)
    assert killed == pytest.approx(17, abs=0.2)
    said = "cfgd launch: process 1 of 2 ended with code 7; the other processes end, too.\n"
    assert capfd.readouterr().err == said


def test_others_that_end_by_themselves_are_not_the_cause(world, capfd):
    """Though they may be the first to end: the one that calls sys.exit tells them before."""
    world.add((2.0, FOLLOWED))
    world.add((2.3, -signal.SIGABRT))
    world.add((2.6, 5))
    assert world.run() == 5
    assert capfd.readouterr().err == ""  # each has said why


def test_a_process_that_does_not_answer_is_named(world, capfd):
    world.add((60, FOLLOWED))
    asleep = world.add(ignores=STUBBORN)
    assert world.run() == FOLLOWED
    assert asleep.received[-1][1] == "SIGKILL"
    why = "process 0 of 2 waited without success for process 1"
    said = f"cfgd launch: {why}; the other processes end, too.\n"
    assert capfd.readouterr().err == said


def test_a_stopped_process_ends_all_after_30_seconds(world, capfd):
    first, second = world.add(ignores=STUBBORN), world.add(ignores=STUBBORN)
    world.at(5, lambda: setattr(second, "is_stopped", True))
    assert world.run() == 128 + signal.SIGKILL
    for process in (first, second):
        assert process.received[0] == (pytest.approx(35, abs=0.2), "SIGTERM")
        assert process.received[1] == (pytest.approx(39, abs=0.2), "SIGKILL")
    why = "process 1 of 2 has been stopped for 30 seconds"
    said = f"cfgd launch: {why}; the other processes end, too.\n"
    assert capfd.readouterr().err == said


def test_a_process_that_goes_on_is_not_ended(world):
    process = world.add((60, 0))
    for time, is_stopped in ((5, True), (30, False), (31, True), (55, False)):
        world.at(time, lambda is_stopped=is_stopped: setattr(process, "is_stopped", is_stopped))
    assert world.run() == 0
    assert process.received == []


def test_the_first_ctrl_c_is_a_request(world, capfd):
    """All processes get it, and may take their time."""
    processes = [world.add((70 + i, 0), ignores=STUBBORN) for i in range(2)]
    world.at(5, lambda: world.supervisor.handle(signal.SIGINT))
    assert world.run() == 0
    for process in processes:
        assert process.received == [(pytest.approx(5, abs=0.1), "SIGINT")]
    assert capfd.readouterr().err == ""


def test_a_second_ctrl_c_terminates_and_kills_after_ten_seconds(world):
    gentle = world.add(ignores=[signal.SIGINT])
    stubborn = world.add(ignores=STUBBORN)
    for time in (5, 8):
        world.at(time, lambda: world.supervisor.handle(signal.SIGINT))
    assert world.run() == 128 + signal.SIGINT
    assert [name for _, name in gentle.received] == ["SIGINT", "SIGTERM"]
    assert [name for _, name in stubborn.received] == ["SIGINT", "SIGTERM", "SIGKILL"]
    times = [time for time, _ in stubborn.received]
    assert times == pytest.approx([5, 8, 18], abs=0.2)


def test_sigterm_terminates_and_kills_after_ten_seconds(world):
    stubborn = world.add(ignores=STUBBORN)
    world.at(5, lambda: world.supervisor.handle(signal.SIGTERM))
    assert world.run() == 128 + signal.SIGTERM
    assert stubborn.received == [
        (pytest.approx(5, abs=0.1), "SIGTERM"),
        (pytest.approx(15, abs=0.2), "SIGKILL"),
    ]


def test_an_exit_code_is_passed_on_after_ctrl_c(world):
    world.add((9, 130), ignores=STUBBORN)
    world.at(5, lambda: world.supervisor.handle(signal.SIGINT))
    assert world.run() == 130
