"""How much a stream may hold. Pure; drops no chunk of a waveform (I1).

Chunks of waveforms beyond the limits stop the batch, by the place that they come from, with the ways out. Records that
are no chunks never do, whoever sends them and however many: beyond `max_junk_bytes` they are held by place, length,
digest and reason, so that every offset is explained, and their bytes are left in the log, for as long as that keeps
them. What was decided follows from plan, decision and mark alone, so that a second attempt stages the same rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from wavestitch.contracts.accepted_skip import accepting
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.fates import Hold
from wavestitch.contracts.held import HeldKey
from wavestitch.contracts.held_mark import AFTER_DISCARD, HeldMark
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Stream

if TYPE_CHECKING:
    # Only for annotations: whoever plans needs no columns, which are slow to load.
    from wavestitch.contracts.decided import Decision


def check_quota(plan: Plan, decision: Decision, held: HeldMark | None) -> frozenset[HeldKey]:
    """The records that are no chunks whose bytes are not kept. Raises `Refused` where the batch's chunks would be more
    than the stream's limits let it hold.

    An operator's decision is never refused: it is one of the ways out.
    """
    if plan.choice is not None:
        return frozenset()
    _refuse_beyond(plan, decision, held)
    junk = (h for h in decision.holds if not h.chunk.carried and h.chunk.reason is not None)
    room = plan.stream.limits.max_junk_bytes - (held.junk_bytes if held is not None else 0)
    return frozenset(_without_room(junk, room))


def _without_room(junk: Iterable[Hold], room: int) -> Iterable[HeldKey]:
    """In order of their places the first are kept whole; after the first one that finds no room, none is."""
    for h in junk:
        room = room - h.chunk.length if room >= h.chunk.length else -1
        if room < 0:
            yield h.chunk.key


def _refuse_beyond(plan: Plan, decision: Decision, held: HeldMark | None) -> None:
    fresh = [h for h in decision.holds if not h.chunk.carried and h.chunk.reason is None]
    limits = plan.stream.limits
    # What is held after the batch: what it publishes is released by it. Beyond a limit already, it may only shrink.
    rows, most_rows = decision.waveform_rows, max(limits.max_held_rows, held.waveform_rows if held is not None else 0)
    size, most_bytes = decision.held_bytes, max(limits.max_held_bytes, held.chunk_bytes if held is not None else 0)
    if not fresh or (rows <= most_rows and size <= most_bytes):
        return
    worst, count = Counter(h.chunk.partition for h in fresh).most_common(1)[0]
    here = [h for h in fresh if h.chunk.partition == worst]
    first, last = min(h.chunk.offset for h in here), max(h.chunk.offset for h in here)
    why = ", ".join(f"{n} {reason}" for reason, n in Counter(h.reason.value for h in here).most_common(3))
    name = plan.stream.name
    skipped = OffsetRange(worst, plan.begins.get(worst, first), Offset(last + 1))
    raise Refused(
        f"stream {name}: with this batch {rows} rows in {size} bytes would be held; allowed are {limits.max_held_rows} "
        f"and {limits.max_held_bytes}. Most of the new ones, {count}, are of partition {worst}, offsets {first} to "
        f"{last} ({why}): stop what sends them. Then raise limits.max_held_rows or max_held_bytes, give up what waits "
        f"in vain with `wavestitch held {name} discard --reason … --why … --apply`, {_of_discarded(decision, name)}"
        f"{_good_ones(plan, fresh)}or skip all up to there by name with `wavestitch rewind {name} --to {worst}:"
        f"{skipped.end}{accepting([skipped])} --apply`",
        partition=worst,
        first=first,
        last=last,
    )


def _of_discarded(decision: Decision, name: str) -> str:
    if not decision.held_counts.get(AFTER_DISCARD):
        return ""
    return (
        f"or what came under discarded ids since with `wavestitch held {name} restore ID --why …`, then `discard` "
        "(nobody has decided about that, so it counts), "
    )


def _good_ones(plan: Plan, fresh: Iterable[Hold]) -> str:
    """What of the batch can be taken in. Each of its partitions is named with where it has to end: what is left out
    would be read to its own end, and stop the next batch."""
    name, ends = plan.stream.name, {r.partition: r.end for r in plan.ranges}
    firsts: dict[Partition, Offset] = {}
    for h in fresh:
        p, at = h.chunk.partition, h.chunk.offset
        firsts[p] = min(at, firsts.get(p, at))
    others = {p: end for p, end in ends.items() if p not in firsts}
    said = ""
    if others:
        only = ",".join(map(str, sorted(others)))
        run = f"`wavestitch run {name} --partitions {only} --until {_places(others)}`"
        said += f"take the other partitions in with {run}, "
    if any(r.start < firsts.get(r.partition, r.start) for r in plan.ranges):
        until = _places({**others, **firsts})
        said += f"take in what comes before them with `wavestitch run {name} --until {until}`, "
    return said


def _places(offsets: Mapping[Partition, Offset]) -> str:
    return ",".join(f"{p}:{at}" for p, at in sorted(offsets.items()))


def places_of(keys: Iterable[HeldKey]) -> dict[str, list[int]]:
    """Per partition: how many, the first offset and the one after the last."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for (_, partition, offset), _ in keys:
        offsets[partition].append(offset)
    return {str(p): [len(found), min(found), max(found) + 1] for p, found in sorted(offsets.items())}


def said_of_places(without_bytes: Mapping[str, Sequence[int]]) -> str:
    """For people, what `places_of` found; empty where that is nothing."""
    if not without_bytes:
        return ""
    where = "; ".join(f"{n} of partition {p}, offsets {a} to {b - 1}" for p, (n, a, b) in without_bytes.items())
    total = sum(n for n, _, _ in without_bytes.values())
    return (
        f"{total} records that are no chunks were held without their bytes, since limits.max_junk_bytes is reached "
        f"({where}): stop what sends them"
    )


def said_of_junk(stream: Stream, held: HeldMark | None, recent: Iterable[BatchRow]) -> str:
    """For people: that no more bytes of records that are no chunks are kept, and where the newest came from; empty
    where there is room. `recent`: the history, newest first."""
    limit = stream.limits.max_junk_bytes
    last = next((row for row in recent if row.without_bytes), None)
    if held is None or (held.junk_bytes < limit and last is None):
        return ""
    newest = "" if last is None else f" By batch {last.plan_id[:16]}, {said_of_places(last.without_bytes)}."
    return (
        f"records that are no chunks take {held.junk_bytes} bytes of the {limit} that limits.max_junk_bytes allows; "
        f"beyond it they are held without their bytes, which the log has until its retention passes them.{newest} They "
        f"expire after `junk` of [maintain]; `wavestitch maintain {stream.name} --only junk` shows which"
    )
