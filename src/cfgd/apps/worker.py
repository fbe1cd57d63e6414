"""Run a Python script as one process of `cfgd launch`.

`python -c "from cfgd.apps.worker import main; main()" SCRIPT ARGUMENT...` does what
`python SCRIPT ARGUMENT...` does, and `-m MODULE` in place of SCRIPT what `python -m MODULE` does,
with two differences. A process that fails ends at once with its exit code: JAX's shutdown at the
end of Python would wait for the other processes, which wait for this one. And a process does not
outlive `cfgd launch`.

This module imports nothing but the standard library: the script may still have to configure JAX.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from typing import NoReturn

# environment variable: a file descriptor that is closed when `cfgd launch` has ended
LIFELINE = "CFGD_LIFELINE"


def main() -> None:
    """Run the script or module in `sys.argv[1:]` as the main program."""
    end_with_launcher()
    sys.argv = sys.argv[1:]
    try:
        run()
    except SystemExit as error:
        code = exit_code(error)
        if code:
            exit_at_once(code)
        raise
    except BaseException as error:
        trace = error.__traceback__
        for _ in range(2):  # without the frames of this file
            trace = trace.tb_next if trace is not None and trace.tb_next is not None else trace
        sys.excepthook(type(error), error, trace)  # `cfgd.distributed.start` has set it
        exit_at_once(1)


def run() -> None:
    if sys.argv[0] == "-m":
        sys.argv = sys.argv[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    script = sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    # in the module that Python has for the main program: pickle and multiprocessing look there
    namespace = sys.modules["__main__"].__dict__
    namespace["__file__"] = script
    exec(code, namespace)


def exit_code(error: SystemExit) -> int:
    """Return the exit code of `sys.exit`; print its argument if it is a message, as Python does."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def exit_at_once(code: int) -> NoReturn:
    """Exit without waiting for other processes."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def end_with_launcher() -> None:
    """Kill this process and its children when the launcher has ended."""
    if LIFELINE not in os.environ:
        return
    lifeline = int(os.environ.pop(LIFELINE))
    os.set_inheritable(lifeline, False)

    def wait() -> None:
        os.read(lifeline, 1)  # returns at the end of the launcher, which writes nothing
        os.killpg(os.getpid(), signal.SIGKILL)  # `cfgd launch` has made it the leader of a group

    threading.Thread(target=wait, daemon=True).start()
