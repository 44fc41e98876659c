"""A table with a long history, made by a script: one real head, and thousands before it in the same metadata file.

The table stays a real one: its snapshots have manifest lists, parents, sequence numbers and the keys of heads, and the
history of batches has a row for each.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.tables.stream_tables import StreamTables

_MINUTE_MS = 60_000


def lengthen(folder: Path, stream: str, tables: StreamTables, snapshots: int, batches: int) -> None:
    """Put `snapshots` - 1 more heads on the first one of a table that has no files yet, the last ones of `batches`: of
    those before them only the history has a row, as maintenance leaves it. `folder`: the catalog's."""
    table, first = tables.waveforms(), tables.head()
    if table is None or first is None:
        raise RuntimeError(f"stream {stream} has no first head yet")
    old = Path(table.metadata_location.removeprefix("file://"))
    found = json.loads(old.read_text())
    (snapshot,) = found["snapshots"]
    gone = max(0, batches - snapshots)
    expired = list(_heads(first, gone))
    heads = [first, *_heads(first, snapshots - 1, after=gone)]
    chain = _chain(snapshot, heads)
    last = chain[-1]
    found |= {
        "snapshots": chain,
        "current-snapshot-id": last["snapshot-id"],
        "last-sequence-number": last["sequence-number"],
        "last-updated-ms": last["timestamp-ms"],
        "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in chain],
        "refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}},
    }
    new = old.with_name(f"00001-{uuid.uuid4()}.metadata.json")
    new.write_text(json.dumps(found))
    with closing(sqlite3.connect(folder / "catalog.db")) as db, db:
        changed = db.execute(
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
            "WHERE table_namespace = ? AND table_name = 'waveforms'",
            (f"file://{new}", f"file://{old}", stream),
        ).rowcount
    if changed != 1 or len(tables.heads()) != snapshots:
        raise RuntimeError(f"the catalog has {changed} such tables, with {len(tables.heads())} heads")
    tables.append_batches(_row(stream, h) for h in [first, *expired, *heads[1:]])


def _heads(first: Head, count: int, *, after: int = 0) -> list[Head]:
    return [
        replace(
            first.next(plan_id=secrets.token_hex(16), decision=secrets.token_hex(16)),
            sequence=first.sequence + after + n,
            kind=HeadKind.INGEST,
        )
        for n in range(1, count + 1)
    ]


def _chain(snapshot: dict[str, Any], heads: list[Head]) -> list[dict[str, Any]]:
    now = snapshot["timestamp-ms"]
    plain = {k: v for k, v in snapshot["summary"].items() if not k.startswith("wavestitch.")}
    chain: list[dict[str, Any]] = []
    for n, head in enumerate(heads):
        each = dict(snapshot)
        each["timestamp-ms"] = now - (len(heads) - n) * _MINUTE_MS
        each["sequence-number"] = n + 1
        each["summary"] = {**plain, **head.to_properties()}
        if n:
            each["snapshot-id"] = secrets.randbits(62)
            each["parent-snapshot-id"] = chain[-1]["snapshot-id"]
        chain.append(each)
    return chain


def _row(stream: str, head: Head) -> BatchRow:
    """A history row as large as a real batch's."""
    parts = {str(p): {"planned": 64, "holes": 0, "read": 64, "carried_in": 0, "published": 64} for p in head.positions}
    return BatchRow(
        plan_id=head.plan_id,
        decision=head.decision,
        sequence=head.sequence,
        generation=head.generation,
        kind=head.kind.value,
        stream=stream,
        committed_ms=epoch_ms(1_767_225_600_000 + head.sequence * _MINUTE_MS),
        ranges=[[p, 0, 64] for p in head.positions],
        slices=[[p, 0, 64] for p in head.positions],
        counts={"read": 256, "published": 256},
        partitions=parts,
        waveforms={"published": 16, "open": 0, "quarantined": 0},
        seconds={"read": 1.0, "reassemble": 2.0, "validate": 0.3, "publish": 0.2},
        bytes={"read": 16 << 20},
        reading={str(p): [4 << 20, 0.5] for p in head.positions},
    )
