"""A forked child that answers, for the tests of what a fork must not break."""

import os
import signal
from collections.abc import Callable


def in_child(call: Callable[[], object]) -> str:
    """What `call()` gives, as text, in a forked child that has ten seconds for it; or its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)  # ends a child that waits for ever: nothing is read from it then
        try:
            said = str(call())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as stream:
        said = stream.read()
    os.waitpid(pid, 0)
    return said
