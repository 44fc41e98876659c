"""Whether what a stream sends can be queried as soon as the stream declares. Pure.

Two things are judged, since either alone is quiet where the other one is loud: what batches have published lately, by
how long each waveform waited from the record time of its last chunk to the commit; and what nobody has read yet, by how
old it is. Neither counts what is read again on purpose (rewinds, backfills, decisions), nor what is held. It is as true
as the record times: the broker's, or those that producers set, and whoever is told is told whose.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs, Milliseconds, Offset, Partition, Seconds, lately, milliseconds
from wavestitch.contracts.rewind_preview import length

ALLOWED = 0.01
"""What is declared is a p99: so large a part of the waveforms may wait longer."""
SPARE = 0.05
"""By so much it must be fresher than declared before it counts as fresh again, so that nobody is told to and fro."""
WINDOW = Seconds(3600)
"""What was published in the last hour counts, or in as long as is declared where that is more."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the waveforms waited that a batch read for the first time and published: from the record time of the
    last chunk to the commit, in seconds; below 0 where record times are of a clock that is ahead. `late`: how many of
    them longer than `declared_s`, which the stream declared; 0 where that is None."""

    waveforms: int
    late: int
    declared_s: Seconds | None
    p50_s: float
    p99_s: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class Freshness:
    """`late` of `waveforms`, those that the window's batches published, waited longer than `declared_s`; `p99_s`: of
    the newest of these batches, None where there is none. `unread_s`: how old the first record is that nobody has read,
    in `partition`; None where there is none, or it has no time; less than 0 by a clock that is ahead. `known`: of all
    partitions; else what waits may be older, since it could not be looked at. `alarmed`: it is later than declared.
    `by_broker`: whether record times are the broker's. `at_gate`: the batch that stands at a closed gate, or nothing.
    """

    declared_s: Seconds
    alarmed: bool = False
    waveforms: int = 0
    late: int = 0
    p99_s: float | None = None
    unread_s: float | None = None
    partition: Partition | None = None
    known: bool = True
    by_broker: bool = True
    at_gate: str = ""


def judge_freshness(
    declared: Seconds,
    past: Iterable[tuple[EpochMs, Waits]],
    ages: Mapping[Partition, Milliseconds],
    *,
    hidden: Collection[Partition] = (),
    now: EpochMs,
    told: bool = False,
    by_broker: bool = True,
    at_gate: str = "",
) -> Freshness:
    """`past`: when ingests were committed and how long their waveforms waited, newest first; what they were not
    promised by this declaration does not count. `ages`: of the first record of each partition that nobody has read; at
    least so old where it is `hidden`. `told`: whether it was told that it is late."""
    window = max(milliseconds(WINDOW), milliseconds(declared))
    waits = [w for at, w in past if w.declared_s == declared and lately(at, within=window, now=now)]
    waveforms, late = sum(w.waveforms for w in waits), sum(w.late for w in waits)
    oldest = max(ages, key=lambda p: (ages[p], -p), default=None)
    unread_s = None if oldest is None else ages[oldest] / 1000
    spare = 1 - SPARE if told else 1.0
    published_late = late > spare * ALLOWED * waveforms
    waits_long = unread_s is not None and unread_s > spare * declared
    return Freshness(
        declared_s=declared,
        alarmed=published_late or waits_long,
        waveforms=waveforms,
        late=late,
        p99_s=waits[0].p99_s if waits else None,
        unread_s=unread_s,
        partition=oldest,
        known=not hidden,
        by_broker=by_broker,
        at_gate=at_gate,
    )


def read_before(heads: Sequence[Head], topic_id: str) -> dict[Partition, Offset]:
    """How far each partition was read under any head, newest first: what lies before that is read again on purpose. Of
    heads of other topics nothing."""
    # Within a generation positions only go forward: its last head says how far it came.
    last = [*heads[:1], *(older for newer, older in pairwise(heads) if newer.generation != older.generation)]
    found: dict[Partition, Offset] = {}
    for head in last:
        for p, at in head.positions.items() if head.topic_id == topic_id else ():
            found[p] = max(found.get(p, Offset(0)), at.next_offset)
    return found


def say_freshness(stream: str, of: Freshness | None, *, stands: str = "") -> tuple[str, str]:
    """What is told: a line, and the whole with what to do. `stands`: why no batch of it can be started, where that is
    known."""
    if of is None:
        return f"{stream}: declares no freshness any more", "Nothing is to be done."
    declared = length(of.declared_s)
    if not of.alarmed:
        return (
            f"{stream}: is as fresh as it declares again ({declared})",
            f"{said_of_waits(of)}. Nothing is to be done.",
        )
    return (
        f"{stream}: is later than the {declared} that it declares",
        f"{said_of_waits(of)}. {_todo(stream, of, stands)}",
    )


def said_of_freshness(of: Freshness) -> str:
    """For a line about the whole stream."""
    sure = "" if of.alarmed or of.known else "as far as can be seen "
    return f"{sure}{'later than' if of.alarmed else 'as fresh as'} declared: {said_of_waits(of)}"


def said_of_waits(of: Freshness) -> str:
    """What was seen, beside what was declared, as half a sentence."""
    declared = length(of.declared_s)
    said = []
    if of.waveforms:
        said.append(
            f"{of.late} of {of.waveforms} waveforms published lately waited longer than {declared} from their last "
            f"chunk to the commit ({ALLOWED:.0%} may; the newest batch's p99 is {_short(of.p99_s)})"
        )
    if of.unread_s is not None:
        ahead = of.unread_s < 0
        age = f"has a time {_short(-of.unread_s)} ahead" if ahead else f"is {_short(of.unread_s)} old"
        said.append(f"the first unread record, in partition {of.partition}, {age}")
    elif of.known:
        said.append("nothing waits to be read for the first time")
    if not of.known:
        said.append("what is unread may be older than can be seen (that takes the right Read on the topic)")
    clock = "the broker's clock" if of.by_broker else "the clocks of producers (the topic takes their CreateTime)"
    return f"{', and '.join(said)}, by {clock}"


def _todo(stream: str, of: Freshness, stands: str) -> str:
    if of.at_gate:
        return (
            f"Batch {of.at_gate[:16]} stands at a closed gate, and no ingest goes past it: `wavestitch plan {stream}` "
            "names the ways to decide about it."
        )
    if stands:
        return f"It is not started, since {stands}. `wavestitch plan {stream}` asks again."
    if of.unread_s is None or of.unread_s <= of.declared_s:
        return (
            f"What waits is young: it has caught up. Where it comes again, start batches more often (`wavestitch run "
            f"{stream} --catch-up`), or declare a `freshness` that it can keep."
        )
    return (
        f"Start a batch now (`wavestitch run {stream} --catch-up`, or trigger its ingest), and see why none was (a "
        "paused DAG, a schedule that is rarer than what is declared?)."
    )


def _short(seconds: float | None) -> str:
    return "not known" if seconds is None else f"{seconds:.1f} s" if seconds < 60 else length(seconds)
