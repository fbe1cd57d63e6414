"""`cfgd launch`: run a command in several processes on this machine that end together."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from cfgd.distributed import COORDINATOR, COUNT, INDEX

# seconds
SAME_TIME = 1.0  # processes that end within this time of a failure have failed by themselves
GRACE = 10.0  # for the others to notice a failed process and to end by themselves
TERMINATE = 4.0  # after SIGTERM before SIGKILL, and for the last output lines
POLL = 0.05  # between checks of the processes


def launch(command: Sequence[str], count: int, only_errors: bool = False) -> int:
    """Run a command in `count` processes; return 0 or the exit code of the first that failed.

    Process 0 owns the terminal. Lines of the others are prefixed with their number; with
    `only_errors` only their stderr is shown. Ctrl-C is sent to all. When one process fails, the
    others end within 15 seconds.
    """
    address = f"127.0.0.1:{free_port()}"
    workers = [_Worker(command, address, count, index, only_errors) for index in range(count)]
    with _forward_signals(workers):
        failed = _wait(workers)
        _all_ended(workers, SAME_TIME)  # where all fail alike, each has printed its error
        code = 0 if failed is None else failed.process.returncode
        if failed is not None and (code < 0 or not _all_ended(workers, 0)):
            cause = f"process {failed.index} of {count} ended with {_describe(code)}"
            print(f"cfgd launch: {cause}; the others end, too.", file=sys.stderr, flush=True)
        _end_all(workers)
    for worker in workers:
        worker.close()
    return code if code >= 0 else 128 - code  # the convention of shells for signals


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


class _Worker:
    """One process, with threads that copy its output."""

    def __init__(
        self, command: Sequence[str], address: str, count: int, index: int, only_errors: bool
    ) -> None:
        environment = {COORDINATOR: address, COUNT: str(count), INDEX: str(index)}
        stdout = stderr = None  # process 0 inherits the terminal
        if index:
            stdout = subprocess.DEVNULL if only_errors else subprocess.PIPE
            stderr = subprocess.PIPE
        self.index = index
        # in a new session, so that the terminal does not send Ctrl-C a second time
        self.process = subprocess.Popen(
            command,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            stdout=stdout,
            stderr=stderr,
        )
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
        """The exit code, or None while the process runs."""
        return self.process.poll()

    def send(self, number: int) -> None:
        """Send a signal, if the process still runs."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def close(self) -> None:
        """Wait for the last lines of output."""
        for thread in self.threads:
            thread.join(TERMINATE)
        for lines in (self.process.stdout, self.process.stderr):
            if lines is not None:
                lines.close()


def _copy_lines(lines: IO[bytes], to: IO[str], index: int) -> None:
    for line in lines:
        to.write(f"[{index}] {line.decode(errors='replace')}")
        to.flush()


def _wait(workers: list[_Worker]) -> _Worker | None:
    """Wait until all processes have succeeded, or return the first that failed."""
    while True:
        codes = [worker.code for worker in workers]
        failed = [worker for worker, code in zip(workers, codes, strict=True) if code]
        if failed:
            return failed[0]
        if all(code == 0 for code in codes):
            return None
        time.sleep(POLL)


def _end_all(workers: list[_Worker]) -> None:
    """Wait for the processes to end, then terminate them, then kill them."""
    for number, seconds in ((0, GRACE), (signal.SIGTERM, TERMINATE), (signal.SIGKILL, TERMINATE)):
        for worker in workers:
            worker.send(number)
        if _all_ended(workers, seconds):
            return


def _all_ended(workers: list[_Worker], seconds: float) -> bool:
    """Return whether all processes end within so many seconds."""
    deadline = time.monotonic() + seconds
    while any(worker.code is None for worker in workers):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL)
    return True


@contextlib.contextmanager
def _forward_signals(workers: list[_Worker]) -> Iterator[None]:
    """Forward SIGINT and SIGTERM to all processes."""

    def send(number: int, frame: Any) -> None:
        for worker in workers:
            worker.send(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, send) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _describe(code: int) -> str:
    return f"code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
