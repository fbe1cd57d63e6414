"""`cfgd launch`: run a command in several processes on this machine, and end them together."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol, runtime_checkable

from cfgd._core.process_group import FOLLOWED
from cfgd.apps.worker import LIFELINE
from cfgd.distributed import COORDINATOR, COUNT, INDEX

# seconds
SAME_TIME = 1.0  # processes that end within this time of a failure have failed by themselves
GRACE = 10.0  # for the others to notice a failed process and to end by themselves
TERMINATE = 4.0  # after that, from SIGTERM to SIGKILL, and for the last output lines
KILL = 10.0  # from SIGTERM to SIGKILL where the user asked for an end
STOPPED = 30.0  # that a process may be stopped: as long as JAX waits for a heartbeat
POLL = 0.05  # between checks of the processes
# Exit codes of a process that ended because of another one: `FOLLOWED`, or JAX's abort() where the
# other one has sent no heartbeat.
CONSEQUENCES = (FOLLOWED, -signal.SIGABRT)
WRAPPER = "from cfgd.apps.worker import main; main()"


def launch(command: Sequence[str], count: int, only_errors: bool = False) -> int:
    """Run a command in `count` processes; return 0 or the exit code of the first that failed.

    Process 0 owns the terminal. Lines of the others are prefixed with their number; with
    `only_errors` only their stderr is shown.

    When one process fails, the others end within 15 seconds, and so they do when one has been
    stopped for 30 seconds. The first Ctrl-C is sent to all processes. The second one, or a SIGTERM,
    ends them by SIGTERM, and 10 seconds later by SIGKILL. No process outlives this one.
    """
    address = f"127.0.0.1:{free_port()}"
    lifeline, own_end = os.pipe()
    try:
        workers = [
            Worker(command, address, count, index, only_errors, lifeline) for index in range(count)
        ]
        supervisor = Supervisor(workers)
        with supervisor.handling_signals():
            code = supervisor.wait()
        for worker in workers:
            worker.close()
    finally:
        os.close(lifeline)
        os.close(own_end)
    return code


def as_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as the words of a command line.

    >>> as_words({"--l2": 0.5, "--loss": None, "--drop": ["a", "b"], "--resume": True})
    ['--l2=0.5', '--drop=a', '--drop=b', '--resume']
    """
    words: list[str] = []
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            values = value if isinstance(value, list | tuple) else [value]
            words += [f"{name}={entry}" for entry in values]
    return words


def free_port() -> int:
    """Return a port that no process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@runtime_checkable
class Supervised(Protocol):
    """What the supervisor needs of a process."""

    index: int

    @property
    def code(self) -> int | None:
        """The exit code, or None while the process runs."""

    @property
    def is_stopped(self) -> bool:
        """Whether the process has been stopped, as by SIGSTOP."""

    def send(self, number: int) -> None:
        """Send a signal, if the process still runs."""


class Worker:
    """One process, with threads that copy its output."""

    def __init__(
        self,
        command: Sequence[str],
        address: str,
        count: int,
        index: int,
        only_errors: bool,
        lifeline: int,
    ) -> None:
        environment = {COORDINATOR: address, COUNT: str(count), INDEX: str(index)}
        stdout = stderr = None  # process 0 inherits the terminal
        if index:
            stdout = subprocess.DEVNULL if only_errors else subprocess.PIPE
            stderr = subprocess.PIPE
        self.index = index
        if command[0] == sys.executable:
            command = [sys.executable, "-c", WRAPPER, *command[1:]]
            environment[LIFELINE] = str(lifeline)
        # in a new session, so that the terminal does not send Ctrl-C a second time
        self.process = subprocess.Popen(
            command,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            stdout=stdout,
            stderr=stderr,
            pass_fds=[lifeline],
        )
        self._is_stopped = False
        pairs = ((self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr))
        self.threads = [
            threading.Thread(target=_copy_lines, args=(lines, to, index), daemon=True)
            for lines, to in pairs
            if lines is not None
        ]
        for thread in self.threads:
            thread.start()

    @property
    def code(self) -> int | None:
        return self.process.poll()

    @property
    def is_stopped(self) -> bool:
        if self.code is None and hasattr(os, "waitid"):  # macOS has it from Python 3.13
            kinds = os.WSTOPPED | os.WCONTINUED | os.WNOHANG
            with contextlib.suppress(ChildProcessError):
                change = os.waitid(os.P_PID, self.process.pid, kinds)
                if change is not None:
                    self._is_stopped = change.si_code == os.CLD_STOPPED
        return self._is_stopped

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGINT:
                self.process.send_signal(number)
            elif self.code is None:
                os.killpg(self.process.pid, number)  # and its own children

    def close(self) -> None:
        """Wait for the last lines of output."""
        for thread in self.threads:
            thread.join(TERMINATE)
        for lines in (self.process.stdout, self.process.stderr):
            if lines is not None:
                lines.close()


class Supervisor:
    """Wait for processes, and end all of them when one fails or the user asks for it.

    Parameters
    ----------
    workers
        The processes.
    now, pause
        The time in seconds, and a function that waits for some seconds.
    """

    def __init__(
        self,
        workers: Sequence[Supervised],
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.workers, self.now, self.pause = workers, now, pause
        self.codes: dict[int, int] = {}  # exit codes by index, in the order in which they ended
        self.schedule: list[tuple[float, int]] = []  # times, and the signals to send then
        self.stopped_since: dict[int, float] = {}
        self.stopped: int | None = None  # the process that was stopped for too long
        self.asked: int | None = None  # the signal by which the user asked for an end
        self.has_failed = self.has_reported = False
        self.failed_at = 0.0
        self.has_sent = False  # SIGTERM or SIGKILL
        self.ended_here: set[int] = set()  # the processes that ended by them

    # ------------------------------------------------------------------ signals of the user

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM in this context."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle(self, number: int, frame: Any = None) -> None:
        """Send the first Ctrl-C to all processes; end them after a second one, or a SIGTERM."""
        is_first = self.asked is None
        self.asked = number
        if is_first and number == signal.SIGINT:
            self._send(signal.SIGINT)
            return
        self._send(signal.SIGTERM)
        self.schedule.append((self.now() + KILL, signal.SIGKILL))

    def _send(self, number: int) -> None:
        self.has_sent = self.has_sent or number != signal.SIGINT
        for worker in self.workers:
            worker.send(number)

    # ------------------------------------------------------------------ the processes

    def wait(self) -> int:
        """Return the exit code of the whole when all processes have ended."""
        while not self._all_ended():
            self._look_for_stopped()
            # where all fail alike, each has printed its error by then
            if self.has_failed and self.now() - self.failed_at >= SAME_TIME:
                self._report()
            for time_due, number in self.schedule:
                if self.now() >= time_due:
                    self._send(number)
            self.schedule = [entry for entry in self.schedule if self.now() < entry[0]]
            self.pause(POLL)
        if self.has_failed:
            self._report()
        return self._exit_code()

    def _all_ended(self) -> bool:
        """Note which processes have ended, and prepare the end of the others if one has failed."""
        for worker in self.workers:
            code = worker.code
            if code is not None and worker.index not in self.codes:
                self.codes[worker.index] = code
                if self.has_sent and code in (-signal.SIGTERM, -signal.SIGKILL):
                    self.ended_here.add(worker.index)
        if any(self.codes.values()) and not self.has_failed:
            self._fail(SAME_TIME + GRACE)
        return len(self.codes) == len(self.workers)

    def _fail(self, grace: float) -> None:
        """Let the others end by themselves for a while, then end them."""
        self.has_failed = True
        self.failed_at = now = self.now()
        self.schedule.append((now + grace, signal.SIGTERM))
        self.schedule.append((now + grace + TERMINATE, signal.SIGKILL))

    def _look_for_stopped(self) -> None:
        for worker in self.workers:
            if not worker.is_stopped:
                self.stopped_since.pop(worker.index, None)
                continue
            since = self.stopped_since.setdefault(worker.index, self.now())
            if self.now() - since >= STOPPED and self.stopped is None:
                self.stopped = worker.index
                if not self.has_failed:
                    self._fail(0.0)

    # ------------------------------------------------------------------ what is said

    def _cause(self) -> int | None:
        """Return the index of the process that failed first, and not because of another one."""
        failed = [index for index, code in self.codes.items() if code]
        by_themselves = [index for index in failed if index not in self.ended_here]
        causes = [index for index in by_themselves if self.codes[index] not in CONSEQUENCES]
        return next(iter(causes or by_themselves or failed), None)

    def _exit_code(self) -> int:
        cause = self._cause()
        code = 0 if cause is None else self.codes[cause]
        if self.asked is not None and code in (-signal.SIGTERM, -signal.SIGKILL):
            code = -self.asked
        return code if code >= 0 else 128 - code  # the convention of shells for signals

    def _report(self) -> None:
        """Print which process failed, once; not where each failed by itself with a message."""
        if self.has_reported:
            return
        self.has_reported = True
        count, cause = len(self.workers), self._cause()
        running = [worker.index for worker in self.workers if worker.index not in self.codes]
        if self.stopped is not None:
            text = f"process {self.stopped} of {count} has been stopped for {STOPPED:g} seconds"
        elif cause is None or (self.asked is not None and not running):
            return
        elif self.codes[cause] in CONSEQUENCES and running:
            names = ", ".join(map(str, running))
            text = f"process {cause} of {count} waited without success for process {names}"
        elif self.codes[cause] < 0 or running:
            text = f"process {cause} of {count} ended with {_describe(self.codes[cause])}"
        else:
            return
        print(f"cfgd launch: {text}; the other processes end, too.", file=sys.stderr, flush=True)


def _copy_lines(lines: IO[bytes], to: IO[str], index: int) -> None:
    for line in lines:
        to.write(f"[{index}] {line.decode(errors='replace')}")
        to.flush()


def _describe(code: int) -> str:
    return f"code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
