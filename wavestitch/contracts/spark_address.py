"""The address of a Spark that is there already: `sc://HOST:PORT`, and over TLS `sc://HOST:PORT/;use_ssl=true`. Pure.

Whoever has the token of such a Spark runs code there: it goes over TLS, or nowhere beyond this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from wavestitch.contracts.web_address import is_here

DEFAULT_PORT = 15002
_LOOPBACK = "127.0.0.1"
_TLS = ";use_ssl=true"
_ALLOWED = f"write sc://HOST:PORT, and beyond this machine sc://HOST:PORT/{_TLS}; the token stands in `token`"


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """`host` without brackets. `tls`: the channel is TLS; without it, it is loopback's."""

    host: str
    port: int
    tls: bool

    @property
    def target(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"sc://{self.target}{f'/{_TLS}' if self.tls else ''}"


@dataclass(frozen=True, slots=True)
class RemoteSpark:
    """Where it is, and what it lets us in for."""

    address: SparkAddress
    token: str

    def __repr__(self) -> str:
        return f"RemoteSpark({self.address})"


def read_spark_address(text: str) -> SparkAddress:
    """Raises `ValueError` with half a sentence: what it is, and what is to be written."""
    try:
        found = urlsplit(text)
        host, port = found.hostname or "", found.port
    except ValueError:
        raise ValueError(f"is no address; {_ALLOWED}") from None
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"has characters that no address has; {_ALLOWED}")
    if "@" in found.netloc or "token" in text.lower().partition("//")[2].partition("/")[2]:
        raise ValueError(f"holds a login; {_ALLOWED}")
    if found.scheme != "sc" or not host or found.path not in ("", "/", f"/{_TLS}") or found.query or found.fragment:
        raise ValueError(f"is not the address of a Spark Connect server; {_ALLOWED}")
    tls = found.path.endswith(_TLS)
    if not tls and not is_here(host):
        raise ValueError(f"leads beyond this machine without TLS, where everybody on the way reads it; {_ALLOWED}")
    if not tls and host == "localhost":
        # By name the client tries ::1 first, where anybody on this machine may listen beside the Spark that is meant.
        host = _LOOPBACK
    return SparkAddress(host, DEFAULT_PORT if port is None else port, tls)
