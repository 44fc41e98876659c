"""Files and folders that nothing names any more go with maintenance, and nothing else does."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from tests.builders.table_rows import published_row, stage
from tests.domain.maintenance_rig import STREAM, Rig, went
from wavestitch.batch.kept_previews import keep_rejection
from wavestitch.contracts.errors import Fenced
from wavestitch.contracts.preview_answer import Rejected
from wavestitch.contracts.quantities import EpochMs

HOUR_MS = 3_600_000


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class TestOrphans:
    def test_what_nothing_names_goes_when_it_was_found_so_for_long_enough(self, rig):
        rig.publish("a")
        left = rig.tables.data_folder() / "dead-batch.parquet"
        left.write_bytes(b"x" * 100)
        foreign = rig.tables.data_folder() / "README.txt"
        foreign.write_text("somebody else's")
        named = rig.files()
        age = {"orphan_age": 3600}
        later = now_ms() + 2 * HOUR_MS
        first = rig.maintain("orphans", now_ms=later, **age)
        assert went(first, "orphans") == 0
        assert first.actions[0].facts["waiting"] == 1
        assert went(rig.maintain("orphans", now_ms=later + HOUR_MS - 1, **age), "orphans") == 0
        second = rig.maintain("orphans", now_ms=later + HOUR_MS, **age)
        assert went(second, "orphans") == 1
        assert second.actions[0].bytes == 100
        assert named - rig.files() == {str(left.relative_to(rig.folder))}
        assert rig.ids() == ["a"]

    def test_a_file_in_the_making_is_not_even_looked_at(self, rig):
        rig.publish("a")
        fresh = rig.tables.data_folder() / "in-the-making.parquet"
        fresh.write_bytes(b"x")
        assert went(rig.maintain("orphans", orphan_age=3600), "orphans") == 0
        assert fresh.exists()

    def test_files_of_expired_snapshots_go_and_every_retained_snapshot_stays_readable(self, rig):
        rig.publish("a")
        rig.publish("b")
        rig.tables.waveforms().delete("waveform_id == 'b'")
        rig.publish("c")
        before = rig.files("warehouse/**/*.parquet")
        rig.maintain("snapshots", "orphans", least_snapshots=2, most_snapshots=2)
        gone = before - rig.files("warehouse/**/*.parquet")
        assert {Path(g).name for g in gone} == {"f2.parquet"}
        table = rig.tables.waveforms()
        assert len(table.metadata.snapshots) == 2
        for snapshot in table.metadata.snapshots:
            assert "a" in table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["waveform_id"].to_pylist()

    def test_what_a_batch_under_way_has_staged_stays_and_is_published_afterwards(self, rig):
        head = rig.publish("a")
        plan = rig.plan(head, clock_ms=now_ms())
        staged = stage(rig.tables.data_folder(), f"{plan.plan_id[:16]}-0-00", [published_row("staged")])
        rest = stage(rig.tables.data_folder(), "0123456789abcdef-0-00", [published_row("of nobody")])
        old = now_ms() / 1000 - 10 * 86400
        for f in (staged, rest):
            os.utime(f.path, (old, old))
        assert went(rig.maintain("orphans", orphan_age=86400), "orphans") == 0
        rig.maintain("orphans")
        assert Path(staged.path).exists()
        assert not Path(rest.path).exists()
        rig.tables.commit(head, head.next(), [staged])
        assert rig.ids() == ["a", "staged"]

    def test_a_plan_that_cannot_be_read_protects_its_files_too(self, rig):
        head = rig.publish("a")
        plan = rig.plan(head, clock_ms=now_ms())
        path = rig.deployment.folder(STREAM, plan.plan_id).path / "plan.json"
        path.write_text('{"format": 99}')
        staged = stage(rig.tables.data_folder(), f"{plan.plan_id[:16]}-0-00", [published_row("staged")])
        report = rig.maintain("landing", "orphans")
        assert any("format 99" in k for k in report.actions[0].kept)
        assert Path(staged.path).exists()
        assert path.exists()

    def test_a_warehouse_that_is_damaged_lets_nothing_go(self, rig):
        rig.publish("a")
        left = rig.tables.data_folder() / "dead-batch.parquet"
        left.write_bytes(b"x")
        manifest = next(iter(rig.folder.glob("warehouse/ecg/waveforms/metadata/*-m0.avro")))
        manifest.unlink()
        with pytest.raises(Exception, match=manifest.name):
            rig.maintain("orphans")
        assert left.exists()


class TestDeadVerifications:
    def test_what_a_killed_one_left_goes_and_what_a_living_one_works_on_stays(self, rig):
        rig.publish("a")
        dead, living = (rig.folder / "landing" / STREAM / f".verify-{n:016x}" for n in range(2))
        for folder in (dead, living):
            (folder / STREAM / "plan").mkdir(parents=True)
            (folder / STREAM / "plan" / "slice.arrow").write_bytes(b"x" * 100)
            (folder / ".lock").touch()
        assert went(rig.maintain("leftovers", orphan_age=3600), "leftovers") == 0, "all of it is young"
        with (living / ".lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert went(rig.maintain("leftovers"), "leftovers") == 2
        assert not dead.exists()
        assert living.exists()


class TestPreviews:
    def test_what_nobody_may_do_any_more_goes_and_a_dry_run_names_it_first(self, rig):
        rig.publish("a")
        landing = rig.folder / "landing"
        kept = landing / STREAM / "rewinds" / f"{1:032x}.json"
        keep_rejection(landing, STREAM, f"{1:032x}", Rejected("eve", "no", EpochMs(now_ms())))
        said = landing / STREAM / "rejected" / kept.name
        kept.parent.mkdir()
        kept.write_text("{}")
        foreign = kept.with_name("notes.txt")
        foreign.write_text("somebody's own")
        link = kept.with_name(f"{2:032x}.json")
        link.symlink_to(foreign)
        day = 24 * HOUR_MS
        assert went(rig.maintain("leftovers", now_ms=now_ms() + 6 * day), "leftovers") == 0
        os.utime(kept, (time.time() - 2 * 86400, time.time() - 2 * 86400))
        shown = rig.maintain("leftovers", apply=False, now_ms=now_ms() + 6 * day)
        assert went(shown, "leftovers") == 1
        assert shown.actions[0].examples == (kept.name,)
        assert kept.exists()
        assert went(rig.maintain("leftovers", now_ms=now_ms() + 6 * day), "leftovers") == 1
        assert (kept.exists(), said.exists()) == (False, True), "that it was rejected goes after it"
        assert went(rig.maintain("leftovers", now_ms=now_ms() + 8 * day), "leftovers") == 1
        assert (said.exists(), foreign.exists(), link.is_symlink()) == (False, True, True)


class TestAbandonedBatches:
    def test_an_abandoned_batch_cannot_be_carried_through_and_goes_with_what_it_staged(self, rig):
        head = rig.publish("a")
        plan = rig.plan(head, clock_ms=now_ms())
        folder = rig.deployment.folder(STREAM, plan.plan_id)
        (folder.path / "slice-0-5-9-aa.arrow").write_bytes(b"x" * 1000)
        staged = stage(rig.tables.data_folder(), f"{plan.plan_id[:16]}-0-00", [published_row("staged")])
        assert went(rig.maintain("landing", "orphans"), "landing") == 0
        folder.abandon(who="ops", why="a bad day", at_ms=now_ms())
        with pytest.raises(Fenced, match=r"abandoned by ops \(a bad day\)"):
            folder.plan()
        later = now_ms() + HOUR_MS
        assert went(rig.maintain("landing", "orphans", given_up_batches=7200, now_ms=later), "landing") == 0
        assert Path(staged.path).exists()
        rig.maintain("landing", "orphans", given_up_batches=1800, now_ms=later)
        assert not folder.path.exists()
        assert not Path(staged.path).exists()

    def test_a_batch_that_can_never_commit_any_more_goes_without_being_abandoned(self, rig):
        head = rig.publish("a")
        plan = rig.plan(head, clock_ms=now_ms())
        rewound = rig.publish(generation=2)
        waiting = rig.plan(rewound, clock_ms=now_ms(), nonce="m")
        rig.maintain("landing")
        assert not rig.deployment.folder(STREAM, plan.plan_id).path.exists()
        assert rig.deployment.folder(STREAM, waiting.plan_id).path.exists()

    def test_what_is_no_batch_folder_is_not_touched(self, rig):
        rig.publish("a")
        mine = rig.deployment.settings.landing / STREAM / "notes"
        mine.mkdir(parents=True)
        (mine / "text").write_text("?")
        rig.maintain("landing")
        assert (mine / "text").exists()
