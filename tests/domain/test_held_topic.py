"""The job that stitches what is held: of a topic that is no more it names that topic, and the bytes are those of the
head by which it was decided, whatever a later one has let go of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_apps.assignment import read_assignment
from tests.builders.plans import make_plan
from tests.builders.records import metadata
from tests.builders.table_rows import all_held, facts, first_head, held_row, hold, write_landing
from wavestitch.batch.reassemble import Landed, ToStitch, decide_whole, prepare_reassembly
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.assembly import assemble_waveform
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.stitch_job import StitchJob, stitch_job_from_json
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.stream_tables import StreamTables


@pytest.fixture
def tables(tmp_path: Path) -> StreamTables:
    """Two chunks are held, each of another topic."""
    found = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    rows = [(0, 0, b"\1\0"), (1, 0, b"\2\0")]
    landing = write_landing(tmp_path / "l.arrow", rows)
    topics = ("older-topic", "topic")
    meta = metadata(1_767_614_400_000).decode()
    chunks = [facts(*row, topic_id=topic)._replace(count=1, meta=meta) for row, topic in zip(rows, topics, strict=True)]
    found.commit(None, first_head(topic_id="topic"), [])
    hold(found, [held_row(c, landing=landing, row=n) for n, c in enumerate(chunks)])
    return found


class Prepared:
    def __init__(self, tables: StreamTables, tmp_path: Path) -> None:
        """What is whole is decided now."""
        self.tables, self.plan = tables, make_plan()
        self.folder = WorkFolder(tmp_path / "landing", "waves", self.plan.plan_id)
        self.folder.create(self.plan)
        chunks = [h.chunk for h in all_held(tables)]
        head = tables.head()
        assert head is not None
        whole = [assemble_waveform(str(c.waveform_id), [c], self.plan.stream.limits) for c in chunks]
        self.what = ToStitch(whole, head.held)

    def job(self) -> StitchJob:
        landed = Landed([], ChunkTable.of([]), {}, {}, 0, 0.0)
        path = prepare_reassembly(self.plan, landed, self.what, tables=self.tables, folder=self.folder)
        return stitch_job_from_json(path.read_text())


def let_go(tables: StreamTables) -> None:
    """Of all that is held, as maintenance does of what is published."""
    head, held = tables.head(), tables.stored()[1].load()
    assert head is not None
    assert held is not None
    going = {task.file.file_path: set(range(task.file.record_count)) for task in files_to_read(held)}
    tables.rewrite_held(head, going, counts={}, note="")


def test_of_held_chunks_each_is_stitched_as_one_of_its_own_topic(tables: StreamTables, tmp_path: Path) -> None:
    found = Prepared(tables, tmp_path)
    assigned = [read_assignment(found.folder.path / name) for name in found.job().assignments]
    columns = ((a.waveform_ids.to_pylist(), a.pieces["topic_id"].to_pylist()) for a in assigned)
    named = {i: t for ids, topics in columns for i, t in zip(ids, topics, strict=True)}
    assert named == {"w0": "older-topic", "w1": "topic"}


def test_a_head_that_lets_go_of_them_meanwhile_takes_no_bytes_away(tables: StreamTables, tmp_path: Path) -> None:
    """Another run has published them. That is told when this one commits."""
    found = Prepared(tables, tmp_path)
    let_go(tables)
    (name,) = found.job().files
    with pa.OSFile(str(found.folder.path / name)) as source:
        assert sorted(pa.ipc.open_file(source).read_all()["payload"].to_pylist()) == [b"\1\0", b"\2\0"]


def test_where_their_snapshot_is_gone_it_is_said_to_look_again(tables: StreamTables, tmp_path: Path) -> None:
    found = Prepared(tables, tmp_path)
    let_go(tables)
    assert found.what.held is not None
    held = tables.stored()[1].load()
    assert held is not None
    held.maintenance.expire_snapshots().by_id(found.what.held.snapshot_id).commit()
    with pytest.raises(Transient, match="again"):
        found.job()


class LetsGo:
    """These tables, of which maintenance lets everything held go right after it was looked at."""

    def __init__(self, tables: StreamTables) -> None:
        self.tables = tables

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tables, name)

    def held(self, *asked: Any) -> Any:
        found = self.tables.held(*asked)
        let_go(self.tables)
        return found


def test_what_is_decided_goes_with_the_head_by_which_it_was(tables: StreamTables) -> None:
    head = tables.head()
    assert head is not None
    plan = make_plan(topic_id="topic", generation=head.generation, base_sequence=head.sequence)
    what = decide_whole(plan, Landed([], ChunkTable.of([]), {}, {}, 0, 0.0), tables=LetsGo(tables))
    now = tables.head()
    assert now is not None
    assert now.held != head.held
    assert what.held == head.held
