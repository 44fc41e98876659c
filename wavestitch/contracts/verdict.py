"""What the gate says about a batch's rows: which waveforms may not be published and why, and whether the batch stops.

Pure. A verdict only says; `decide` turns its failed waveforms into held ones, the validate step closes the gate.
Its sentences name columns, metrics and limits, never samples.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from wavestitch.contracts.fates import Stitched
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


def would_publish(outcomes: Mapping[str, Stitched], failed: Container[str]) -> set[str]:
    """The waveform ids that a batch would publish: stitched, and not among those that the gate refused one by one."""
    return {i for i, stitched in outcomes.items() if stitched.reason is None and i not in failed}


def verdict_from_json(text: str) -> Verdict:
    """The verdict that `to_json` wrote; refused with `BadInput` where it is anything else."""
    return VERDICTS.read(text)


VERDICTS = Versioned(Verdict, "the verdict", "run the batch's validate step again", format=VERDICT_FORMAT)


@dataclass(frozen=True, slots=True)
class ClosedGate:
    """Kept with a batch that stands at a closed gate: the names of the verdict, and of the report of what it was about
    (None: nothing was stitched)."""

    plan_id: str
    report: str | None
    verdict: str


CLOSED_GATES = Versioned(ClosedGate, "what is kept of a closed gate", "run the batch's validate step again")
