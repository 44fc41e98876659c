"""One call to somebody whom the settings name, over https or on loopback. The one place that calls out.

Never takes longer than its time-out, never follows a redirection, and never says a secret: neither the token nor the
address, which may be one.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from wavestitch.contracts.errors import BadInput, Transient, WavestitchError
from wavestitch.contracts.quantities import Seconds
from wavestitch.contracts.web_address import is_here, webhook_problem
from wavestitch.secret_reference import resolve_secret

_THREAD = "wavestitch-call"
_OF_THE_CALL = ("httpx", "httpcore", "h11", "h2", "hpack", "anyio")
"""Loggers of what calls, with all below them."""


@dataclass(frozen=True, slots=True)
class Callee:
    """`what`: how a sentence names it; `section`: of the settings, where it stands. `address` and `token` may be
    references; `timeout`: for the whole of a call."""

    what: str
    section: str
    address: str
    token: str | None
    timeout: Seconds

    @property
    def calling(self) -> str:
        return f"calling the {self.what} of {self.section}"


def call_out(callee: Callee, content: bytes, media: str) -> None:
    """Raises `BadInput` where it may not be called, `Transient` where it did not answer with 2xx in time."""
    address = resolve_secret(callee.address)
    if problem := webhook_problem(address):
        raise BadInput(f"{callee.what} of {callee.section} {problem}")
    token = "" if callee.token is None else resolve_secret(callee.token)
    if not token.isascii() or not token.isprintable():
        raise BadInput(f"token of {callee.section} is not one line of plain characters; look at what it refers to")
    headers = {"Content-Type": media, **({"Authorization": f"Bearer {token}"} if token else {})}
    ended: list[int | WavestitchError] = []
    # In a thread: a server that sends a byte now and then would keep every single wait short, and all of them endless.
    calling = threading.Thread(
        target=lambda: ended.append(_answer(callee, address, headers, content)), name=_THREAD, daemon=True
    )
    calling.start()
    calling.join(callee.timeout)
    late = Transient(f"{callee.calling}: no answer in {callee.timeout} s; is it reached from here?")
    found = ended[0] if ended else late
    if isinstance(found, WavestitchError):
        raise found
    if not 200 <= found < 300:
        raise Transient(
            f"{callee.calling}: it answered {found}, and was to answer 2xx; look at its address and `token`"
        )


def _answer(callee: Callee, address: str, headers: dict[str, str], content: bytes) -> int | WavestitchError:
    import httpx  # noqa: PLC0415 - slow to load, and DAG files are parsed again and again

    # Redirections are not followed, with or without the token; a proxy never gets what is for this machine.
    here = is_here(urlsplit(address).hostname or "")
    try:
        with httpx.Client(timeout=callee.timeout, follow_redirects=False, trust_env=not here) as client:
            _say_nothing_of_the_call()  # what calls below it, and its loggers, are there once there is a client
            with client.stream("POST", address, content=content, headers=headers) as response:
                return response.status_code
    except Exception as error:  # not with its text: that has the address
        return Transient(f"{callee.calling}: no answer ({type(error).__name__}); is it reached from here?")


class _NotOfTheCall(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return threading.current_thread().name != _THREAD


_not_of_the_call = _NotOfTheCall()


def _say_nothing_of_the_call() -> None:
    """Whatever the process logs: httpx says each address whole (INFO), httpcore what is answered (DEBUG). What the rest
    of the process calls by them stays said."""
    for name in (*_OF_THE_CALL, *list(logging.root.manager.loggerDict)):
        if name.partition(".")[0] in _OF_THE_CALL:
            logging.getLogger(name).addFilter(_not_of_the_call)
