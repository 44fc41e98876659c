"""Real tables that hold something of every kind, as a batch left it, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tests.builders.records import Letter, letter, metadata
from tests.builders.table_rows import TOPIC_ID, held_row, stage_held
from tests.domain.maintenance_rig import Rig
from tests.fakes.batch import facts_of
from tests.fakes.kept_partition import Record
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import LANDING

T = EpochMs(1_767_614_400_000)
ONE, TWO, OTHER = b"\x01\x00", b"\x02\x00", b"\x07\x00"
_BATCH_BYTES = 8 << 20
HELD: list[tuple[str, int, bytes, Reason]] = [
    ("conflicting", 0, ONE, Reason.CONFLICT),
    ("conflicting", 1, TWO, Reason.CONFLICT),
    ("conflicting", 1, OTHER, Reason.CONFLICT),
    ("half", 0, ONE, Reason.OPEN),
    ("parked", 0, ONE, Reason.PARKED),
    ("parked", 1, TWO, Reason.PARKED),
]


def held_rig(
    folder: Path,
    held: Sequence[tuple[str, int, bytes, Reason]] = HELD,
    *,
    meta: bytes = metadata(T),
    count: int = 2,
    at: EpochMs = T,
) -> Rig:
    """`held`: id, sequence number, bytes and reason of each chunk. `count`: of each waveform, as they say. `at`: the
    first record's time."""
    rig = Rig(folder)
    base = rig.publish()
    letters = [letter(i, seq, value, meta=meta, count=count) for i, seq, value, _ in held]
    landing = _land(folder / "l.arrow", letters, at)
    rows = []
    for n, (one, (_, _, _, reason)) in enumerate(zip(letters, held, strict=True)):
        chunk = facts_of(_record(n, one, at), 0, n)._replace(carried=True, topic_id=TOPIC_ID)
        rows.append(held_row(chunk, landing=landing, row=n, reason=reason, decision="dh", sequence=base.sequence + 1))
    mark = stage_held(rig.tables, base, rows)
    rig.record(rig.tables.commit(base, base.next(held=mark, decision="dh", watermark_ms=T), []))
    rig.tables.settle_held()
    return rig


def _record(n: int, one: Letter, at: EpochMs = T) -> Record:
    return Record(TOPIC_ID, Partition(0), Offset(n), at + n, *one)


def _land(path: Path, letters: list[Letter], at: EpochMs = T) -> Path:
    """A landing file of valid chunks, in record batches as small as a reader's."""
    some = max(1, _BATCH_BYTES * len(letters) // (1 + sum(len(one.value or b"") for one in letters)))
    rows = [
        {**facts_of(_record(n, one, at), 0, n)._asdict(), "payload": one.value, "meta_row": n % some}
        for n, one in enumerate(letters)
    ]
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, LANDING) as writer:
        for start in range(0, len(rows), some):
            writer.write_batch(pa.RecordBatch.from_pylist(rows[start : start + some], schema=LANDING))
    return path
