"""`cfgd launch`: several processes on this machine, for trying; they live and die together."""

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

# seconds that processes have to say their last words when one of them has failed, that they have to
# end when they are told to, and within which they end with the one that failed
GRACE, LAST, AT_ONCE = 10.0, 4.0, 1.0
LOOK = 0.05


def launch(command: Sequence[str], count: int, only_errors: bool = False) -> int:
    """Run the command in so many processes; the exit code of the first that failed, or 0.

    Process 0 has the terminal; lines of the others come with their number before them, or
    `only_errors` of theirs. Ctrl-C goes to all. When one fails, the others end within 15 seconds.
    """
    address = f"127.0.0.1:{free_port()}"
    workers = [_Worker(command, address, count, index, only_errors) for index in range(count)]
    with _signals_go_to(workers):
        failed = _wait(workers)
        _all_ended(workers, AT_ONCE)  # where all fail alike, each has said why
        if failed is not None and (failed.code < 0 or not _all_ended(workers, 0)):
            words = f"process {failed.index} of {count} ended with {_ending(failed.code)}"
            print(f"cfgd launch: {words}; the others end, too.", file=sys.stderr, flush=True)
        _end(workers)
    for worker in workers:
        worker.close()
    code = 0 if failed is None else failed.code
    return code if code >= 0 else 128 - code  # as shells say it


def as_words(options: Mapping[str, Any]) -> list[str]:
    """Options as they stand on a command line.

    >>> as_words({"--l2": 0.5, "--loss": None, "--drop": ["a", "b"], "--resume": True})
    ['--l2=0.5', '--drop=a', '--drop=b', '--resume']
    """
    found: list[str] = []
    for name, value in options.items():
        if value is True:
            found.append(name)
        elif value is not None and value is not False:
            several = value if isinstance(value, list | tuple) else [value]
            found += [f"{name}={one}" for one in several]
    return found


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class _Worker:
    def __init__(
        self, command: Sequence[str], address: str, count: int, index: int, only_errors: bool
    ) -> None:
        own = {COORDINATOR: address, COUNT: str(count), INDEX: str(index)}
        apart: dict[str, Any] = {}
        if index:
            apart = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if index and only_errors:
            apart["stdout"] = subprocess.DEVNULL
        self.index = index
        # in a session of its own: Ctrl-C comes from here alone, and once
        self.process = subprocess.Popen(
            command,
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **apart,
        )
        pairs = ((self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr))
        self.threads = [
            threading.Thread(target=_pass_on, args=(lines, to, index), daemon=True)
            for lines, to in pairs
            if lines is not None
        ]
        for thread in self.threads:
            thread.start()

    @property
    def code(self) -> Any:
        """None while it runs."""
        return self.process.poll()

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def close(self) -> None:
        for thread in self.threads:
            thread.join(LAST)
        for lines in (self.process.stdout, self.process.stderr):
            if lines is not None:
                lines.close()


def _pass_on(lines: IO[bytes], to: Any, index: int) -> None:
    for line in lines:
        to.write(f"[{index}] {line.decode(errors='replace')}")
        to.flush()


def _wait(workers: list[_Worker]) -> _Worker | None:
    """Until all have ended well, or one has not."""
    while True:
        codes = [worker.code for worker in workers]
        failed = [worker for worker, code in zip(workers, codes, strict=True) if code]
        if failed:
            return failed[0]
        if all(code == 0 for code in codes):
            return None
        time.sleep(LOOK)


def _end(workers: list[_Worker]) -> None:
    """By itself, or told to, or killed."""
    for number, seconds in ((0, GRACE), (signal.SIGTERM, LAST), (signal.SIGKILL, LAST)):
        for worker in workers:
            worker.send(number)
        if _all_ended(workers, seconds):
            return


def _all_ended(workers: list[_Worker], seconds: float) -> bool:
    """Within so long."""
    end = time.monotonic() + seconds
    while any(worker.code is None for worker in workers):
        if time.monotonic() >= end:
            return False
        time.sleep(LOOK)
    return True


@contextlib.contextmanager
def _signals_go_to(workers: list[_Worker]) -> Iterator[None]:
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


def _ending(code: int) -> str:
    return f"code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
