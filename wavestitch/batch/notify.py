"""Telling somebody: what happened to a stream and what to do, by every way that `[notify]` of the settings names.

Never raises, never holds up longer than the settings' time-out, and never says a secret: whoever was about to tell
something has work of its own to finish. Invariant: `True` means that every way took it, so whoever must tell a thing
once keeps it in mind only then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from wavestitch.batch.call_out import Callee, call_out
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.harmless import for_chat, harmless, harmless_lines
from wavestitch.settings_sections import Notify

Fact = str | int | float | bool | None
NO_FACTS: Mapping[str, Fact] = MappingProxyType({})
_MOST_SUBJECT = 200

log = logging.getLogger(__name__)


def notify(ways: Notify, *, subject: str, text: str, facts: Mapping[str, Fact] = NO_FACTS) -> bool:
    """Whether everybody was told. `subject`: what happened, in a line; `text`: the whole, with what to do; `facts`: the
    same for programs."""
    said = _message(subject, text, facts)
    if ways.log:
        log.warning("%s: %s", said["subject"], " ".join(said["text"].splitlines()))
    if ways.webhook is None:
        return True
    told = {**said, "subject": for_chat(said["subject"]), "text": for_chat(said["text"])}
    callee = Callee("webhook", "[notify]", ways.webhook, ways.token, ways.timeout)
    try:
        call_out(callee, json.dumps(told).encode(), "application/json")
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
