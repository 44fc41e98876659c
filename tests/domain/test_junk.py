"""One misdirected producer does not stop a stream: beyond a limit records that are no chunks are held without bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders.records import metadata
from tests.builders.table_rows import facts, held_row, hold, write_landing
from tests.domain.held_world import ONE, TWO, T, World
from tests.fakes.batch import Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from tests.fakes.sight import look_around
from tests.guarantees import NoLoss
from wavestitch.batch import publish
from wavestitch.batch.held_decision import plan_held
from wavestitch.batch.held_records import find_records, refuse_records, refuse_without_bytes
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import Planning, PlanRequest, plan_batch
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.batch.walk import Walk
from wavestitch.contracts.chunk_header import record_digest
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.held_quota import said_of_junk
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.raw_headers import kept_bytes
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")
HEADERS = (("x", b"y"),)
BESIDE = kept_bytes(b"k", HEADERS, None)
KEPT = 10 + 2 * BESIDE
"""Bytes of records that are no chunks that the stream keeps."""


class Flooded(World):
    def __init__(self, **limits: Any) -> None:
        super().__init__()
        self.stream = self.stream.model_copy(update={"limits": Limits(max_junk_bytes=KEPT, **limits)})

    def misdirect(self, *values: bytes | None) -> None:
        for value in values:
            self.bench.log.append(Partition(0), T, b"k", HEADERS, value)

    def check(self) -> None:
        sight = look_around(self.bench, allowed_lateness_ms=3_600_000, junk_bytes=KEPT)
        for guarantee in self.guarantees:
            guarantee.check(sight)

    def junk(self) -> dict[int, tuple[bytes | None, bool]]:
        """By offset, its bytes and whether the table has them."""
        rows = self.bench.tables.held_rows()
        return {r.held.chunk.offset: (r.payload, r.stored) for r in rows if r.held.chunk.reason is not None}

    def rewind(self) -> None:
        log, tables = self.bench.log, self.bench.tables
        found = plan_rewind(self.stream, Target(word="earliest"), log=log, tables=tables, who="ops", why="once more")
        apply_rewind(self.stream, found, accept_skip=False, log=log, tables=tables)

    def plan(self) -> Plan:
        walk = Walk(self.stream, self.bench.log, self.bench.tables)
        found = plan_batch(self.stream, PlanRequest(), walk=walk, by=Planning(EpochMs(T + 99), "n", "test"))
        assert isinstance(found, Plan)
        return found


class AskedLog(FakeLog):
    """`asked`: the partitions of each question about where they end."""

    asked: list[tuple[Partition, ...]]

    def ends(self, topic: str, partitions: Sequence[Partition]) -> dict[Partition, PartitionEnds]:
        self.asked = [*getattr(self, "asked", []), tuple(partitions)]
        return super().ends(topic, partitions)


@pytest.fixture
def world() -> Flooded:
    return Flooded()


def test_the_stream_goes_on_and_every_offset_is_explained(world: Flooded) -> None:
    world.send("w", 0, ONE)
    world.misdirect(b"junk", b"junk2", b"more", b"j", None)
    world.send("w", 1, TWO)
    world.ingest()
    assert world.published() == {"w": ONE + TWO}
    # The first are kept whole; from the first one that finds no room on, none is.
    assert world.junk() == {
        1: (b"junk", True),
        2: (b"junk2", True),
        3: (None, False),
        4: (None, False),
        5: (None, False),
    }
    row = world.bench.tables.history[-1]
    assert row.identity_balances
    assert (row.counts["quarantined"], row.without_bytes) == (5, {"0": [3, 3, 6]})
    for value, held in zip((b"more", b"j", None), [r.held for r in world.bench.tables.held_rows()][-3:], strict=True):
        expected = "null_value" if value is None else "not_a_chunk"
        assert (held.chunk.length, held.reason.value) == (BESIDE + len(value or b""), expected)
        assert held.chunk.piece == record_digest(b"k", HEADERS, value)


def test_a_flood_over_many_batches_keeps_no_more_bytes_than_the_limit(world: Flooded) -> None:
    for n in range(5):
        world.misdirect(*[b"flood"] * 4)
        world.send(f"w{n}", 0, ONE, count=1, at=T + n)
        world.ingest()
    assert len(world.published()) == 5
    assert sum(BESIDE + len(value) for value, stored in world.junk().values() if stored and value) == KEPT
    assert world.bench.tables.head().held.counts == {"not_a_chunk": 20}


def test_bytes_of_keys_and_headers_count_as_those_of_values_do(world: Flooded) -> None:
    for key, headers in ((b"k" * 100, ()), (None, (("n" * 100, b""),)), (None, (("x", b"v" * 100),))):
        world.bench.log.append(Partition(0), T, key, headers, b"")
    world.ingest()
    assert [stored for _, stored in world.junk().values()] == [False] * 3


def test_what_a_flood_takes_is_not_taken_from_the_waveforms() -> None:
    world = Flooded(max_held_rows=2, max_held_bytes=2 * (len(ONE) + len(metadata(T))))
    world.misdirect(*[b"flood"] * 50)
    world.send("w", 0, ONE)
    world.send("v", 0, ONE)
    world.ingest()
    assert world.held() == {"w": {"open"}, "v": {"open"}}


def test_chunks_of_waveforms_beyond_the_quota_are_refused_by_their_own_place_and_keep_their_bytes() -> None:
    world = Flooded(max_held_rows=2)
    for n in range(2):
        world.send(f"w{n}", 0, ONE)
    world.ingest()
    world.misdirect(*[b"flood"] * 50)
    world.send("x", 0, ONE)
    with pytest.raises(Refused, match=r"3 rows in .* are of partition 0, offsets 52 to 52 \(1 open\)"):
        world.ingest()
    assert len(world.junk()) == 0
    world.stream = world.stream.model_copy(update={"limits": Limits(max_junk_bytes=KEPT, max_held_rows=3)})
    world.ingest()
    assert set(world.held()) == {"w0", "w1", "x"}


def test_a_record_without_bytes_that_comes_again_is_a_replay(world: Flooded) -> None:
    world.misdirect(b"first", b"second")
    world.ingest()
    world.rewind()
    world.ingest()
    assert set(world.junk()) == {0, 1}
    assert world.bench.tables.history[-1].counts["replay"] == 2
    assert world.bench.tables.head().held.counts == {"not_a_chunk": 2}


def test_the_operator_sees_where_it_comes_from(world: Flooded) -> None:
    world.misdirect(b"first", b"second")
    done = world.ingest()
    said = "1 records that are no chunks were held without their bytes"
    (remark,) = done.published.remarks
    assert said in remark
    assert "(1 of partition 0, offsets 1 to 1)" in remark
    world.send("w", 0, ONE)
    tables = world.bench.tables
    in_status = said_of_junk(world.stream, tables.head().held, tables.history[::-1])
    for text in (in_status, world.plan().remarks[-1]):
        assert f"take {5 + BESIDE} bytes of the {KEPT} that limits.max_junk_bytes allows" in text
        assert said in text


def test_nothing_is_said_where_there_is_room(world: Flooded) -> None:
    world.misdirect(b"junk")
    done = world.ingest()
    world.send("w", 0, ONE)
    tables = world.bench.tables
    assert done.published.remarks == ()
    assert said_of_junk(world.stream, tables.head().held, tables.history) == ""
    assert not any("max_junk_bytes" in remark for remark in world.plan().remarks)


@pytest.mark.parametrize("kept", [None, 10_000])
def test_the_guarantee_sees_bytes_that_were_dropped_without_need(world: Flooded, kept: int | None) -> None:
    world.misdirect(b"first", b"second")
    world.ingest()
    with pytest.raises(AssertionError, match=r"I1: .* is held without its bytes"):
        NoLoss().check(look_around(world.bench, allowed_lateness_ms=3_600_000, junk_bytes=kept))


def test_the_guarantee_sees_bytes_of_a_chunk_that_were_dropped(world: Flooded, monkeypatch: pytest.MonkeyPatch) -> None:
    every = lambda plan, decision, held: frozenset(h.chunk.key for h in decision.holds)  # noqa: E731
    monkeypatch.setattr(publish, "check_quota", every)
    world.misdirect(b"first", b"second", b"third")
    world.send("w", 0, ONE)
    with pytest.raises(AssertionError, match=r"I1: .* is held without its bytes"):
        world.ingest()


class TestARecordByItsPlace:
    def test_the_log_is_asked_once_for_all_and_not_of_a_partition_that_it_does_not_show(self, world: Flooded) -> None:
        world.misdirect(b"first", b"second", b"third")
        world.ingest()
        tables, log, asked = world.bench.tables, world.bench.log, []
        steps = Steps(lambda: asked.extend(find_records(tables, log, world.stream, ["0:0", "0:1", "0:2"])))
        steps.finish()
        assert [steps.trace.count(name) for name in ("log.topic", "log.ends")] == [1, 1]
        assert all("topic waves has it at partition 0" in found.in_log for found in asked)
        log.lag(1, shows=0)
        (found,) = self.find(world, "0:0")
        assert found.in_log == "whether topic waves has it is not known (the broker shows no partition 0 of it)"

    def test_the_broker_is_asked_of_no_partition_for_what_was_in_another_topic_of_that_name(self) -> None:
        world = Flooded()
        world.bench.log = log = AskedLog("waves", 1)
        world.misdirect(b"first")
        world.ingest()
        old = log.topic_id
        log.recreate(1)
        log.asked = []
        (found,) = self.find(world, f"{old}:0:0")
        assert found.in_log == f"it was in topic id {old}, which waves is no more"
        assert log.asked == [()]

    def find(self, world: Flooded, place: str) -> Any:
        return find_records(world.bench.tables, world.bench.log, world.stream, [place])

    def test_it_is_shown_and_without_bytes_refused_by_name_with_its_place_in_the_log(self, world: Flooded) -> None:
        world.misdirect(b"first", b"second")
        world.ingest()
        kept, bare = self.find(world, "0:0"), self.find(world, "0:1")
        refuse_without_bytes(kept, world.stream)
        with pytest.raises(
            Refused, match=r"partition 0 offset 1 \(not_a_chunk, 17 bytes, sha-256 .*topic waves has it at"
        ):
            refuse_without_bytes(bare, world.stream)
        world.misdirect(b"third")
        world.bench.log.retain_from(Partition(0), Offset(2))
        with pytest.raises(Refused, match="topic waves has it no more: partition 0 begins at offset 2"):
            refuse_without_bytes(self.find(world, "0:1"), world.stream)

    def test_no_decision_takes_it_up(self, world: Flooded) -> None:
        world.misdirect(b"first", b"second")
        world.ingest()
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        for place, said in (("0:0", "is no chunk, so no decision takes it up"), ("0:1", "held without its bytes")):
            with pytest.raises(Refused, match=said):
                plan_held(edges, HeldAction.REDRIVE, Selection(ids=(place,)), who="ops", why="again")

    def test_what_is_meant_is_looked_for_once_however_many_ids_are_named(self, world: Flooded) -> None:
        world.misdirect(b"first")
        world.send("w", 0, ONE, count=2, meta=metadata(T))
        world.ingest()
        ids = [*(f"w{n}" for n in range(9)), *(f"0:{n}" for n in range(1, 9))]
        tables, log = world.bench.tables, world.bench.log
        nothing = Steps(lambda: refuse_records(tables, log, world.stream, ids))
        nothing.finish()
        assert (nothing.error, nothing.trace) == (None, ["start", "tables.head", "tables.held"])
        found = Steps(lambda: refuse_records(tables, log, world.stream, [*ids, "0:0"]))
        found.finish()
        assert isinstance(found.error, Refused)
        assert found.trace == [*nothing.trace, "log.topic", "log.ends"]

    @pytest.mark.parametrize("text", ["7", "x:1", "0:-1", "a:b:c:d", "0:9" + "9" * 30])
    def test_what_is_no_place_is_refused(self, world: Flooded, text: str) -> None:
        world.misdirect(b"first")
        world.ingest()
        with pytest.raises(BadInput, match="is no place"):
            self.find(world, text)

    def test_a_place_that_nothing_is_held_from_is_refused(self, world: Flooded) -> None:
        world.misdirect(b"first")
        world.send("w", 0, ONE, count=1, meta=metadata(T))
        world.ingest()
        with pytest.raises(BadInput, match="nothing is held from 0:1"):
            self.find(world, "0:1")


def test_a_stream_goes_on_that_holds_nothing_but_records_that_are_no_chunks(tmp_path: Path) -> None:
    settings = CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse")
    tables = StreamTables(settings, "ecg", id_index=IdIndex(tmp_path / "cache"))
    reason = Reason.NOT_A_CHUNK
    head = hold(tables, [held_row(facts(0, n, b"", reason=reason), landing=None, reason=reason) for n in range(3)])
    assert tables.held(head.held, HeldLook(ids=frozenset({"w0"}))) == []


def test_what_a_record_says_of_itself_is_not_kept_without_its_bytes(tmp_path: Path) -> None:
    """However long its producer makes it. It is still known again at its place, by what it was."""
    tables = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    said = facts(0, 0, b"bare", reason=Reason.BAD_ID)._replace(waveform_id="i" * 256, evidence="e" * 300)
    head = hold(tables, [held_row(said, landing=None, row=0, reason=Reason.BAD_ID)])
    (found,) = tables.held(head.held, HeldLook(coordinates=frozenset({said.coordinate})))
    assert (found.chunk.waveform_id, found.chunk.seq, found.evidence, found.chunk.evidence) == (None, None, "", None)
    assert (found.key, found.chunk.length, found.reason) == (said.key, said.length, Reason.BAD_ID)


def test_the_table_tells_a_record_without_bytes_from_one_with(tmp_path: Path) -> None:
    tables = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    landing = write_landing(tmp_path / "l.arrow", [(0, 0, b"whole"), (0, 1, b"bare")])
    reason = Reason.NOT_A_CHUNK
    whole, bare = (facts(0, n, value, reason=reason) for n, value in enumerate((b"whole", b"bare")))
    waits = facts(1, 0, b"waits")
    other = write_landing(tmp_path / "o.arrow", [(1, 0, b"waits")])
    head = hold(
        tables,
        [
            held_row(whole, landing=landing, row=0, reason=reason),
            held_row(bare, landing=None, row=1, reason=reason),
            held_row(waits, landing=other, row=0),
        ],
    )
    found = tables.held(head.held, HeldLook(coordinates=frozenset({whole.coordinate, bare.coordinate})))
    assert {(h.chunk.offset, h.stored, h.chunk.length) for h in found} == {(0, True, 5), (1, False, 4)}
    sizes = {f.reason: f.bytes for f in tables.held_files(head.held)}
    assert head.held.junk_bytes == sizes["not_a_chunk"]
    assert head.held.bytes == sum(sizes.values())
    assert head.held.waveform_rows == 1
