"""The rewind that a refusal names as its way out, read from its sentence as an operator reads it."""

from __future__ import annotations

import re

from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Target

_TARGET = re.compile(r"`wavestitch rewind \S+ --to (\S+?)(?: [^`]*)?`")
_BEST = ("new-topic", "head", "rebuilt", "start-over")
"""What loses least comes first; whatever else is named comes after."""


def way_out(advice: str) -> Target | None:
    """The named target that skips least; None where the sentence names no rewind."""
    found = _TARGET.findall(advice)
    if not found:
        return None
    return rewind_target(min(found, key=_rank))


def _rank(to: str) -> int:
    word = to.rpartition(":")[2]
    return _BEST.index(word) if word in _BEST else len(_BEST)
