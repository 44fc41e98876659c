"""What can be seen of the memory edges from outside, for the guarantees."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.fakes.batch import Bench
from tests.guarantees import HeldRow, Row, Sight


def look_around(bench: Bench, *, allowed_lateness_ms: int, junk_bytes: int | None = None) -> Sight:
    tables, lives = bench.tables, bench.log.lives()
    by_record: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for record, life in lives:
        by_record[record].append(life)
    return Sight(
        records=[record for record, _ in lives],
        lives=by_record,
        topic_id=bench.log.topic_id,
        heads=tuple(tables.snapshots),
        group={p: (at.offset, at.metadata) for p, at in bench.log.group.items()},
        published=[
            Row(
                row.waveform_id,
                row.samples,
                tuple(
                    ((t, c.partition, c.offset), c.length, c.piece)
                    for t, c in zip(row.topic_ids, row.chunks, strict=True)
                ),
                sequence,
            )
            for sequence, row in tables.rows
        ],
        held=[
            HeldRow(
                coordinate=(c := row.held.chunk).coordinate,
                id=c.waveform_id,
                piece=(c.seq, c.length, c.piece),
                valid=c.reason is None,
                reason=row.held.reason.value,
                time_ms=c.timestamp_ms,
                decision=row.held.decision,
                sequence=row.held.sequence,
                payload=row.payload,
                stored=row.stored,
                says=(c.count, c.digest),
            )
            for row in tables.held_rows()
        ],
        history=tuple(tables.history),
        plans=dict(bench.plans),
        allowed_lateness_ms=allowed_lateness_ms,
        junk_bytes=junk_bytes,
    )
