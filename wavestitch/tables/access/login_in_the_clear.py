"""A login to a REST catalog goes to the servers that the settings name, and never crosses a network without TLS.

Asked twice: of the settings before anything is opened, and of each request where it is sent, since a server's answers
name addresses, too. Opens nothing; says no secret.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.redaction import is_secret
from wavestitch.contracts.web_address import is_here


def refuse_login_in_the_clear(
    name: str, uri: str, properties: Mapping[str, str], *, referred: Collection[str] = ()
) -> None:
    """Raises `BadInput` where a token, a password or a header that is one would be sent beyond this machine as it is.
    `uri`: the catalog's; its server for tokens is looked at, too. `referred`: values that stood by reference, which
    are logins whatever their key is: its own, too."""
    Servers.of(name, uri, properties, referred=referred)


@dataclass(frozen=True, slots=True)
class Servers:
    """Those that requests of one catalog may go to, by scheme, host and port."""

    name: str
    known: frozenset[tuple[str, str, int]]

    @classmethod
    def of(cls, name: str, uri: str, properties: Mapping[str, str], *, referred: Collection[str] = ()) -> Servers:
        """Raises `BadInput` where one of them is reached in the clear, and a login goes there. `referred`: values that
        stood by reference."""
        addresses = (("uri", uri), ("oauth2-server-uri", properties.get("oauth2-server-uri", "")))
        try:
            split = [(what, urlsplit(address)) for what, address in addresses]
            known = frozenset(_server(found) for _, found in split if found.netloc)
        except ValueError:  # not with what it says: the address may hold a password
            raise BadInput(f"catalog {name}: its address is none; see [tables] in the settings") from None
        for key, value in properties.items():
            if (is_secret(key) or key.lower().startswith("header.")) and not value.isprintable():
                raise BadInput(
                    f"catalog {name}: property {ascii(key)[:120]} is not one line of printable characters, as a login "
                    "or a header is; look at what it refers to"
                )
        strange = next((what for what, found in split if found.scheme.lower() not in ("", "http", "https")), None)
        if strange is not None or not split[0][1].netloc:
            raise BadInput(
                f"catalog {name}: its {strange or 'uri'} is no address of a REST catalog; write it as https://HOST/PATH"
            )
        logs_in = any(is_secret(key) or value in referred for key, value in (*properties.items(), ("uri", uri)))
        logs_in = logs_in or any(_may_log_in(found) for _, found in split)
        for what, found in split:
            if logs_in and found.scheme.lower() == "http" and not is_here(found.hostname or ""):
                raise BadInput(
                    f"catalog {name}: its {what} is plain http beyond this machine, and a login goes there (whatever "
                    "[tables] has by reference counts as one, and so do parameters of an address); use https, or take "
                    "the login out of [tables]"
                )
        return cls(name, known)

    def check(self, address: str) -> None:
        """Raises `BadInput` before a request goes to a server that the settings do not name."""
        found = _server(urlsplit(address))
        if found not in self.known:
            raise BadInput(
                f"catalog {self.name}: a request to {found[0]}://{found[1]}:{found[2]} was not sent: [tables] does not "
                "name that server; if it is the catalog's, write its address as uri or oauth2-server-uri"
            )

    def check_answer(self, status: int, location: str | None) -> None:
        """Raises `BadInput` for an answer that sends us on: no request is repeated elsewhere, with its login."""
        if location is not None and 300 <= status < 400:
            where = "nowhere that there is"
            with suppress(ValueError):
                where = _server(urlsplit(location))[1] or "another path"
            raise BadInput(
                f"catalog {self.name}: the server sends its clients on (status {status}) to {ascii(where)[:120]}; that "
                "is not followed: write the address that it should be as uri in [tables]"
            )


def _may_log_in(address: SplitResult) -> bool:
    """A user, or parameters: any of them may be a key, whatever it is called."""
    return "@" in address.netloc or bool(address.query or address.fragment)


_PORTS = {"http": 80, "https": 443}


def _server(address: SplitResult) -> tuple[str, str, int]:
    scheme = address.scheme.lower()
    return scheme, (address.hostname or "").lower(), address.port or _PORTS.get(scheme, 0)
