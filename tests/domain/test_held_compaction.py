"""The held table after months of small batches, put together: the same rows count, and a look is cheaper.

Names what it proves: I1 (every held row, bytes included), I7 (the head's mark).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.builders.table_rows import facts, held_row, payloads, place, write_landing
from tests.domain.maintenance_rig import STREAM, Rig, limits, went
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.held_mark import HeldMark, held_bytes
from wavestitch.contracts.ports import HeldRow, HeldStaging
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason
from wavestitch.maintain.run import maintain_stream
from wavestitch.tables.held.held_rows import held_groups
from wavestitch.tables.held.held_staging import stage_rows
from wavestitch.tables.lookup import file_scans
from wavestitch.tables.stream_tables import _nowhere

pytestmark = pytest.mark.filterwarnings("error")
CHUNKS, JUNK, A_FILE = 1_000, 9_000, 100
DAY_MS = 86_400_000


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.publish("a")
    return rig


def hold_many(rig: Rig, rows: Sequence[HeldRow], *, decision: str, held: EpochMs) -> None:
    """One head that names these rows in files of `A_FILE`, as many small batches leave them."""
    base = rig.tables.head()
    assert base is not None
    counts = dict(base.held.counts) if base.held is not None else {}
    for row in rows:
        reason = row.held.reason.value
        counts[reason] = counts.get(reason, 0) + 1
    size = base.held.chunk_bytes if base.held is not None else 0
    size += sum(held_bytes(r.held.chunk, r.held.reason) for r in rows)
    staging = HeldStaging("plan", decision, base.generation, base.sequence + 1, counts, size, held)

    def encode() -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        for start in range(0, len(rows), A_FILE):
            yield from held_groups(rows[start : start + A_FILE], staging=staging, apart=_nowhere)

    mark = stage_rows(rig.tables.stored()[1], base.held, encode, staging)
    rig.record(rig.tables.commit(base, base.next(decision=decision, held=mark), []))
    rig.tables.settle_held()
    rig.number += 1


def fill(rig: Rig) -> None:
    landed = [(0, n, b"chunk %d" % n) for n in range(CHUNKS)]
    landing = write_landing(rig.folder / "chunks.arrow", landed, batch_rows=500)
    chunks = [
        held_row(facts(p, o, b)._replace(waveform_id=f"w{o // 4:06d}"), landing=landing, row=o, decision="d2")
        for p, o, b in landed
    ]
    hold_many(rig, chunks, decision="d2", held=EpochMs(50 * DAY_MS))
    reason = Reason.NOT_A_CHUNK
    junk = [
        held_row(facts(1, n, b"", reason=reason)._replace(waveform_id=None), landing=None, decision="d3", reason=reason)
        for n in range(JUNK)
    ]
    hold_many(rig, junk, decision="d3", held=EpochMs(1))


def digest_of(rig: Rig) -> str:
    """Over all rows that the head names, and over the bytes of those that have some."""
    now = load_state(rig.tables, topic_id="")
    seal = hashlib.sha256()
    for held in now.held:
        seal.update(repr((held, held.stored)).encode())
    keys = [h.chunk.key for h in now.held if h.stored]
    out = rig.folder / f"held-{now.head.sequence}.arrow"
    rows = payloads(rig.tables, keys, out)
    with pa.ipc.open_file(str(out)) as reader:
        found = reader.read_all()["payload"].to_pylist()
    for key in keys:
        seal.update(found[rows[key]])
    assert len(now.held) == CHUNKS + JUNK
    return seal.hexdigest()


def compact(rig: Rig) -> Any:
    report = maintain_stream(
        rig.deployment,
        STREAM,
        apply=True,
        only=["compact"],
        limits=limits(small_files=5),
    )
    assert not report.failures
    return report


def opened_for(rig: Rig, monkeypatch: pytest.MonkeyPatch, look: HeldLook) -> tuple[int, int]:
    """How many rows are found, and how many files are opened for them, with an index that has followed before."""
    head = rig.tables.head()
    assert head is not None
    rig.tables.held(head.held, look)
    opened: list[str] = []
    read = file_scans.ArrowScan.to_record_batches

    def count(self: Any, tasks: Any) -> Any:
        tasks = list(tasks)
        opened.extend(task.file.file_path for task in tasks)
        return read(self, tasks)

    with monkeypatch.context() as patched:
        patched.setattr(file_scans.ArrowScan, "to_record_batches", count)
        found = rig.tables.held(head.held, look)
    return len(found), len(opened)


def test_what_is_held_is_the_same_in_few_files_and_a_look_is_cheaper(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(rig)
    before, digest = rig.tables.head(), digest_of(rig)
    assert before is not None
    assert before.held is not None
    looks = {
        "waveforms": HeldLook(ids=frozenset(f"w{n:06d}" for n in range(0, CHUNKS // 4, 20))),
        "places": HeldLook(coordinates=frozenset({place(0, n) for n in range(0, CHUNKS, 50)})),
    }
    dear = {name: opened_for(rig, monkeypatch, look) for name, look in looks.items()}
    assert len(rig.tables.held_files(before.held)) == (CHUNKS + JUNK) // A_FILE

    report = compact(rig)
    after = rig.tables.head()
    assert after is not None
    assert after.held is not None
    assert report.actions[0].facts["rows_compared"] >= CHUNKS + JUNK
    assert digest_of(rig) == digest

    # The mark is renewed by a head of maintenance that moves nothing, and vouches for what is there.
    assert (after.kind, after.positions, after.sequence) == (
        HeadKind.MAINTENANCE,
        before.positions,
        before.sequence + 1,
    )
    files = rig.tables.held_files(after.held)
    assert len(files) <= 3
    assert after.held.snapshot_id != before.held.snapshot_id
    assert (after.held.rows, after.held.counts) == (before.held.rows, before.held.counts)
    assert after.held.junk_bytes == sum(f.bytes for f in files if f.reason == "not_a_chunk")

    cheap = {name: opened_for(rig, monkeypatch, look) for name, look in looks.items()}
    assert {n: found for n, (found, _) in cheap.items()} == {n: found for n, (found, _) in dear.items()}
    assert {n: opened for n, (_, opened) in dear.items()} == dict.fromkeys(looks, CHUNKS // A_FILE)
    assert {n: opened for n, (_, opened) in cheap.items()} == {"waveforms": 1, "places": 1}

    # What the head names is on a branch or main: other maintenance takes the old files, never these.
    rig.record(rig.tables.commit(after, after.next(decision="d9"), []))
    rig.maintain("snapshots", "orphans")
    held = rig.tables.stored()[1].load()
    assert held is not None
    assert held.metadata.current_snapshot_id == after.held.snapshot_id
    assert held.metadata.snapshot_by_id(before.held.snapshot_id) is None
    assert digest_of(rig) == digest

    # What was put together tells its age as our own files do.
    assert went(rig.maintain("junk", apply=False, now_ms=40 * DAY_MS, junk=30 * 86_400), "junk") == JUNK
    assert went(rig.maintain("junk", now_ms=40 * DAY_MS, junk=30 * 86_400), "junk") == JUNK
    head = rig.tables.head()
    assert head is not None
    assert isinstance(head.held, HeldMark)
    assert (head.held.counts, head.held.junk_bytes, head.held.rows) == ({"open": CHUNKS}, 0, CHUNKS)
