"""What is held from a topic that is no more keeps its place: the job that stitches it names that topic."""

from __future__ import annotations

from pathlib import Path

from spark_apps.assignment import read_assignment
from tests.builders.plans import make_plan
from tests.builders.records import metadata
from tests.builders.table_rows import all_held, facts, first_head, held_row, hold, write_landing
from wavestitch.batch.reassemble import Landed, prepare_reassembly
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.assembly import assemble_waveform
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.stitch_job import stitch_job_from_json
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.stream_tables import StreamTables


def test_of_held_chunks_each_is_stitched_as_one_of_its_own_topic(tmp_path: Path) -> None:
    tables = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    rows = [(0, 0, b"\1\0"), (1, 0, b"\2\0")]
    landing = write_landing(tmp_path / "l.arrow", rows)
    topics = ("older-topic", "topic")
    meta = metadata(1_767_614_400_000).decode()
    found = [facts(*row, topic_id=topic)._replace(count=1, meta=meta) for row, topic in zip(rows, topics, strict=True)]
    tables.commit(None, first_head(topic_id="topic"), [])
    hold(tables, [held_row(c, landing=landing, row=n) for n, c in enumerate(found)])
    plan = make_plan()
    folder = WorkFolder(tmp_path / "landing", "waves", plan.plan_id)
    folder.create(plan)
    chunks = [h.chunk for h in all_held(tables)]
    whole = [assemble_waveform(str(c.waveform_id), [c], plan.stream.limits) for c in chunks]
    landed = Landed([], ChunkTable.of([]), {}, {}, 0, 0.0)
    job = stitch_job_from_json(prepare_reassembly(plan, landed, whole, tables=tables, folder=folder).read_text())
    assigned = [read_assignment(folder.path / name) for name in job.assignments]
    columns = ((a.waveform_ids.to_pylist(), a.pieces["topic_id"].to_pylist()) for a in assigned)
    named = {i: t for ids, topics in columns for i, t in zip(ids, topics, strict=True)}
    assert named == {"w0": "older-topic", "w1": "topic"}
