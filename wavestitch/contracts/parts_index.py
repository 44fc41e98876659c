"""Which batches of a backfill have kept something of which waveforms: what each hands to those behind it, so that none
opens what all before it kept.

Of each waveform the beginning of its id's digest: where two begin alike, a file is opened in vain, and none is missed.
Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from wavestitch.contracts.seams import Parts
from wavestitch.contracts.versioned import Versioned

_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Keeper:
    """A batch and the waveforms of which it kept something: hex digits, 16 each, in one text."""

    plan_id: str
    ids: str

    def may_have(self, digests: Collection[str]) -> bool:
        return any(self.ids[n : n + _DIGITS] in digests for n in range(0, len(self.ids), _DIGITS))


@dataclass(frozen=True, slots=True)
class PartsIndex:
    """Of the batches up to one of them, those that kept something, in their order."""

    kept: tuple[Keeper, ...]

    def keepers(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The batches that may have kept something of one of these waveforms."""
        digests = {_digest(waveform_id) for waveform_id in ids}
        return tuple(dict.fromkeys(k.plan_id for k in self.kept if k.may_have(digests)))


PARTS_INDEX = Versioned(PartsIndex, "which batches of a backfill kept something", "backfill the interval again")


def index_of(parts: Parts, before: Iterable[PartsIndex]) -> PartsIndex:
    """What the one before knew, with what this batch keeps."""
    known = merged(before)
    ids = "".join(sorted({_digest(part.waveform_id) for part in parts.parts}))
    return PartsIndex((*known.kept, Keeper(parts.plan_id, ids))) if ids else known


def merged(found: Iterable[PartsIndex]) -> PartsIndex:
    """What several executions of a batch knew."""
    return PartsIndex(tuple(dict.fromkeys(keeper for index in found for keeper in index.kept)))


def _digest(waveform_id: str) -> str:
    return hashlib.sha256(waveform_id.encode()).hexdigest()[:_DIGITS]
