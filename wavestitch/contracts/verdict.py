"""What the gate says about a batch's rows: which waveforms may not be published and why, and whether the batch stops.

Pure. A verdict only says; `decide` turns its failed waveforms into held ones, the validate step closes the gate.
Its sentences name columns, metrics and limits, never samples.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wavestitch.contracts.errors import BadInput

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
        content = {
            "format": VERDICT_FORMAT,
            "failed": {waveform: list(why) for waveform, why in self.failed.items()},
            "closed": list(self.closed),
            "reported": list(self.reported),
            "rows": self.rows,
            "expectations": self.expectations,
            "docs": self.docs,
        }
        return json.dumps(content, indent=1, sort_keys=True)


def verdict_from_json(text: str) -> Verdict:
    """The verdict that `to_json` wrote; refused with `BadInput` where it is anything else."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("the verdict is not JSON; run the batch's validate step again") from None
    seen = found.get("format") if isinstance(found, dict) else None
    if seen != VERDICT_FORMAT:
        raise BadInput(
            f"the verdict has format {ascii(seen)[:80]}; this version reads {VERDICT_FORMAT}: run the batch's validate "
            "step again"
        )
    try:
        return Verdict(
            failed={waveform: _texts(why) for waveform, why in found["failed"].items()},
            closed=_texts(found["closed"]),
            reported=_texts(found["reported"]),
            rows=found["rows"],
            expectations=found["expectations"],
            docs=found["docs"],
        )
    except KeyError as missing:
        raise BadInput(f"the verdict lacks {missing}; run the batch's validate step again") from None
    except (AttributeError, TypeError):
        raise BadInput("a field of the verdict is of another kind; run the batch's validate step again") from None


def _texts(found: Any) -> tuple[str, ...]:
    # A closed gate that became an empty text would be an open one.
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise TypeError("not a list of texts")
    return tuple(found)
