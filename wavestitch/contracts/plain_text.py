"""Text that people write: reasons and notes. One line of at most 500 printable characters, and nothing else. Pure.

What a person says is copied into heads, held rows, logs and pages, so it is refused rather than shortened or repaired.
What strangers wrote, which cannot be refused any more, is made harmless where it is shown: `harmless`.
"""

from __future__ import annotations

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import harmless, is_plain, named

__all__ = ["ACCEPTED_MISSING", "MAX_SAID", "harmless", "name_of_person", "said_by_person"]

MAX_SAID = 500
ACCEPTED_MISSING = "accepted as missing: "
"""In the note of a head under which somebody went on without what was missing in the tables. In notes stand people's
reasons, too, and backfills go by these words: so nobody else may say them."""
_OF_HEADS = ACCEPTED_MISSING.rstrip(": ")
"""Without the colon: in a note one stands behind a name."""
_MAX_NAME = 100


def said_by_person(text: str | None, what: str) -> str:
    """What somebody wrote, without the space around it; empty where nothing was said. `what` names the field."""
    said = (text or "").strip()
    if len(said) > MAX_SAID:
        raise BadInput(
            f"{what} has {len(said)} characters; allowed are {MAX_SAID}: say it shorter, name a document for the rest"
        )
    if _OF_HEADS in said:
        raise BadInput(f"{what} has the words {_OF_HEADS!r}, which only a head that was made anew may say: reword it")
    odd = next((c for c in said if not is_plain(c)), None)
    if odd is not None:
        raise BadInput(
            f"{what} has the character {named(odd)} at place {said.index(odd) + 1}; allowed is one line of printable "
            "characters: leave it out"
        )
    return said


def name_of_person(name: str | None) -> str:
    """The name under which something is recorded. It comes from a login, so it is shown for what it is, not refused;
    it stands in notes, too, so what only a head may say is left out of it."""
    return harmless((name or "").strip(), most=_MAX_NAME).replace(_OF_HEADS, "…") or "somebody"


def check_utf8(text: str, *, of: str) -> str:
    """The text. Raises `BadInput` where it has half a character, as Python takes a byte that is no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        said = f"{of} has {text!r}, which is no text in UTF-8"
        raise BadInput(f"{said}; nothing here is called so: write it in UTF-8") from None
    return text
