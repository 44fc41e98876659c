"""Addresses that are called on the web: whether one stays on this machine, and which may be told about a stream. Pure.

Looks at the address alone and asks nobody about its name. No sentence repeats a path or a login of it: either may be
the secret.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

_HTTPS_OR_HERE = "write https://HOST/PATH, or http:// on loopback alone"


def is_here(host: str) -> bool:
    """Whether a host is this machine's loopback."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def webhook_problem(address: str) -> str | None:
    """What keeps it from being called, as half a sentence with the way out; None where nothing does."""
    try:
        found = urlsplit(address)
        host, _ = found.hostname or "", found.port
    except ValueError:
        return f"is no address; {_HTTPS_OR_HERE}"
    if not address.isascii() or not address.isprintable() or " " in address:
        return f"has characters that no address has; {_HTTPS_OR_HERE}"
    if found.scheme not in ("http", "https") or not host:
        return f"is no address of the web; {_HTTPS_OR_HERE}"
    if "@" in found.netloc:
        return "holds a login; write that into `token`, by reference"
    if found.scheme == "http" and not is_here(host):
        return f"is plain http beyond this machine, where everybody on the way reads it; {_HTTPS_OR_HERE}"
    return None


def shown_webhook(address: str) -> str:
    """Whom it leads to, without the path: with many services that is the secret."""
    found = urlsplit(address)
    return f"{found.scheme}://{found.netloc.rpartition('@')[2]}/…"
