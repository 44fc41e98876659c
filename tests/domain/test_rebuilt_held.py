"""What is held under a head that is made anew: found in the held table, and what is missing there is named.

The tables are real (Iceberg on SQLite), the log is in memory.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders.table_rows import all_held, held_rows, stage_held, write_landing
from tests.domain.held_rig import held_rig
from tests.domain.maintenance_rig import Rig
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.found_held import find_held
from wavestitch.batch.plan import Planning, PlanRequest, plan_batch
from wavestitch.batch.rewind import Rewind, apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.batch.walk import Walk
from wavestitch.contracts.errors import Altered, BadInput, Refused
from wavestitch.contracts.ports import HeldRow, HeldStaging
from wavestitch.contracts.position import Head, HeadKind, Position
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream
from wavestitch.tables.commit.stored_table import StoredTable

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match")
STREAM = Stream(name="ecg", topic="t", group="g")
ROWS = [(0, n, b"%d" % n) for n in range(4)]


class Place:
    """A published waveform, four chunks held; the log begins at 8, and holds nothing from there on."""

    def __init__(self, tmp_path: Path, *, settled: bool = True, recorded: bool = True) -> None:
        self.rig, self.log = Rig(tmp_path / "rig"), FakeLog("t", 2)
        self.tables = self.rig.tables
        self.rig.publish("a", topic_id=self.log.topic_id)
        base = self.tables.head()
        mark = stage_held(self.tables, base, self.rows(tmp_path, base.sequence + 1))
        made = self.tables.commit(
            base, base.next(held=mark, decision="dA", positions=dict.fromkeys((0, 1), Position(Offset(8)))), []
        )
        if recorded:
            self.rig.record(made)
        if settled:
            self.tables.settle_held()
        for p in (0, 1):
            for _ in range(10):
                self.log.append(Partition(p), 1, b"k", [], b"v")
            self.log.retain_from(Partition(p), Offset(8))
        self.log.commit_group("g", "t", made.positions, made.tag(self.tables.table_uuid()).encode())

    def rows(self, tmp_path: Path, sequence: int) -> list[HeldRow]:
        landing = write_landing(tmp_path / "l.arrow", ROWS)
        return held_rows(landing, ROWS, decision="dA", sequence=sequence)

    def discard(self) -> None:
        """An operator's decision about all that is held."""
        base = self.tables.head()
        rows = [
            HeldRow(
                replace(h, reason=Reason.DISCARDED, decision="dB", sequence=base.sequence + 1, stored=False), None, -1
            )
            for h in all_held(self.tables)
        ]
        size = base.held.chunk_bytes
        staging = HeldStaging("plan-b", "dB", base.generation, base.sequence + 1, {"discarded": 4}, size, EpochMs(1))
        mark = self.tables.stage_held(base.held, rows, staging=staging)
        made = self.tables.commit(base, base.next(held=mark, decision="dB"), [])
        self.rig.record(made)
        self.tables.settle_held()
        self.log.commit_group("g", "t", made.positions, made.tag(self.tables.table_uuid()).encode())

    @property
    def held_table(self) -> StoredTable:
        return self.tables.stored()[1]

    def lose_the_head(self) -> None:
        """As another engine does it: a snapshot of its own is newest, and all others go."""
        table = self.tables.waveforms()
        table.append(table.scan().to_arrow().slice(0, 0))
        expire_all_but_main(self.tables.stored()[0])

    def look(self, word: str = "rebuilt", **how: Any) -> Rewind:
        return plan_rewind(STREAM, Target(word), log=self.log, tables=self.tables, who="ops", why="seen", **how)

    def apply(self, found: Rewind, **accepted: bool) -> Head:
        accepted = {"accept_skip": False, **accepted}
        return apply_rewind(STREAM, found, **accepted, log=self.log, tables=self.tables)

    def offsets(self) -> list[int]:
        return sorted(h.chunk.offset for h in all_held(self.tables))


def expire_all_but_main(stored: StoredTable) -> None:
    table = stored.load()
    keep = table.metadata.current_snapshot_id
    refs = {ref.snapshot_id for ref in table.metadata.refs.values()}
    going = [s.snapshot_id for s in table.metadata.snapshots if s.snapshot_id not in {keep, *refs}]
    table.maintenance.expire_snapshots().by_ids(going).commit()


class TestStagedAndNotSettled:
    """The run died right after its commit, before main of the held table followed."""

    def test_what_the_history_knows_as_committed_is_held(self, tmp_path: Path) -> None:
        place = Place(tmp_path, settled=False)
        place.lose_the_head()
        found = place.look()
        assert (found.missing, found.skipped) == ((), ())
        head = place.apply(found)
        assert place.offsets() == [0, 1, 2, 3]
        assert head.held.counts == {"open": 4}
        assert {p: at.next_offset for p, at in head.positions.items()} == {0: 8, 1: 8}
        place.tables.settle_held()
        assert place.offsets() == [0, 1, 2, 3]

    def test_what_nobody_knows_is_shown_with_its_places_and_not_taken(self, tmp_path: Path) -> None:
        place = Place(tmp_path, settled=False, recorded=False)
        place.lose_the_head()
        found = place.look()
        said = next(r for r in found.remarks if "nobody knows whether its decision was committed" in r)
        assert "4 chunks more: w0 chunk 0 at partition 0 offset 0; w0 chunk 1 at partition 0 offset 1" in said
        assert [str(r) for r in found.skipped] == ["partition 0 [0, 8)", "partition 1 [0, 8)"]
        with pytest.raises(Refused, match="would skip partition 0"):
            place.apply(found)
        head = place.apply(found, accept_skip=True)
        assert (head.held, [str(r) for r in head.skipped]) == (None, ["partition 0 [0, 8)", "partition 1 [0, 8)"])
        assert head.note == "head rebuilt by ops: seen; not taken: 4 held chunks, staged"
        place.tables.settle_held()
        assert place.offsets() == []

    def test_an_operator_may_take_it_by_name(self, tmp_path: Path) -> None:
        place = Place(tmp_path, settled=False, recorded=False)
        place.lose_the_head()
        (staged,) = place.tables.held_left().beside
        head = place.apply(place.look(held=staged.snapshot_id), accept_skip=True)
        assert head.held.snapshot_id == staged.snapshot_id
        place.tables.settle_held()
        assert place.offsets() == [0, 1, 2, 3]

    def test_a_snapshot_that_is_not_there_is_refused_with_those_that_are(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        place.lose_the_head()
        with pytest.raises(Refused, match=r"no snapshot 7; it has .*\(4 rows, staged for head 2\)"):
            place.look(held=7)


class TestRowsThatSomebodyTookOut:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        made = Place(tmp_path)
        made.held_table.load().delete("offset = 1")
        return made

    def test_as_long_as_the_head_is_there_it_names_what_it_named(self, place: Place) -> None:
        assert place.offsets() == [0, 1, 2, 3]
        place.tables.settle_held()
        assert place.held_table.load().metadata.current_snapshot_id == place.tables.head().held.snapshot_id

    def test_under_a_rebuilt_head_they_are_named_with_the_way_to_take_them_back(self, place: Place) -> None:
        place.lose_the_head()
        found = place.look()
        assert [m.what for m in found.missing] == ["1 held chunks"]
        assert "w0 chunk 1 at partition 0 offset 1" in found.missing[0].said
        with pytest.raises(Refused, match=r"--held \d+`. Put it back, or say --accept-missing"):
            place.apply(found)
        ours = next(s for s in place.tables.held_left().main if s.decision)
        back = place.look(held=ours.snapshot_id)
        assert back.missing == ()
        place.apply(back)
        assert place.offsets() == [0, 1, 2, 3]

    def test_accepted_by_name_they_are_kept_in_the_heads_note(self, place: Place) -> None:
        place.lose_the_head()
        head = place.apply(place.look(), accept_missing=True)
        assert head.note == "head rebuilt by ops: seen; accepted as missing: 1 held chunks"
        assert place.offsets() == [0, 2, 3]
        assert head.held.counts == {"open": 3}

    def test_where_the_older_snapshot_is_gone_too_their_number_is_known(self, place: Place) -> None:
        expire_all_but_main(place.held_table)
        place.lose_the_head()
        found = place.look()
        assert [m.what for m in found.missing] == ["1 held chunks, not known which"]

    def test_under_a_head_that_is_there_every_look_names_the_way_out_and_positions_stay(self, place: Place) -> None:
        before = place.tables.head()
        expire_all_but_main(place.held_table)
        with pytest.raises(Altered, match="wavestitch rewind ecg --to rebuilt"):
            place.offsets()
        found = place.look()
        assert [m.what for m in found.missing] == ["1 held chunks, not known which"]
        head = place.apply(found, accept_missing=True)
        assert (head.kind, head.positions) == (HeadKind.REBUILT, before.positions)
        assert head.version > before.version
        assert place.offsets() == [0, 2, 3]
        with pytest.raises(Refused, match="its head is there"):
            place.look()

    def test_what_is_held_by_the_head_cannot_be_exchanged(self, place: Place) -> None:
        with pytest.raises(BadInput, match="this one names what is held by itself"):
            place.look("earliest", held=1)


class TestDecisionsThatSomebodyTookOut:
    """The rows of an operator's discard are a partition of the held table; below them the chunks are held as before."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        made = Place(tmp_path)
        made.discard()
        made.held_table.load().delete("reason = 'discarded'")
        return made

    def test_under_a_rebuilt_head_they_are_named_with_the_way_to_take_them_back(self, place: Place) -> None:
        place.lose_the_head()
        found = place.look()
        assert [m.what for m in found.missing] == ["the last word on 4 held chunks"]
        assert "(4 discarded): w0 chunk 0 at partition 0 offset 0" in found.missing[0].said
        with pytest.raises(Refused, match=r"--held \d+`. Put it back, or say --accept-missing"):
            place.apply(found)
        (_, back) = found.missing[0].said.split("--held ")
        assert place.look(held=int(back.strip("`"))).missing == ()

    def test_where_the_older_snapshot_is_gone_too_their_number_is_known(self, place: Place) -> None:
        expire_all_but_main(place.held_table)
        place.lose_the_head()
        found = place.look()
        assert [m.what for m in found.missing] == ["the last word on 4 held chunks, not known which"]
        assert place.apply(found, accept_missing=True).held.counts == {"open": 4}


class TestBytesThatSomebodyTookOut:
    """The rows with the bytes are a partition of the held table; newer rows of the same chunks, without bytes, stay."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        made = Place(tmp_path)
        made.discard()
        made.held_table.load().delete("reason = 'open'")
        return made

    def test_under_a_rebuilt_head_they_are_named_with_the_way_to_take_them_back(self, place: Place) -> None:
        place.lose_the_head()
        assert [m.what for m in place.look().missing] == ["the bytes of 4 held chunks"]

    def test_where_the_older_snapshot_is_gone_too_their_places_are_known(self, place: Place) -> None:
        expire_all_but_main(place.held_table)
        place.lose_the_head()
        (missing,) = place.look().missing
        assert missing.what == "the bytes of 4 held chunks, in no snapshot"
        assert "w0 chunk 0 at partition 0 offset 0" in missing.said


class TestWaveformsTableDropped:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        made = Place(tmp_path)
        made.tables.stored()[0]._catalog.drop_table("ecg.waveforms")
        return made

    def test_beginning_anew_takes_up_what_is_held(self, place: Place) -> None:
        head = place.apply(place.look("start-over"))
        assert (head.kind, head.held.counts) == (HeadKind.FIRST, {"open": 4})
        assert head.sequence > max(h.sequence for h in all_held(place.tables)), "so that later decisions win"
        place.tables.settle_held()
        assert place.offsets() == [0, 1, 2, 3]

    def test_so_does_going_on_where_the_group_stands(self, place: Place) -> None:
        place.apply(place.look("group"), accept_skip=True)
        assert place.offsets() == [0, 1, 2, 3]

    def test_a_first_plan_does_not_forget_it_where_the_group_is_gone_too(self, place: Place) -> None:
        place.log.group.clear()
        walk = Walk(STREAM, place.log, place.tables)
        with pytest.raises(Refused, match=r"has no head, and its held table has 4 chunks.*start-over --apply"):
            plan_batch(STREAM, PlanRequest(), walk=walk, by=Planning(EpochMs(1), "n", "test"))
        place.apply(place.look("start-over"))
        assert place.offsets() == [0, 1, 2, 3]


def test_what_is_found_is_counted_by_reason_in_the_order_in_which_every_head_names_them(tmp_path: Path) -> None:
    held = [("a", 0, b"\1\0", Reason.PARKED), ("b", 0, b"\2\0", Reason.OPEN), ("c", 0, b"\3\0", Reason.CONFLICT)]
    tables = held_rig(tmp_path, held).tables
    last = tables.head()
    found = find_held(tables, tables.batches(every_table=True), last=last)
    assert found.mark == last.held
    assert list(found.mark.counts.items()) == list(last.held.counts.items())
    assert list(found.mark.counts) == ["conflict", "open", "parked"]
