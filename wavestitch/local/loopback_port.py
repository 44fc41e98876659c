"""Free TCP ports on the loopback address. A port is only free when asked: whoever binds it must be ready to lose."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

LOOPBACK = "127.0.0.1"

_FIRST = 10_000
_SOURCE_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """`count` different ports that were free a moment ago.

    Where there is room, none of those the kernel gives to outgoing connections: while a server of such a port is
    down, any connection may be given its port, even one that tries to reach it and so reaches itself, and the server
    cannot come back to where its clients look for it.
    """
    room = range(_FIRST, int(_SOURCE_PORTS.read_text().split()[0]))
    candidates = iter(random.sample(room, min(len(room), 50 * count)))
    with ExitStack() as held:
        return [_hold(held, candidates) for _ in range(count)]


def is_free(port: int) -> bool:
    """Whether a server could bind this port now (connections that are still closing do not count, as for a server)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _hold(held: ExitStack, candidates: Iterator[int]) -> int:
    """Bind the next candidate that is free; the kernel's own choice (port 0) when none is left."""
    while True:
        port = next(candidates, 0)
        mine = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        try:
            mine.bind((LOOPBACK, port))
        except OSError:
            if port == 0:
                raise
            continue
        return int(mine.getsockname()[1])
