"""What libraries say of a catalog, without the secrets that it was opened with.

HTTP clients and drivers put addresses, headers and whole values into their errors, and errors go to terminals, logs and
pages. So what was looked up for a catalog is remembered in this process, and taken out wherever a foreign error becomes
one of ours, and of what the HTTP client logs; a foreign error that says one is not shown as its cause, either. Never
decides what an error means.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from wavestitch.contracts.redaction import MASK, SHOWN_PARAMETERS, is_secret, shown

_LEAST = 4
"""Shorter ones are no secrets, and words of every sentence."""
_LEAST_UNKNOWN = 8
"""Of a value that nobody calls a secret, and nobody calls none."""
_SAFE_IN_ADDRESSES = "!#$%&'()*+,/:;=?@[]~"
"""What an HTTP client leaves as it is in an address that it was given."""
_CLIENT = "urllib3"
_LOGGERS = ("connection", "connectionpool", "poolmanager", "response", "util.retry")
"""They say every request's path and parameters (DEBUG), and of one that is tried again the whole address (WARNING)."""
_unsaid: set[str] = set()


def leave_unsaid(uri: str, properties: Mapping[str, str], *, referred: Iterable[str] = ()) -> None:
    """From now on, in this process, what of this catalog may be a secret. `referred`: what stood by reference."""
    found = set(referred)
    for address in (uri, *(v for k, v in properties.items() if k.endswith("uri"))):
        found.update(_parts(address, whole=address in found))
    found.update(v for k, v in properties.items() if is_secret(k))
    found.update(v for k, v in properties.items() if shown(k, v) == MASK and len(v) >= _LEAST_UNKNOWN)
    for value in found:
        _unsaid.update(form for form in _forms(value) if len(form) >= _LEAST)
    # Loggers are the whole process's: they stay as they are where there is nothing to hide.
    for name in _LOGGERS if _unsaid else ():
        logging.getLogger(f"{_CLIENT}.{name}").addFilter(_leave_out)


def without_secrets(text: str) -> str:
    """The text, with a mark in the place of each."""
    for secret in sorted(_unsaid, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _leave_out(record: logging.LogRecord) -> bool:
    said = record.getMessage()
    if (rest := without_secrets(said)) != said:
        record.msg, record.args = rest, ()
    return True


def cause_of(error: BaseException) -> BaseException | None:
    """The error, where neither it nor what led to it says a secret: for `raise … from`."""
    return None if any(without_secrets(said) != said for said in _said(error)) else error


def _said(error: BaseException) -> Iterator[str]:
    known: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is not None and id(found) not in known:
            known.add(id(found))
            yield from (str(found), repr(found))
            waiting += [found.__cause__, found.__context__]


def _parts(address: str, *, whole: bool) -> Iterator[str]:
    """What of an address may be a secret: who logs in, what its parameters say; of one by reference the path, too."""
    with suppress(ValueError):
        found = urlsplit(address)
        user, mark, password = found.netloc.rpartition("@")[0].partition(":")
        yield password if mark else user
        yield from (v for k, v in parse_qsl(found.query) if k.lower() not in SHOWN_PARAMETERS)
        yield found.fragment
        if whole:
            yield from (user, found.query)
            yield from (said for said in (found.path, *found.path.split("/")) if len(said) >= _LEAST_UNKNOWN)


def _forms(value: str) -> Iterator[str]:
    """As libraries write it: a line of it, quoted for an address or for Python, or read out of an address."""
    for one in (value, *value.splitlines()):
        bare = one.strip()
        yield from (bare, quote_plus(bare), unquote(bare), repr(bare)[1:-1])
        yield from (quote(bare, safe=safe) for safe in ("/", "", _SAFE_IN_ADDRESSES))
