"""Telling somebody: what happened to a stream and what to do, by every way that `[notify]` of the settings names.

The one place that calls out. Never raises, never holds up longer than the settings' time-out, and never says a secret:
whoever was about to tell something has work of its own to finish. Invariant: `True` means that every way took it, so
whoever must tell a thing once keeps it in mind only then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from wavestitch.contracts.errors import BadInput, Transient, WavestitchError
from wavestitch.contracts.harmless import harmless, harmless_lines
from wavestitch.contracts.web_address import webhook_problem
from wavestitch.settings import Notify, resolve_secret

Fact = str | int | float | bool | None
NO_FACTS: Mapping[str, Fact] = MappingProxyType({})
_MOST_SUBJECT = 200
_CALL = "calling the webhook of [notify]"

log = logging.getLogger(__name__)


def notify(ways: Notify, *, subject: str, text: str, facts: Mapping[str, Fact] = NO_FACTS) -> bool:
    """Whether everybody was told. `subject`: what happened, in a line; `text`: the whole, with what to do; `facts`: the
    same for programs."""
    said = _message(subject, text, facts)
    if ways.log:
        log.warning("%s: %s", said["subject"], " ".join(said["text"].splitlines()))
    if ways.webhook is None:
        return True
    try:
        _call(ways, ways.webhook, said)
    except WavestitchError as error:
        log.error("%s: the webhook was not told: %s", said["subject"], error.message)
        return False
    return True


def _message(subject: str, text: str, facts: Mapping[str, Fact]) -> dict[str, Any]:
    return {
        "subject": harmless(subject, most=_MOST_SUBJECT),
        "text": harmless_lines(text),
        "facts": {name: harmless(fact) if isinstance(fact, str) else fact for name, fact in facts.items()},
    }


def _call(ways: Notify, webhook: str, message: Mapping[str, Any]) -> None:
    address = resolve_secret(webhook)
    if problem := webhook_problem(address):
        raise BadInput(f"webhook of [notify] {problem}")
    token = "" if ways.token is None else resolve_secret(ways.token)
    if not token.isascii() or not token.isprintable():
        raise BadInput("token of [notify] is not one line of plain characters; look at what it refers to")
    ended: list[int | WavestitchError] = []
    # In a thread: a server that sends a byte now and then would keep every single wait short, and all of them endless.
    calling = threading.Thread(
        target=lambda: ended.append(_answer(address, token, message, ways.timeout)), name="webhook", daemon=True
    )
    calling.start()
    calling.join(ways.timeout)
    found = ended[0] if ended else Transient(f"{_CALL}: no answer in {ways.timeout} s; is it reached from here?")
    if isinstance(found, WavestitchError):
        raise found
    if not 200 <= found < 300:
        raise Transient(f"{_CALL}: it answered {found}, and was to answer 2xx; look at its address and `token`")


def _answer(address: str, token: str, message: Mapping[str, Any], seconds: int) -> int | WavestitchError:
    import httpx  # noqa: PLC0415 - slow to load, and DAG files are parsed again and again

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # Redirections are not followed, with or without the token; a proxy never gets what is for this machine.
    here = urlsplit(address).scheme == "http"
    try:
        with (
            httpx.Client(timeout=seconds, follow_redirects=False, trust_env=not here) as client,
            client.stream("POST", address, json=message, headers=headers) as response,
        ):
            return response.status_code
    except Exception as error:  # not with its text: that has the address
        return Transient(f"{_CALL}: no answer ({type(error).__name__}); is it reached from here?")
