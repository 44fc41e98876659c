"""The token that lets us in (SASL's OAUTHBEARER), from a file that somebody else writes anew before the token ends.

Read at each login and whenever the client asks, never kept: what is in the file then is what counts. When it ends is
taken from the token, where that is a JWT; whether it is genuine is the broker's to say. Never tells the token.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wavestitch.contracts.errors import BadInput, Terminal, WavestitchError
from wavestitch.kafka.client_log import client_log
from wavestitch.secret_reference import look_up

LONGEST_SECONDS = 60.0
"""So long a token is believed at most; the client asks for the next one after four fifths of it. One that was taken
back and replaced before its end, and one that does not say when that is, is replaced by then, too."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750. Any other character would have a meaning of its own in the exchange."""


@dataclass(frozen=True, slots=True)
class LoginToken:
    """`until`: seconds since 1970, when it is to be read anew at the latest."""

    text: str = field(repr=False)
    until: float


def read_token(reference: str, *, now: float) -> LoginToken:
    """The token that is there now. Raises `BadInput` where none is, `Terminal` where it has ended."""
    where = "the token of [kafka]"
    try:
        text = look_up(reference, where=where).decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if not _TOKEN.fullmatch(text):
        raise BadInput(f"{where} by {reference} is no token (RFC 6750); let the file hold it and nothing else")
    ends = _ends(text)
    if ends is not None and ends <= now:
        raise Terminal(
            f"{where} by {reference} ended {now - ends:.0f} s ago; whoever writes that file has to write a new "
            "one, then try again",
            code="SASL_AUTHENTICATION_FAILED",
        )
    longest = now + LONGEST_SECONDS
    # In this order: of what is no number (NaN) it is the first.
    return LoginToken(text, longest if ends is None else float(min(longest, ends)))


def tells_token(reference: str) -> Callable[[str], tuple[str, float]]:
    """As the client asks for it (`oauth_cb`): from threads of its own, before a token's end and again after a failure,
    of which it says only that there was one."""

    def tell(_: str) -> tuple[str, float]:
        try:
            found = read_token(reference, now=time.time())
        except WavestitchError as error:
            client_log().error("%s", error.message)
            raise
        return found.text, found.until

    return tell


def _ends(token: str) -> float | None:
    """When a JWT says that it ends, in seconds since 1970; None of any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    said = claims.get("exp") if isinstance(claims, dict) else None
    return max(said, 0) if isinstance(said, int | float) and not isinstance(said, bool) else None
