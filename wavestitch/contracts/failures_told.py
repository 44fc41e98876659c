"""Which failures of a DAG were told, so that one that comes again with every run is told once a day. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from wavestitch.contracts.quantities import EpochMs, Milliseconds, lately
from wavestitch.contracts.versioned import Versioned

AGAIN = Milliseconds(24 * 3_600_000)
# Offsets, counts, and what names a plan or its folder: each run has others. An id without a letter is a number, too.
_OF_ONE_RUN = re.compile(r"\b[0-9a-f]{12,}\b|\d+")


@dataclass(frozen=True, slots=True)
class FailuresTold:
    """By what failed and what it said, when that was told."""

    last_ms: dict[str, EpochMs] = field(default_factory=dict)

    def telling(self, task: str, sentence: str, *, now: EpochMs) -> FailuresTold | None:
        """With this failure told; None where it was told within a day. Numbers and ids make no other sentence."""
        what = hashlib.sha256(f"{task}\n{without_numbers(sentence)}".encode()).hexdigest()[:32]
        recent = {said: at for said, at in self.last_ms.items() if lately(at, within=AGAIN, now=now)}
        return None if what in recent else FailuresTold({**recent, what: now})


def without_numbers(sentence: str) -> str:
    """What two runs say of the same thing: numbers and ids make no other sentence."""
    return _OF_ONE_RUN.sub("#", sentence)


FAILURES = Versioned(FailuresTold, "what was told of failures", "delete the file: it is told again")
