"""A way to a host, whichever of its addresses is there: one that swallows what it is sent takes no other one's time."""

from __future__ import annotations

import socket
import time

_FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}


def reach(host: str, port: int, *, family: str, until: float) -> socket.socket:
    """A TCP connection. `family`: as `broker.address.family` has it; `until`: by `time.monotonic()`. Raises `OSError`
    with what the last address said, or `ValueError` for a name that is none."""
    found = socket.getaddrinfo(host, port, _FAMILIES.get(family, socket.AF_UNSPEC), socket.SOCK_STREAM)
    said: OSError = TimeoutError("the time for it is up")
    for n, (kind, _, protocol, _, address) in enumerate(found):
        share = (until - time.monotonic()) / (len(found) - n)
        if share <= 0:
            break
        tried = socket.socket(kind, socket.SOCK_STREAM, protocol)
        try:
            tried.settimeout(share)
            tried.connect(address)
        except OSError as error:
            tried.close()
            said = error
        else:
            return tried
    raise said
