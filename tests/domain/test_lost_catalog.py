"""Where group and catalog contradict each other, nothing goes on before it was said by name, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.fake_rows import FakeFiles
from tests.fakes.fake_tables import FakeTables
from tests.fakes.way_out import way_out
from wavestitch.batch.commit_offsets import commit_offsets, look_at_group
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.position import GroupOffset, Head, HeadKind
from wavestitch.contracts.quantities import Offset, Partition

START_MS = 1_767_614_400_000
STREAM = make_stream()


@pytest.fixture
def bench() -> Bench:
    """Waveforms a and b are published, of c one chunk is held; the group shows it."""
    made = Bench(FakeLog("waves", 1))
    for waveform_id in ("a", "b"):
        send(made, waveform_id, 0)
        send(made, waveform_id, 1)
    send(made, "c", 0)
    ingest(made)
    assert published(made) == {"a", "b"}
    return made


def send(bench: Bench, waveform_id: str, seq: int) -> None:
    send_chunk(bench.log, waveform_id, seq, bytes([ord(waveform_id[0]), seq]), at_ms=START_MS, count=2)


def ingest(bench: Bench) -> None:
    run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS)


def published(bench: Bench) -> set[str]:
    return {row.waveform_id for _, row in bench.tables.rows}


def rewind(bench: Bench, target: Target, *, accept_skip: AcceptedSkip = False) -> None:
    found = plan_rewind(STREAM, target, **where(bench))
    apply_rewind(STREAM, found, accept_skip=accept_skip, log=bench.log, tables=bench.tables)


def catalog_lost(bench: Bench) -> None:
    bench.files = FakeFiles()
    bench.tables = FakeTables(bench.files, uuid="6d0f4f0e-0000-4000-8000-000000000002")


def catalog_restored(bench: Bench) -> None:
    """As it was before its newest batch."""
    send(bench, "d", 0)
    send(bench, "d", 1)
    ingest(bench)
    bench.tables.restore(bench.tables.snapshots[-2].sequence)


def catalog_forked(bench: Bench) -> None:
    """A copy of the catalog goes on, and shows its head in the group; ours has one of the same number."""
    bench.log.group[Partition(0)] = GroupOffset(
        Offset(bench.log.group[Partition(0)].offset - 1), bench.log.group[Partition(0)].metadata
    )


def catalog_exchanged(bench: Bench) -> None:
    """Another deployment uses the group: each has a head of its own."""
    bench.log.group[Partition(0)] = GroupOffset(Offset(2), "wavestitch/2 0f8fad5b g7 s40")


def another_version(bench: Bench) -> None:
    bench.log.group[Partition(0)] = GroupOffset(Offset(2), "wavestitch/9 something new")


def tag_forged(bench: Bench, generation: int = 10**18 - 1, sequence: int = 9) -> None:
    """Whoever may commit offsets of the group writes what no head of this table can be."""
    text = f"wavestitch/2 {bench.tables.uuid} g{generation} s{sequence}"
    bench.log.group[Partition(0)] = GroupOffset(bench.log.group[Partition(0)].offset, text)


WORLDS: dict[str, Callable[[Bench], None]] = {
    "lost": catalog_lost,
    "restored": catalog_restored,
    "forked": catalog_forked,
    "another table": catalog_exchanged,
    "unreadable": another_version,
}
LARGE = [10**9 + 1007, 2**53, 10**18 - 1, 10**18, 10**18 + 1, 2**63 - 1, 2**63, 2**63 + 1, 10**30]


@pytest.mark.parametrize("out", ["head", "start-over"])
@pytest.mark.parametrize("number", LARGE)
def test_a_forged_tag_stops_the_stream_only_until_somebody_says_so(bench: Bench, number: int, out: str) -> None:
    for generation, sequence in ((number, 9), (1, number)):
        tag_forged(bench, generation, sequence)
        with pytest.raises(Refused, match=r"look who may commit offsets of the group; then .*--to head") as refused:
            ingest(bench)
        assert refused.value.facts["doubt"] == "unreadable"
        before = bench.tables.snapshots[-1].generation
        rewind(bench, Target(out))
        assert bench.tables.snapshots[-1].generation == before + 1
        ingest(bench)
    send(bench, "c", 1)
    ingest(bench)
    ingest(bench)
    assert published(bench) == {"a", "b", "c"}


def test_a_forged_tag_in_place_of_a_lost_head_is_not_followed(bench: Bench) -> None:
    tag_forged(bench)
    bench.tables.snapshots.clear()  # and no row is left of it
    with pytest.raises(Refused):
        ingest(bench)
    rewind(bench, Target("start-over"))
    assert bench.tables.snapshots[-1].generation < 10**9
    ingest(bench)
    assert len(bench.tables.rows) == len(published(bench))


@pytest.mark.parametrize("doubt", WORLDS)
def test_a_plan_is_refused_by_name_and_moves_nothing(bench: Bench, doubt: str) -> None:
    WORLDS[doubt](bench)
    group, heads = dict(bench.log.group), list(bench.tables.snapshots)
    for ask in (
        lambda: ingest(bench),
        lambda: rewind(bench, Target("earliest")),
        lambda: rewind(bench, Target(offsets={Partition(0): Offset(1)})),
        *((lambda: commit_offsets(STREAM, log=bench.log, tables=bench.tables),) if heads else ()),
    ):
        with pytest.raises(Refused, match=r"--to start-over --apply.*--to group --apply") as refused:
            ask()
        assert refused.value.facts["doubt"] == doubt
    assert bench.log.group == group
    assert bench.tables.snapshots == heads


@pytest.mark.parametrize("doubt", WORLDS)
def test_the_way_out_that_is_named_first_loses_nothing(bench: Bench, doubt: str) -> None:
    WORLDS[doubt](bench)
    with pytest.raises(Refused) as refused:
        ingest(bench)
    out = way_out(refused.value.message)
    assert out is not None
    rewind(bench, out.target)
    send(bench, "c", 1)
    ingest(bench)
    assert published(bench) >= {"a", "b", "c"}
    assert {r.waveform_id for _, r in bench.tables.rows} == {"a", "b", "c"} | ({"d"} if doubt == "restored" else set())
    assert len(bench.tables.rows) == len(published(bench))


def follow_what_refusals_say(bench: Bench) -> None:
    """Until an ingest goes through, three times at most."""
    for _ in range(3):
        with suppress(Refused):
            ingest(bench)
            return
        with pytest.raises(Refused) as refused:
            ingest(bench)
        way = way_out(refused.value.message)
        assert way is not None
        rewind(bench, way.target, accept_skip=way.accepts)


@pytest.mark.parametrize("doubt", [d for d in WORLDS if d != "lost"])
def test_where_the_topic_was_made_anew_too_the_ways_out_do_not_lead_in_a_circle(bench: Bench, doubt: str) -> None:
    WORLDS[doubt](bench)
    group = dict(bench.log.group)
    bench.log.recreate(1)
    bench.log.group = group  # what is left of the group, or was written on the new topic by what is in no catalog now
    for seq in range(2):
        send(bench, "e", seq)
    follow_what_refusals_say(bench)
    assert "e" in published(bench)
    assert len(bench.tables.rows) == len(published(bench))


@pytest.mark.parametrize("doubt", WORLDS)
def test_starting_over_reads_everything_and_publishes_nothing_twice(bench: Bench, doubt: str) -> None:
    WORLDS[doubt](bench)
    rewind(bench, Target("start-over"))
    send(bench, "c", 1)
    ingest(bench)
    assert published(bench) >= {"a", "b", "c"}
    assert len(bench.tables.rows) == len(published(bench))
    assert bench.log.group[Partition(0)].metadata == bench.tables.snapshots[-1].tag(bench.tables.uuid).encode()


def test_going_on_where_the_group_stands_names_what_is_not_read(bench: Bench) -> None:
    catalog_lost(bench)
    send(bench, "c", 1)
    with pytest.raises(Refused, match=r"would skip partition 0 \[0, 5\)"):
        rewind(bench, Target("group"))
    rewind(bench, Target("group"), accept_skip=True)
    first = bench.tables.snapshots[-1]
    assert (first.kind, first.skipped) == (HeadKind.FIRST, (span(0, 0, 5),))
    ingest(bench)
    assert published(bench) == set()


def test_a_head_after_a_restored_catalog_is_newer_than_everything_that_was_lost(bench: Bench) -> None:
    """So that a run, or another host, that still has the newer catalog is fenced, and its tag is an old one."""
    catalog_restored(bench)
    bench.log.group[Partition(0)] = GroupOffset(Offset(7), f"wavestitch/2 {bench.tables.uuid} g9 s3")
    rewind(bench, Target("head"))
    assert bench.tables.snapshots[-1].generation == 10


def test_a_group_that_was_only_reset_by_somebody_is_no_disagreement(bench: Bench) -> None:
    bench.log.reset_group(Partition(0), Offset(0))
    ingest(bench)
    assert bench.tables.snapshots[-2].kind is HeadKind.ADOPTED


def test_a_stream_that_never_had_a_head_begins_where_a_foreign_group_stands() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a", 0)
    send(bench, "a", 1)
    bench.log.reset_group(Partition(0), Offset(2))
    ingest(bench)
    assert bench.tables.snapshots[0].positions[Partition(0)].next_offset == 2


def test_a_plan_beside_a_batch_that_commits_meanwhile_is_not_refused(bench: Bench) -> None:
    """The head is looked at before the group: between the two a batch may commit and show itself."""
    send(bench, "c", 1)
    real = bench.log.group_offsets
    again: list[None] = []

    def slow(*args: object) -> dict[Partition, GroupOffset | None]:
        if not again:
            again.append(None)
            ingest(bench)
        return real(*args)  # type: ignore[arg-type]

    bench.log.group_offsets = slow  # type: ignore[assignment, method-assign]
    ingest(bench)
    assert published(bench) == {"a", "b", "c"}


def test_a_rewind_is_not_shown_over_what_a_copy_of_the_table_has_made_of_the_same_head(bench: Bench) -> None:
    """Else nobody on this side would ever hear of the copy."""
    other = bench.copied()
    theirs, ours = (
        plan_rewind(STREAM, Target(offsets={Partition(0): Offset(to)}), **where(b))
        for b, to in ((other, 3), (bench, 1))
    )
    real = bench.tables.commit

    def beside(*args: Any, **more: Any) -> Head:
        made = real(*args, **more)
        apply_rewind(STREAM, theirs, accept_skip=False, log=other.log, tables=other.tables)
        return made

    bench.tables.commit = beside  # type: ignore[method-assign]
    apply_rewind(STREAM, ours, accept_skip=False, log=bench.log, tables=bench.tables)
    heads = [b.tables.snapshots[-1] for b in (bench, other)]
    assert heads[0].version == heads[1].version, "else this is about nothing"
    shown = bench.log.group[Partition(0)]
    assert (shown.offset, shown.metadata) == (3, heads[1].tag(bench.tables.uuid).encode())
    with pytest.raises(Refused, match="two copies of this table are written to"):
        ingest(bench)


def where(bench: Bench) -> dict[str, Any]:
    return {"log": bench.log, "tables": bench.tables, "who": "a test", "why": "to see"}


def test_a_copy_that_knows_a_partition_more_is_found_out_by_its_tag_there(bench: Bench) -> None:
    """Of the same number and generation as ours, which never had that partition."""
    bench.log.add_partition()
    head = bench.tables.snapshots[-1]
    bench.log.group[Partition(1)] = GroupOffset(Offset(0), head.tag(bench.tables.uuid).encode())
    with pytest.raises(Refused, match=r"partition 1 of group .* two copies of this table are written to"):
        ingest(bench)


@pytest.mark.xfail(reason="who moves no position asks the group about the partitions of the head alone", strict=True)
def test_a_set_back_is_seen_by_who_moves_no_position_where_one_partition_alone_shows_it(bench: Bench) -> None:
    """The group's offsets of all partitions that the older catalog knows are gone."""
    before = bench.tables.snapshots[-1].sequence
    bench.log.add_partition()
    send_chunk(bench.log, "d", 0, b"d0", at_ms=START_MS, count=1, partition=1)
    ingest(bench)
    bench.tables.restore(before)
    bench.log.expire_group(Partition(0))
    with pytest.raises(Refused, match="the catalog was set back"):
        look_at_group(STREAM, log=bench.log, tables=bench.tables)
