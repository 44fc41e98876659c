"""How much a stream may hold. Pure: says no with the place that it comes from, and the ways out; drops nothing (I1)."""

from __future__ import annotations

from collections import Counter

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.fates import Decision
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.plan import Plan


def check_quota(plan: Plan, decision: Decision, held: HeldMark | None) -> None:
    """Raises `Refused` where the batch's rows would be more than the stream's limits let it hold.

    An operator's decision is never refused: it is one of the ways out.
    """
    fresh = [h for h in decision.holds if not h.chunk.carried]
    if plan.choice is not None or not fresh:
        return
    limits = plan.stream.limits
    # Of what is really held: rows of what was released since lie in the table until maintenance.
    rows = (sum(held.counts.values()) if held is not None else 0) + len(fresh)
    size = (held.bytes if held is not None else 0) + sum(h.chunk.length for h in fresh)
    if rows <= limits.max_held_rows and size <= limits.max_held_bytes:
        return
    worst, count = Counter(h.chunk.partition for h in fresh).most_common(1)[0]
    here = [h for h in fresh if h.chunk.partition == worst]
    first, last = min(h.chunk.offset for h in here), max(h.chunk.offset for h in here)
    why = ", ".join(f"{n} {reason}" for reason, n in Counter(h.reason.value for h in here).most_common(3))
    name = plan.stream.name
    raise Refused(
        f"stream {name}: with this batch {rows} rows in {size} bytes would be held; allowed are {limits.max_held_rows} "
        f"and {limits.max_held_bytes}. Most of the new ones, {count}, are of partition {worst}, offsets {first} to "
        f"{last} ({why}): stop what sends them. Then raise limits.max_held_rows or max_held_bytes, let go of what is "
        f"old with `wavestitch maintain {name} --only snapshots,held,junk --apply`, take the other partitions in with "
        f"`--partitions`, or skip it by name with `wavestitch rewind {name} --to {worst}:{last + 1} --accept-skip "
        "--apply`",
        partition=worst,
        first=first,
        last=last,
    )
