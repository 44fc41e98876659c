"""What another definition of a stream would make of a range that is published: waveform by waveform, against the table.

    the table has    the range gives by that definition    it is
    a row            the same row                          same
    a row            another row                           differs, in named columns
    a row            something that it refuses             newly failing; accepted, where an operator had accepted it
    a row, or held   its chunks no more                    gone
    held             a whole waveform, refused by nothing  newly published; discarded, where that was decided
    held             something that it refuses             not published
    neither          anything                              missing in the table: no definition is the reason
    anything         not all of it, or of what is held     outside: it reaches over the range's edges

Samples are the producer's bits, whatever a definition says: it decides whether a waveform is published, and which
copies count. Pure; publishes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wavestitch.contracts.definition_since import differences
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.verification import Agreement, Compared


class Change(StrEnum):
    """What becomes of a waveform by another definition."""

    SAME = "same"
    DIFFERS = "differs"
    NEWLY_PUBLISHED = "newly published"
    NEWLY_FAILING = "newly failing"
    GONE = "gone"
    MISSING = "missing in the table"
    ACCEPTED = "accepted"
    DISCARDED = "discarded"
    NOT_PUBLISHED = "not published"
    OUTSIDE = "outside"


CHANGES = frozenset({Change.DIFFERS, Change.NEWLY_PUBLISHED, Change.NEWLY_FAILING})
"""What the definition makes otherwise."""

_PLAIN = {
    Agreement.SAME: Change.SAME,
    Agreement.NEWLY_FAILING: Change.NEWLY_FAILING,
    Agreement.MISSING_IN_KAFKA: Change.GONE,
    Agreement.NOT_FOUND: Change.GONE,
    Agreement.LOST: Change.GONE,
    Agreement.HELD_ALONE: Change.GONE,
    Agreement.MISSING_IN_TABLE: Change.MISSING,
    Agreement.SKIPPED: Change.OUTSIDE,
    Agreement.ACCEPTED: Change.ACCEPTED,
    Agreement.DISCARDED: Change.DISCARDED,
    Agreement.OUTSIDE: Change.OUTSIDE,
}


@dataclass(frozen=True, slots=True)
class Changed:
    """One waveform. `columns`: in which it differs. `plan_id`: of the batch that published it."""

    waveform_id: str
    change: Change
    why: str = ""
    columns: tuple[str, ...] = ()
    plan_id: str = ""


def changed(one: Compared) -> Changed:
    """Of a waveform that was compared while its range was stitched by the other definition."""
    change, why = _PLAIN.get(one.found), one.why
    if one.found is Agreement.DIFFERS:
        change = Change.DIFFERS if one.passes else Change.NEWLY_FAILING
    elif change is Change.NEWLY_FAILING and one.passes:
        change, why = Change.DIFFERS, f"{why}; what the range gives of it now is of other chunks"
    if change is None and not one.seen:
        change, why = Change.OUTSIDE, f"others of its held chunks were not read with it; {one.why}"
    if change is None:
        change = Change.NEWLY_PUBLISHED if one.passes else Change.NOT_PUBLISHED
        why = f"held for {one.why}" if one.passes else f"{one.refused}; held for {one.why}"
    return Changed(one.waveform_id, change, why, one.columns, one.plan_id)


def otherwise(before: Stream, after: Stream) -> tuple[str, ...]:
    """What one definition says otherwise than the other, as sentences, by the keys of its file. Raises `BadInput` for
    that of another stream."""
    for key in ("name", "topic", "group"):
        is_, said = getattr(before, key), getattr(after, key)
        if is_ != said:
            raise BadInput(
                f"the definition says {key}: {said}, stream {before.name} has {is_}: that is another stream, of which "
                f"nothing can be compared; leave {key} as it is"
            )
    return differences(before.model_dump(mode="json"), after.model_dump(mode="json"))


def counts_of_changes(found: Sequence[Changed]) -> dict[str, int]:
    """Waveforms by what becomes of them; each of the list is there."""
    seen = Counter(one.change for one in found)
    return {kind.value: seen[kind] for kind in Change}


def exit_code_of_changes(counts: Mapping[str, int]) -> int:
    """0: it changes nothing; 6: it changes something; 7: it changes nothing of what could be compared, which was not
    all, or there was nothing."""
    if any(counts.get(kind.value) for kind in CHANGES):
        return 6
    compared = sum(counts.get(kind.value, 0) for kind in (Change.SAME, Change.ACCEPTED, Change.NOT_PUBLISHED))
    return 7 if counts.get(Change.GONE.value) or counts.get(Change.MISSING.value) or not compared else 0


def changes_in_words(counts: Mapping[str, int]) -> str:
    """In one sentence, with the waveforms by what becomes of them."""
    verdicts = {
        0: "this definition would change nothing",
        6: "this definition WOULD CHANGE what is published",
        7: "no change, but not all could be compared",
    }
    shown = ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "no waveform"
    return f"{verdicts[exit_code_of_changes(counts)]}: {shown}"
