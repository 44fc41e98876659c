"""What a stream has come to, against what was produced: a case's counts, and every invariant that can be looked at.

Works from the ledger and the tables as they stand, and from how they came to that, which must be a way through the
protocol's model; knows nothing of the fault. What an operator gave up by name
(skipped ranges of a head) may be missing; nothing else may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.builders.published_bytes import rows_with_bytes
from tests.deployment_rig import STREAM, DeploymentRig
from tests.domain.oracle import truths
from tests.fakes.kept_partition import Record
from tests.faults.fault_class import Counts
from tests.faults.real_witness import looked_once
from tests.guarantees import Balanced, HeldRow, NoDuplicates, NoInvention, NoLoss, Passed, Row, Sight, furthest
from tests.guarantees_of_runs import Fenced, OffsetsLast
from tests.histories.events import Event
from tests.histories.tracing import follow
from wavestitch.tables.read_waveforms import read_waveforms

_COLUMNS = ["waveform_id", "sample_format", "samples", "chunks", "plan_id"]
_ALLOWED_LATENESS_MS = 3_600_000


def look_around(whole: DeploymentRig, records: Sequence[Record], topic_id: str) -> Sight:
    """The stream as seen from outside."""
    tables = whole.deployment.tables(STREAM)
    heads = tuple(reversed(tables.heads()))
    history = tuple(sorted(tables.batches(), key=lambda b: b.sequence))
    by_plan = {h.plan_id: h.sequence for h in heads if h.plan_id}
    rows = list(rows_with_bytes(read_waveforms(tables, columns=_COLUMNS)))
    newest = heads[-1]
    found = whole.deployment.log.group_offsets(whole.group, whole.topic, sorted(newest.positions))
    folder = whole.deployment.settings.landing / STREAM
    return Sight(
        records=records,
        topic_id=topic_id,
        heads=heads,
        group={p: (at.offset, at.metadata) for p, at in found.items() if at is not None},
        published=[
            Row(
                r["waveform_id"],
                r["samples"],
                tuple(((c["topic_id"], c["partition"], c["offset"]), c["length"], c["piece"]) for c in r["chunks"]),
                by_plan[r["plan_id"]],
            )
            for r in rows
        ],
        held=_held(tables, newest),
        history=[_History(b) for b in history],
        plans={
            p.name: whole.deployment.folder(STREAM, p.name).plan()
            for p in folder.glob("*")
            if (p / "plan.json").exists()
        },
        allowed_lateness_ms=_ALLOWED_LATENESS_MS,
    )


class _History:
    """A history row whose partitions have numbers for names, as the guarantees look at them."""

    def __init__(self, row: Any) -> None:
        self._row = row
        self.partitions = {int(p): n for p, n in row.partitions.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)


def _held(tables: Any, head: Any) -> list[HeldRow]:
    table = tables._held.load()
    if table is None or head.held is None:
        return []
    rows = table.scan(snapshot_id=head.held.snapshot_id).to_arrow().to_pylist()
    return [
        HeldRow(
            coordinate=(r["topic_id"], r["partition"], r["offset"]),
            id=r["waveform_id"],
            piece=(r["seq"], r["length"], r["piece"]),
            valid=r["record_reason"] is None,
            reason=r["reason"],
            time_ms=r["timestamp_ms"],
            decision=r["decision"],
            sequence=r["sequence"],
            payload=r["payload"],
            stored=r["stored"],
            says=(r["count"], r["digest"]),
        )
        for r in rows
    ]


def judge(
    whole: DeploymentRig,
    records: Sequence[Record],
    topic_id: str,
    *,
    versions: Mapping[str, set[bytes]],
    events: Iterable[Event] | None = None,
    one_topic: bool = True,
    rewritten: bool = False,
) -> Counts:
    """The counts, after every guarantee was checked.

    `versions`: the samples that producers had, by waveform id. `events`: what a witness saw; None: nobody did.
    `one_topic` False: a row may have chunks of two topics.
    `rewritten`: offsets were given to other records, so that a coordinate no longer names one; what guarantees compare
    by coordinate is compared by content alone.
    """
    sight = look_around(whole, records, topic_id)
    steps = follow(looked_once(whole) if events is None else events)
    by_coordinate: list[Any] = [] if rewritten else [NoLoss(), Balanced()]
    if one_topic and not rewritten:
        by_coordinate.append(NoInvention())
    for guarantee in (NoDuplicates(), OffsetsLast(), Fenced(), *by_coordinate):
        guarantee.check(sight)
    found = Counter(r.id for r in sight.published)
    published = {r.id: r.samples for r in sight.published}
    expected = must_be_there(sight)
    return Counts(
        records=len(records),
        lost=sum(i not in published for i in expected),
        duplicated=sum(n - 1 for n in found.values()),
        altered=sum(samples not in versions.get(i, ()) for i, samples in published.items()),
        unexplained_gaps=count_gaps(sight, rewritten=rewritten),
        steps=dict(steps),
    )


def must_be_there(sight: Sight) -> set[str]:
    """The waveforms that must be published: whole in what was read or should have been, and of one version."""
    owed = Passed(sight.heads)
    # What a deleted topic had and nobody had read went with it. That the head stands at the end of today's is looked
    # at by whoever settled the stream.
    known = [r for r in sight.records if r.coordinate in owed]
    every = truths(sight.records)
    return {i for i, t in truths(known).items() if t.whole and not every[i].contradicts_itself}


def count_gaps(sight: Sight, *, rewritten: bool = False) -> int:
    """Offsets below the head that no committed batch planned and nobody skipped by name, and holes in which a record
    was produced. Of the topic as it is now."""
    first: dict[int, int] = {}
    for head in sight.heads:
        if head.topic_id == sight.topic_id:
            for p, at in head.positions.items():
                first.setdefault(p, at.next_offset if head.kind in ("first", "rewind") else 0)
    topic_of = {h.sequence: h.topic_id for h in sight.heads}
    covered: dict[int, set[int]] = {}
    for row in sight.history:
        if topic_of.get(row.sequence) == sight.topic_id and row.kind == "ingest":
            for p, start, end in row.ranges:
                covered.setdefault(p, set()).update(range(start, end))
    for (topic_id, p), given_up in Passed(sight.heads).given_up.items():
        if topic_id == sight.topic_id:
            covered.setdefault(p, set()).update(given_up)
    gaps = 0 if rewritten else _wrong_holes(sight)
    for p, at in furthest(sight.heads, sight.topic_id).items():
        gaps += len(set(range(first.get(p, 0), at)) - covered.get(p, set()))
    return gaps


def _wrong_holes(sight: Sight) -> int:
    """Holes in batches' audits against offsets that really held no committed record."""
    there = {r.coordinate for r in sight.records}
    topic_of = {h.sequence: h.topic_id for h in sight.heads}
    wrong = 0
    for row in sight.history:
        for p, start, end in row.ranges:
            really = sum((topic_of.get(row.sequence), p, o) not in there for o in range(start, end))
            said: Mapping[str, int] = row.partitions[p]
            wrong += abs(said["holes"] - really)
    return wrong
