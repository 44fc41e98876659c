"""Maintenance of real Iceberg tables: what goes, what stays, and what a batch beside it sees.

Names what it proves: I1 (held), I2, I3 (published rows), I7 (heads, fencing).
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.builders.table_rows import all_held, facts, held_row, hold, payloads, published_row, write_landing
from tests.domain.maintenance_rig import DAY_MS, STREAM, Rig, went
from wavestitch.batch.landing_facts import GATE_CLOSED, closed_gates
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.errors import BadInput, Fenced, Terminal
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.protocol import check_fence
from wavestitch.contracts.reasons import Reason
from wavestitch.maintain.run import maintain_stream
from wavestitch.maintain.stages import NAMES
from wavestitch.settings import load_settings
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.held.held_removal import held_places
from wavestitch.tables.maintenance.snapshot_expiry import expire_snapshots

pytestmark = pytest.mark.filterwarnings("error")
HOUR_MS = 3_600_000


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class TestDryRun:
    def test_a_dry_run_says_what_would_go_and_changes_nothing(self, rig):
        for n in range(4):
            rig.publish(f"w{n}")
        (rig.tables.data_folder() / "left-over.parquet").write_bytes(b"x" * 100)
        before, history = rig.files(), rig.tables.batches()
        report = rig.maintain(apply=False)
        assert not report.applied
        assert went(report, "snapshots") == 6
        assert report.before == report.after
        assert report.before.snapshots == {"waveforms": 4, "batches": 4}
        assert rig.files() == before
        assert rig.tables.batches() == history
        assert not (rig.deployment.settings.landing / STREAM).exists()

    def test_a_stream_that_nobody_wrote_to_has_nothing_to_let_go(self, rig):
        report = rig.maintain()
        assert [a.count for a in report.actions] == [0] * len(NAMES)
        assert rig.files() == set()

    def test_an_unknown_action_or_stream_is_refused_with_what_there_is(self, rig):
        with pytest.raises(BadInput, match="no action 'snapshot'; there are landing, docs, leftovers, held, junk"):
            rig.maintain("snapshot")
        with pytest.raises(BadInput, match="no stream 'eeg'"):
            maintain_stream(rig.deployment, "eeg")


class TestSnapshots:
    def test_old_ones_go_the_newest_head_stays_and_rows_are_as_before(self, rig):
        heads = [rig.publish(f"w{n}") for n in range(5)]
        report = rig.maintain("snapshots")
        assert report.before.snapshots == {"waveforms": 5, "batches": 5}
        assert report.after.snapshots == {"waveforms": 1, "batches": 1}
        assert rig.tables.heads() == [heads[-1]]
        assert rig.ids() == [f"w{n}" for n in range(5)]
        assert [b.sequence for b in rig.tables.batches()] == [5, 4, 3, 2, 1]
        assert rig.publish("w5").sequence == 6

    def test_a_head_below_maintenance_snapshots_is_found_however_little_is_to_be_kept(self, rig):
        rig.publish("a")
        head = rig.publish("b")
        for waveform_id in ("a", "b"):
            rig.tables.waveforms().delete(f"waveform_id == '{waveform_id}'")
        report = rig.maintain("snapshots")
        assert report.after.snapshots["waveforms"] == 3
        assert rig.tables.heads() == [head]

    def test_none_goes_before_its_row_stands_in_the_history(self, rig):
        first = rig.publish("a", recorded=False)
        second = rig.publish("b", recorded=False)
        third = rig.publish("c")
        shown = rig.maintain("snapshots", apply=False)
        assert went(shown, "snapshots") == 0
        assert any("head 1 does not stand in the history" in k for a in shown.actions for k in a.kept)
        # Applied, the rows that a crash prevented are written first, and then the snapshots may go.
        rig.maintain("snapshots")
        assert rig.tables.heads() == [third]
        assert [b.decision for b in rig.tables.batches()] == [third.decision, second.decision, first.decision]

    def test_age_counts_from_the_moment_a_successor_came(self, rig):
        rig.publish("a")
        rig.publish("b")
        half = now_ms()
        rig.publish("c")
        # The second one was the table until just now; the first was not any more.
        rig.maintain("snapshots", snapshot_age=HOUR_MS // 1000, most_snapshots=99, now_ms=half + HOUR_MS)
        assert [h.sequence for h in rig.tables.heads()] == [3, 2]

    def test_a_batch_under_way_keeps_its_head_until_the_limit_and_then_ends_fenced(self, rig):
        planned_on = rig.publish("a")
        plan = rig.plan(planned_on, clock_ms=now_ms())
        for n in range(3):
            rig.publish(f"later{n}")  # as backfills do: positions stay
        report = rig.maintain("snapshots")
        assert any(plan.plan_id[:16] in k for a in report.actions for k in a.kept)
        heads = rig.tables.heads()
        assert planned_on in heads
        check_fence(plan, heads[0], base_in_ancestry=True)

        rig.maintain("snapshots", now_ms=now_ms() + 2 * HOUR_MS)
        heads = rig.tables.heads()
        assert planned_on not in heads
        with pytest.raises(Fenced, match="has left the table's history"):
            check_fence(plan, heads[0], base_in_ancestry=False)

    def test_a_batch_at_a_closed_gate_keeps_its_head_and_its_folder_however_long_it_waits(self, rig):
        planned_on = rig.publish("a")
        plan = rig.plan(planned_on, clock_ms=now_ms())
        rig.deployment.folder(STREAM, plan.plan_id).write_digested(GATE_CLOSED, '{"closed": ["too few"]}')
        for n in range(3):
            rig.publish(f"later{n}")
        rig.maintain("landing", "snapshots", now_ms=now_ms() + 31 * DAY_MS)
        assert planned_on in rig.tables.heads()
        assert closed_gates(rig.deployment.settings.landing, STREAM) == [plan]
        rig.deployment.folder(STREAM, plan.plan_id).abandon(who="ada", why="the sensor was off", at_ms=0)
        rig.maintain("snapshots", now_ms=now_ms() + 31 * DAY_MS)
        assert planned_on not in rig.tables.heads()

    def test_the_folder_of_a_closed_gate_stays_where_others_have_expired_its_head(self, rig):
        planned_on = rig.publish("a")
        plan = rig.plan(planned_on, clock_ms=now_ms())
        for n in range(3):
            rig.publish(f"later{n}")
        rig.maintain("snapshots", now_ms=now_ms() + 31 * DAY_MS)
        assert planned_on not in rig.tables.heads()
        rig.deployment.folder(STREAM, plan.plan_id).write_digested(GATE_CLOSED, '{"closed": ["too few"]}')
        rig.maintain("landing", now_ms=now_ms() + 31 * DAY_MS)
        assert closed_gates(rig.deployment.settings.landing, STREAM) == [plan]

    def test_tags_branches_and_what_lies_aside_are_left_alone(self, rig):
        one = rig.publish("a")
        rig.publish("b")
        rig.publish("c")
        rig.tables.waveforms().manage_snapshots().create_tag(one.snapshot_id, "audit").commit()
        rig.maintain("snapshots")
        left = {s.snapshot_id for s in rig.tables.waveforms().metadata.snapshots}
        assert left == {one.snapshot_id, rig.tables.head().snapshot_id}
        assert rig.tables.heads() == [rig.tables.head()]

    def test_a_batch_that_commits_meanwhile_neither_loses_nor_is_lost(self, rig):
        one = rig.publish("a")
        rig.publish("b")
        stored = rig.tables.stored()[0]
        stale = stored.ensure()
        three = rig.publish("c")
        # Decided on the table before `three`, applied after it.
        assert expire_snapshots(stored, [one.snapshot_id]) == 1
        assert rig.tables.head() == three
        with pytest.raises(CommitConflict):
            stored.commit_files(stale, [], three.next().to_properties())
        # And the other way round: a commit on what was loaded before the expiry goes through.
        base = stored.ensure()
        assert expire_snapshots(stored, [h.snapshot_id for h in rig.tables.heads()[1:]]) == 1
        stored.commit_files(base, [], three.next().to_properties())
        assert [h.sequence for h in rig.tables.heads()] == [4, 3]
        assert rig.ids() == ["a", "b", "c"]

    def test_who_expires_the_same_at_the_same_time_does_no_harm(self, rig, monkeypatch):
        one = rig.publish("a")
        rig.publish("b")
        stored = rig.tables.stored()[0]
        loads = StoredTable.load

        def load_and_be_overtaken(self):
            found = loads(self)
            monkeypatch.setattr(StoredTable, "load", loads)
            expire_snapshots(rig.tables.stored()[0], [one.snapshot_id])
            return found

        monkeypatch.setattr(StoredTable, "load", load_and_be_overtaken)
        assert expire_snapshots(stored, [one.snapshot_id]) == 0
        assert [h.sequence for h in rig.tables.heads()] == [2]


class TestHeld:
    def hold(self, rig, *places, decision, sequence, wid="late", reason=Reason.OPEN, bytes_too=True):
        """Held rows that fit the pieces of the published row `wid`: place n has sequence number n."""
        piece = published_row(wid)["chunks"]
        rows = []
        landing = rig.folder / f"l-{decision}.arrow"
        write_landing(landing, [(3, o, b"x" * 8) for o in places])
        for n, offset in enumerate(places):
            seq = offset % 10
            proof = piece[seq]["piece"] if seq < len(piece) else bytes(32)
            chunk = facts(3, offset, b"x" * 8)._replace(waveform_id=wid, seq=seq, piece=proof)
            rows.append(
                held_row(
                    chunk,
                    landing=landing if bytes_too else None,
                    row=n if bytes_too else -1,
                    decision=decision,
                    sequence=sequence,
                    reason=reason,
                )
            )
        return rig.hold(rows, decision=decision, sequence=sequence)

    def test_rows_stay_until_every_retained_snapshot_has_their_waveform(self, rig):
        rig.publish("a")
        self.hold(rig, 10, 11, decision="d2", sequence=2)
        rig.publish("b", decision="d2")
        rig.publish("late", decision="d3")
        assert load_state(rig.tables, topic_id="").held == []
        # The heads before it are still there: a reader of theirs needs the rows.
        assert went(rig.maintain("held"), "held") == 0
        rig.maintain("snapshots")
        report = rig.maintain("held")
        assert went(report, "held") == 2
        assert report.actions[0].examples == ("late",)
        assert all_held(rig.tables) == []
        assert load_state(rig.tables, topic_id="").held == []

    def test_open_conflicting_and_uncommitted_rows_stay_with_their_bytes(self, rig):
        rig.publish("a")
        self.hold(rig, 10, 11, decision="d2", sequence=2)
        self.hold(rig, 20, 25, decision="other", sequence=2, wid="open one")
        rig.publish("late", decision="d2")
        rig.publish("b", decision="other")
        self.hold(rig, 35, decision="d3", sequence=3, wid="late", reason=Reason.CONFLICT)  # no such piece
        rig.publish("c", decision="d3")
        rig.maintain("snapshots")
        before = list(load_state(rig.tables, topic_id="").held)
        assert {h.chunk.offset for h in before} == {20, 25, 35}
        assert went(rig.maintain("held"), "held") == 2
        assert load_state(rig.tables, topic_id="").held == before
        to = rig.folder / "out.arrow"
        assert len(payloads(rig.tables, [h.chunk.key for h in before], to)) == 3

    def test_all_rows_of_a_place_and_piece_go_together_or_not_at_all(self, rig):
        rig.publish("a")
        self.hold(rig, 10, 11, decision="d2", sequence=2)
        self.hold(rig, 10, decision="d3", sequence=3, bytes_too=False)  # its reason changed
        self.hold(rig, 11, decision="d3x", sequence=4, wid="nobody")  # another record has its place now
        rig.publish("late", decision="d2")
        rig.publish("b", decision="d3")
        rig.maintain("snapshots")
        rig.maintain("held")
        assert {(h.chunk.offset, h.decision) for h in all_held(rig.tables)} == {(11, "d3x")}

    def test_a_batch_that_commits_meanwhile_wins(self, rig):
        rig.publish("a")
        self.hold(rig, 10, 11, decision="d2", sequence=2)
        before = rig.publish("late", decision="d2")
        (place, *_) = held_places(rig.tables.stored()[1].load(), before.held)
        self.hold(rig, 40, decision="d9", sequence=9, wid="new")
        with pytest.raises(CommitConflict):
            rig.tables.rewrite_held(before, {place.file: {0, 1}}, counts={}, note="")
        rig.tables.settle_held()
        assert {h.chunk.offset for h in all_held(rig.tables)} == {10, 11, 40}

    def test_what_is_no_chunk_goes_by_age_unopened_and_nothing_else_does(self, rig, monkeypatch):
        rig.publish("a")
        junk = [facts(0, n, b"", reason=Reason.NOT_A_CHUNK)._replace(waveform_id=None) for n in range(5)]
        for n, held_ms in enumerate((0, 10 * HOUR_MS)):
            some = junk[2 * n : 2 * n + 2]
            rows = [held_row(c, landing=None, decision=f"j{n}", reason=Reason.NOT_A_CHUNK) for c in some]
            hold(rig.tables, rows, clock_ms=held_ms)
        self.hold(rig, 30, decision="d5", sequence=5, wid="open one")
        report = rig.maintain("junk", apply=False, now_ms=11 * HOUR_MS, junk=2 * 3600)
        assert went(report, "junk") == 2
        assert len(all_held(rig.tables)) == 5
        assert went(rig.maintain("junk", now_ms=11 * HOUR_MS, junk=2 * 3600), "junk") == 2
        assert sorted(h.chunk.offset for h in all_held(rig.tables)) == [2, 3, 30]
        assert rig.tables.head().held.counts == {"not_a_chunk": 2, "open": 1}
        assert rig.tables.head().positions[0].next_offset == 5

    def test_what_a_retained_head_names_stays_readable(self, rig):
        rig.publish("a")
        older = self.hold(rig, 10, 11, decision="d2", sequence=2)
        rig.publish("late", decision="d2")
        for n in range(3):
            rig.publish(f"more {n}")
        rig.maintain("snapshots", most_snapshots=5, least_snapshots=5)
        assert older.sequence in {h.sequence for h in rig.tables.heads()}
        assert len(rig.tables.held(older.held, HeldLook(everything=True))) == 2


class TestSettings:
    def test_limits_are_set_for_all_and_for_single_streams(self, tmp_path, rig):
        text = (rig.folder / "wavestitch.toml").read_text()
        path = tmp_path / "more.toml"
        path.write_text(text + '[maintain]\nsnapshot_age = "2 d"\n[maintain.streams.ecg]\nmost_snapshots = 30\n')
        found = load_settings({"WAVESTITCH_CONFIG": str(path)}).maintain
        assert (found.of("ecg").snapshot_age, found.of("ecg").most_snapshots) == (2 * 86400, 30)
        assert (found.of("eeg").snapshot_age, found.of("eeg").most_snapshots) == (2 * 86400, 100)

    @pytest.mark.parametrize(
        "lines",
        ['[maintain]\norphan_age = "1 m"\n', "[maintain.streams.ecg]\nmost = 3\n", "[maintain]\nsmall_files = 1\n"],
    )
    def test_what_would_be_unsafe_or_is_unknown_is_refused(self, tmp_path, rig, lines):
        path = tmp_path / "more.toml"
        path.write_text((rig.folder / "wavestitch.toml").read_text() + lines)
        with pytest.raises(BadInput, match="maintain"):
            load_settings({"WAVESTITCH_CONFIG": str(path)})


def test_a_table_whose_head_was_expired_by_others_is_refused_and_not_made_worse(rig):
    one = rig.publish("a")
    rig.tables.waveforms().delete("waveform_id == 'a'")
    rig.tables.waveforms().maintenance.expire_snapshots().by_id(one.snapshot_id).commit()
    files = rig.files()
    with pytest.raises(Terminal, match=r"landing of ecg: .*expired.*; snapshots of ecg: .*expired"):
        rig.maintain()
    assert rig.files() == files
