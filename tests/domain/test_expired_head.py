"""A head that somebody else's tool expired: rebuilt from the group's tag, the table and the history, shown before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.builders.table_rows import first_head
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.batch_row import describe_head
from wavestitch.contracts.errors import DataLost, Fenced, Refused, Transient
from wavestitch.contracts.position import GroupOffset, HeadKind, Tag
from wavestitch.contracts.quantities import Generation, Offset, Partition
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.maintenance.snapshot_expiry import expire_snapshots
from wavestitch.tables.stream_tables import StreamTables

START_MS = 1_767_614_400_000
STREAM = make_stream()


@pytest.fixture
def bench() -> Bench:
    """Waveforms a and b are published, of c one chunk is held; two batches, and then the head is gone."""
    made = Bench(FakeLog("waves", 1))
    send(made, "a", 0)
    send(made, "a", 1)
    ingest(made)
    send(made, "b", 0)
    send(made, "b", 1)
    send(made, "c", 0)
    ingest(made)
    made.tables.expire_head()
    return made


def send(bench: Bench, waveform_id: str, seq: int) -> None:
    send_chunk(bench.log, waveform_id, seq, bytes([ord(waveform_id[0]), seq]), at_ms=START_MS, count=2)


def ingest(bench: Bench) -> None:
    run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS)


def published(bench: Bench) -> list[str]:
    return sorted(row.waveform_id for _, row in bench.tables.rows)


def look(bench: Bench, word: str = "rebuilt") -> Rewind:
    return plan_rewind(STREAM, Target(word), log=bench.log, tables=bench.tables, who="a test", why="to see")


def apply(bench: Bench, **accepted: bool) -> Any:
    accepted = {"accept_skip": False, **accepted}
    return apply_rewind(STREAM, look(bench), **accepted, log=bench.log, tables=bench.tables)


@pytest.mark.parametrize("word", ["earliest", "group", "head", "start-over"])
def test_until_it_is_rebuilt_everything_is_refused_with_that_way_out(bench: Bench, word: str) -> None:
    with pytest.raises(Refused, match="--to rebuilt"):
        ingest(bench)
    with pytest.raises(Refused, match="--to rebuilt"):
        look(bench, word)


def test_it_is_shown_first_and_goes_on_where_the_groups_tag_stands(bench: Bench) -> None:
    before = list(bench.tables.snapshots)
    shown = look(bench)
    assert bench.tables.snapshots == before
    assert shown.moves == {0: (None, 5)}
    assert "partition 0: the group's tag (head 3, generation 1)" in shown.remarks
    assert any("not known" in r and "skipped" in r and "watermark" in r for r in shown.remarks)
    head = apply(bench)
    assert (head.kind, head.positions[0].next_offset) == (HeadKind.REBUILT, 5)
    assert head.version > before[-1].version
    send(bench, "c", 1)
    ingest(bench)
    assert published(bench) == ["a", "b", "c"]


def test_where_a_decision_is_not_in_the_history_everything_is_read_again(bench: Bench) -> None:
    """What it held would not count: the chunk of c must come from the log once more."""
    bench.tables.history.pop()
    shown = look(bench)
    assert shown.moves == {0: (None, 0)}
    assert any("may not be known" in r for r in shown.remarks)
    apply(bench)
    send(bench, "c", 1)
    ingest(bench)
    assert published(bench) == ["a", "b", "c"]


def test_so_it_is_where_one_in_between_is_not_there_though_the_newest_is(bench: Bench) -> None:
    bench.tables.history = [row for row in bench.tables.history if row.sequence != 2]
    shown = look(bench)
    assert shown.moves == {0: (None, 0)}
    assert any("the history knows all decisions up to head 1 only" in r for r in shown.remarks)


def test_where_the_table_was_set_back_the_tag_of_a_head_whose_number_another_took_is_not_believed(bench: Bench) -> None:
    """A batch that was under way committed it, and nobody has rewound since: who asks the group is refused."""
    bench.tables.history.append(replace(bench.tables.history[-1], decision="of the other head"))
    shown = look(bench)
    assert shown.moves == {0: (None, 0)}
    assert any("up to head 2 only, each once" in r for r in shown.remarks)
    bench.tables.history[-1] = replace(bench.tables.history[-1], generation=Generation(0))
    assert look(bench).moves == {0: (None, 5)}, "of an older generation: somebody has rewound since"


@pytest.mark.parametrize("beside", [None, "held", "rewind", "ingest"])
def test_a_tag_is_not_believed_where_the_history_knows_another_head_by_its_number(
    bench: Bench, beside: str | None
) -> None:
    """The row of the one that was set back is gone. `beside`: what head comes after it; a rewind moves the stream, and
    of an ingest without its ranges nobody knows."""
    last = bench.tables.history[-1]
    bench.tables.history[-1] = replace(last, decision="of the other head", ranges=[[0, 2, 4]])
    if beside is not None:
        bench.tables.history.append(replace(last, sequence=4, decision="d4", kind=beside, ranges=[]))
        bench.log.group[Partition(0)] = GroupOffset(Offset(5), Tag(bench.tables.uuid, Generation(1), 4).encode())
    believed = beside in ("rewind", "ingest")
    shown = look(bench)
    assert shown.moves == {0: (None, 5 if believed else 0)}
    assert any("by the history that one stood at 4: the table was set back" in r for r in shown.remarks) is not believed


def test_a_tag_is_not_denied_by_rows_of_what_was_set_back(bench: Bench) -> None:
    """They are of an older generation, and behind no head any more."""
    last = bench.tables.history[-1]
    bench.tables.history[-1] = replace(last, kind="rewind", generation=Generation(2), ranges=[])
    bench.tables.history += [
        replace(last, sequence=4, decision="of then", ranges=[[0, 5, 9]]),
        replace(last, sequence=4, decision="of now", generation=Generation(2), kind="held", ranges=[]),
    ]
    bench.log.group[Partition(0)] = GroupOffset(Offset(5), Tag(bench.tables.uuid, Generation(2), 4).encode())
    assert look(bench).moves == {0: (None, 5)}


def test_the_tag_of_a_table_that_came_after_another_is_believed() -> None:
    """Which begins beyond the rows of that one, also where they do not name each of its heads."""
    bench = Bench(FakeLog("waves", 1))
    for table in ("a", "b"):
        send(bench, table, 0)
        send(bench, table, 1)
        ingest(bench)
        if table == "a":
            bench.tables.drop("6d0f4f0e-0000-4000-8000-00000000d201")
            bench.log.expire_group(Partition(0))
            bench.tables.history = bench.tables.history[-1:]
    ingest(bench)  # so that its first head has a row
    bench.tables.expire_head()
    assert look(bench).moves == {0: (None, 4)}


@pytest.mark.parametrize("metadata_text", ["", "wavestitch/2 0f8fad5b g9 s9"])
def test_a_tag_that_is_not_this_tables_is_not_believed(bench: Bench, metadata_text: str) -> None:
    bench.log.group[Partition(0)] = GroupOffset(Offset(5), metadata_text)
    assert look(bench).moves == {0: (None, 0)}
    assert "partition 0: the log's start; the group has no tag of this table" in look(bench).remarks
    apply(bench)
    send(bench, "c", 1)
    ingest(bench)
    assert published(bench) == ["a", "b", "c"]


def test_what_retention_took_meanwhile_is_named(bench: Bench) -> None:
    send(bench, "d", 0)
    bench.log.retain_from(Partition(0), Offset(6))
    assert look(bench).skipped == (span(0, 5, 6),)
    with pytest.raises(Refused, match=r"would skip partition 0 \[5, 6\)"):
        apply(bench)
    assert apply(bench, accept_skip=True).skipped == (span(0, 5, 6),)


def test_what_retention_took_is_named_too_where_nobody_knows_whether_it_was_read(bench: Bench) -> None:
    bench.tables.history.pop()
    bench.log.retain_from(Partition(0), Offset(2))
    assert look(bench).skipped == (span(0, 0, 2),)
    bench.log.expire_group(Partition(0))
    assert look(bench).skipped == (span(0, 0, 2),)


def test_what_is_read_again_is_not_named_as_skipped_any_more(bench: Bench) -> None:
    bench.tables.left = replace(bench.tables.snapshots[-1], skipped=(span(0, 1, 3),))
    assert apply(bench).skipped == (span(0, 1, 3),)
    bench.tables.expire_head(left=bench.tables.snapshots[-1])
    bench.log.expire_group(Partition(0))  # so that everything is read again
    head = apply(bench)
    assert (head.positions[0].next_offset, head.skipped) == (0, ())


def test_a_log_that_was_cut_off_meanwhile_is_found_out_by_the_epoch_of_a_head_that_is_left(bench: Bench) -> None:
    bench.tables.left = bench.tables.snapshots[-1]
    bench.log.truncate(Partition(0), Offset(1))
    for name in "defg":
        send(bench, name, 0)
        send(bench, name, 1)
    apply(bench)
    with pytest.raises(DataLost, match="was cut off before"):
        ingest(bench)


def test_a_partition_of_a_head_that_is_left_is_waited_for_where_a_broker_does_not_show_it_yet(bench: Bench) -> None:
    bench.tables.left = bench.tables.snapshots[-1]
    bench.log.lag(1, shows=0)
    with pytest.raises(Transient, match="shows no partition 0 of topic waves, which the head has"):
        look(bench)
    assert apply(bench).positions.keys() == {0}


def test_what_was_held_and_was_published_since_is_not_called_missing() -> None:
    """By a batch whose row the history never had: by its count nobody can tell the two apart, by the table's plans one
    can tell that there was such a batch."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "c", 0)
    ingest(bench)
    send(bench, "c", 1)
    ingest(bench)
    bench.tables.history.pop()
    bench.tables.expire_head()
    (missing,) = look(bench).missing
    assert missing.what == "1 held chunks, not known whether published"
    assert "or were published since, by batches that the history does not know" in missing.said


def test_a_rewind_that_the_group_does_not_show_is_not_undone() -> None:
    """Somebody who had looked before it has written an older projection over it."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a", 0)
    ingest(bench)
    send(bench, "a", 1)
    ingest(bench)
    before = dict(bench.log.group)
    found = plan_rewind(STREAM, Target("earliest"), log=bench.log, tables=bench.tables, who="a test", why="to see")
    head = apply_rewind(STREAM, found, accept_skip=False, log=bench.log, tables=bench.tables)
    bench.tables.append_batches([describe_head(head, stream="ecg")])
    bench.log.group = before
    bench.tables.expire_head()
    shown = look(bench)
    assert shown.moves == {0: (None, 0)}
    assert any("the stream was rewound since" in r for r in shown.remarks)


def test_rows_of_a_batch_without_a_history_row_do_not_stand_in_for_missing_ones() -> None:
    """A run that died between its commit and its history row, and a row of another batch that somebody took out."""
    bench = Bench(FakeLog("waves", 1))
    for name in ("a", "b"):
        send(bench, name, 0)
        send(bench, name, 1)
        ingest(bench)
    bench.tables.history.pop()
    bench.tables.rows.pop(0)
    bench.tables.expire_head()
    assert [m.what for m in look(bench).missing] == ["1 published waveforms"]


def test_published_rows_that_are_missing_are_named_and_have_to_be_accepted(bench: Bench) -> None:
    bench.tables.rows.pop()
    shown = look(bench)
    assert [m.what for m in shown.missing] == ["1 published waveforms"]
    assert "the history counts 2, the table has 1" in shown.missing[0].said
    assert "0 of 1, partition 0 [2, 5)" in shown.missing[0].said
    with pytest.raises(Refused, match=r"missing: 1 published waveforms.*--accept-missing"):
        apply(bench)
    head = apply(bench, accept_missing=True)
    assert head.note == "head rebuilt by a test: to see; accepted as missing: 1 published waveforms"
    send(bench, "c", 1)
    ingest(bench)
    assert published(bench) == ["a", "c"], "what was held is, and what was taken out is not read again"
    found = plan_rewind(STREAM, Target("earliest"), log=bench.log, tables=bench.tables, who="a test", why="it was lost")
    apply_rewind(STREAM, found, accept_skip=False, log=bench.log, tables=bench.tables)
    ingest(bench)
    assert published(bench) == ["a", "b", "c"], "unless somebody wants it"


def test_where_the_head_is_there_nothing_is_rebuilt() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a", 0)
    ingest(bench)
    with pytest.raises(Refused, match="its head is there"):
        look(bench)


def test_a_run_that_was_planned_before_is_fenced() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a", 0)
    send(bench, "a", 1)
    ingest(bench)
    send(bench, "b", 0)
    step_plan(FakeEdges(bench, STREAM, START_MS, Carrying()), PlanRequest())
    plan = list(bench.plans.values())[-1]
    bench.tables.expire_head()
    apply(bench)
    with pytest.raises(Fenced):
        carry_through(bench, plan, Carrying())


def test_the_real_table_is_rebuilt_after_spark_kept_its_own_snapshot_only(tmp_path: Path) -> None:
    tables = StreamTables(CatalogSettings("local", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/wh"), "ecg")
    assert tables.remains() is None
    head = tables.commit(None, first_head(topic_id=FakeLog("waves", 1).topic_id), [])
    assert tables.remains() is None
    tables.append_batches([describe_head(head, stream="ecg")])
    waveforms = tables.stored()[0]
    table = waveforms.load()
    assert table is not None
    waveforms.commit_files(table, [], {})  # a snapshot without our keys, as a compaction makes it
    now = tables.waveforms()
    assert now is not None
    expire_snapshots(waveforms, [s.snapshot_id for s in now.metadata.snapshots][:-1])
    with pytest.raises(Refused, match=r"head of table ecg.waveforms has been expired.*--to rebuilt"):
        tables.head()
    log = FakeLog("waves", len(head.positions))
    for p in head.positions:
        for _ in range(head.positions[p].next_offset + 1):
            log.append(p, START_MS, None, (), None)
    tag = head.tag(str(tables.table_uuid())).encode()
    log.group = {p: GroupOffset(at.next_offset, tag) for p, at in head.positions.items()}
    found = plan_rewind(STREAM, Target("rebuilt"), log=log, tables=tables, who="a test", why="to see")
    made = apply_rewind(STREAM, found, accept_skip=False, log=log, tables=tables)
    assert tables.head() == made
    assert {p: at.next_offset for p, at in made.positions.items()} == {
        p: at.next_offset for p, at in head.positions.items()
    }
    assert made.sequence == 3
    assert tables.remains() is None
    with pytest.raises(Refused, match="somebody committed"):
        apply_rewind(STREAM, found, accept_skip=False, log=log, tables=tables)


@pytest.mark.parametrize("is_left", [True, False])
def test_where_the_group_stood_in_another_topic_of_this_name_is_no_place_in_this_one(*, is_left: bool) -> None:
    """Groups know topics by name: what one had committed may outlive the topic, or be put back with a backup of it."""
    bench = Bench(FakeLog("waves", 1))
    for name in "abc":
        send_whole(bench, name)
    for _ in range(2):  # the second one writes down what was before the first
        ingest(bench)
    stood, head = dict(bench.log.group), bench.tables.head()
    bench.log.recreate(1)
    bench.log.group = stood
    for name in "vwxyz":
        send_whole(bench, name)
    bench.tables.expire_head(head if is_left else None)
    shown = look(bench)
    assert shown.moves == {0: (None, 0)}
    assert any("which read another topic of this name" in said for said in shown.remarks)
    apply(bench)
    ingest(bench)
    assert published(bench) == list("abcvwxyz")


def test_a_partition_that_the_history_knows_and_a_broker_does_not_show_is_waited_for() -> None:
    bench = Bench(FakeLog("waves", 2))
    for p, names in enumerate(("abc", "defgh")):
        for name in names:
            send_whole(bench, name, partition=p)
    for _ in range(2):
        ingest(bench)
    bench.log.retain_from(Partition(1), Offset(4))
    bench.tables.expire_head(None)
    bench.log.lag(1, shows=1)
    with pytest.raises(Transient, match="shows no partition 1 of topic waves, which the history has"):
        look(bench)
    bench.log.lag(0, shows=0)
    apply(bench)
    ingest(bench)
    assert published(bench) == list("abcdefgh")
    assert bench.tables.head().skipped == ()


def send_whole(bench: Bench, waveform_id: str, partition: int = 0) -> None:
    value = waveform_id.encode() * 2
    send_chunk(bench.log, waveform_id, 0, value, at_ms=START_MS, start_ms=START_MS, count=1, partition=partition)
