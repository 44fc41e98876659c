"""What the gate says about a batch's rows: which waveforms may not be published and why, and whether the batch stops.

Pure. A verdict only says; `decide` turns its failed waveforms into held ones, the validate step closes the gate.
Its sentences name columns, metrics and limits, never samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavestitch.contracts.versioned import Versioned

VERDICT_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """`failed`: waveform id → one sentence for each critical row-level expectation that its row did not meet.

    `closed`: one sentence for each critical expectation about the whole batch that failed; any stops the batch.
    `reported`: the same for severities warning and info, which stop nothing. `rows`, `expectations`: how many were
    looked at and evaluated; both 0 where there was nothing to look at. `docs`: the Data Docs' index, relative to the
    folder that holds the docs folder; None where none were made.
    """

    failed: Mapping[str, tuple[str, ...]]
    closed: tuple[str, ...]
    reported: tuple[str, ...]
    rows: int
    expectations: int
    docs: str | None = None

    def to_json(self) -> str:
        return VERDICTS.text(self)


def verdict_from_json(text: str) -> Verdict:
    """The verdict that `to_json` wrote; refused with `BadInput` where it is anything else."""
    return VERDICTS.read(text)


VERDICTS = Versioned(Verdict, "the verdict", "run the batch's validate step again", format=VERDICT_FORMAT)


@dataclass(frozen=True, slots=True)
class ClosedGate:
    """Kept with a batch that stands at a closed gate. `closed`: as in the verdict."""

    plan_id: str
    closed: tuple[str, ...]


CLOSED_GATES = Versioned(ClosedGate, "what is kept of a closed gate", "run the batch's validate step again")
