"""Runs a command that ends when its starter does, however that one dies.

`end_with_parent.py STARTER-PID COMMAND ARGUMENT…`

A starter that is killed runs no clean-up, and the Spark app would go on writing for nobody. The kernel keeps this
promise through `exec`, so that the command takes this process's place.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str]) -> None:
    starter, command = int(argv[0]), list(argv[1:])
    # The app and its Python workers have samples in their memory, which no crash may write to a disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # SIGTERM and not SIGKILL: the JVM then removes its temporary folders.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != starter:
            raise SystemExit("the starter was gone before the command began")
    os.execv(command[0], command)  # noqa: S606  # an argv list; no shell


if __name__ == "__main__":
    main(sys.argv[1:])
