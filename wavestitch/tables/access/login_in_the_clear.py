"""A login to a REST catalog never crosses a network without TLS. Opens nothing; says no secret."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.redaction import is_secret


def refuse_login_in_the_clear(name: str, uri: str, properties: Mapping[str, str]) -> None:
    """Raises `BadInput` where a token, a password or a header that is one would be sent beyond this machine as it is.
    `uri`: the catalog's; its server for tokens is looked at, too."""
    addresses = (("uri", uri), ("oauth2-server-uri", properties.get("oauth2-server-uri", "")))
    try:
        split = [(what, urlsplit(address)) for what, address in addresses]
    except ValueError:  # not with what it says: the address may hold a password
        raise BadInput(f"catalog {name}: its address is none; see [tables] in the settings") from None
    logs_in = any(is_secret(key) for key in properties) or "@" in split[0][1].netloc
    for what, found in split:
        if logs_in and found.scheme.lower() == "http" and not _is_here(found.hostname or ""):
            raise BadInput(
                f"catalog {name}: its {what} is plain http beyond this machine, and a login goes there; use https, or "
                "take the login out of [tables]"
            )


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
