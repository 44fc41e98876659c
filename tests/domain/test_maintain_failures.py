"""Maintenance goes on where a stage fails, lets nothing go where bytes were altered, and clears up after the killed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.domain.maintenance_rig import STREAM, Rig, limits, went
from wavestitch.contracts.errors import Altered, Terminal, Transient
from wavestitch.contracts.maintenance import MaintenanceReport
from wavestitch.contracts.position import GroupOffset, Head, Tag
from wavestitch.contracts.quantities import Partition
from wavestitch.maintain.run import maintain_stream, raise_failures
from wavestitch.maintain.stages import NAMES
from wavestitch.write_once import DigestingFile, scratch_file, scratch_name

pytestmark = pytest.mark.filterwarnings("error")
DAY_MS = 86_400_000


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def compaction_fails(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    """Maintenance of a stream with files to put together, where that ends in an error."""

    def maintain(error: Exception) -> MaintenanceReport:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("wavestitch.tables.maintenance.small_files.prove_same", fail)
        for n in range(3):
            rig.publish(f"w{n}")
        return maintain_stream(rig.deployment, STREAM, apply=True, limits=limits(small_files=2))

    return maintain


class TestOneStageThatFails:
    @pytest.mark.parametrize("error", [Transient("the cluster is away"), OSError("no space"), TypeError("a mistake")])
    def test_the_others_run_and_it_is_said_at_the_end(self, error, compaction_fails):
        report = compaction_fails(error)
        assert {a.action for a in report.actions} == set(NAMES) - {"compact"}
        assert went(report, "snapshots") > 0
        assert [f.stage for f in report.failures] == ["compact"]
        kind = Terminal if isinstance(error, TypeError) else Transient
        with pytest.raises(kind, match=f"compact of {STREAM}: .*{error}"):
            raise_failures([report])

    def test_all_that_failed_is_named(self, compaction_fails, monkeypatch):
        monkeypatch.setattr("wavestitch.maintain.leftovers._scratch_files", _raise_no_right)
        report = compaction_fails(Transient("the cluster is away"))
        assert [f.stage for f in report.failures] == ["leftovers", "compact"]
        with pytest.raises(Transient, match=r"2 parts of maintenance.*leftovers of ecg.*compact of ecg"):
            raise_failures([report])

    def test_where_bytes_were_altered_nothing_more_is_let_go_of(self, rig, compaction_fails):
        report = compaction_fails(Altered("compaction changed a row"))
        assert {"snapshots", "orphans"} & {a.action for a in report.actions} == set()
        assert [f.stage for f in report.failures] == ["compact", "snapshots", "orphans"]
        assert len(rig.tables.heads()) == 3
        with pytest.raises(Terminal, match=r"compaction changed a row.*snapshots of ecg: not run"):
            raise_failures([report])

    @pytest.mark.parametrize("apply", [False, True])
    def test_who_may_not_look_at_the_landing_is_told_so_before_any_stage(self, rig, apply, tmp_path):
        rig.publish("a")
        nobody_may = str(tmp_path / ("n" * 300))  # such a name is refused to root, too
        config = str(tmp_path / "wavestitch.toml")
        rig.read_settings({"WAVESTITCH_CONFIG": config, "WAVESTITCH_LANDING": nobody_may})
        with pytest.raises(Transient, match=r"what the stream takes up failed: .*; look after space and rights"):
            maintain_stream(rig.deployment, STREAM, apply=apply)

    def test_where_all_went_well_nothing_is_raised(self, rig):
        rig.publish("a")
        raise_failures([rig.maintain()])


class TestLeftovers:
    def test_what_a_killed_reader_left_goes_when_it_is_old(self, rig):
        folder = self.batch_folder(rig)
        self.killed_while_writing(folder)
        (left,) = folder.glob(".*.tmp")
        assert rig.maintain("leftovers", orphan_age=3600).actions[0].count == 0
        assert left.exists()
        report = rig.maintain("leftovers", apply=False, orphan_age=3600, now_ms=now_ms() + DAY_MS)
        assert (report.actions[0].count, report.actions[0].bytes) == (1, 1 << 20)
        assert left.exists()
        rig.maintain("leftovers", orphan_age=3600, now_ms=now_ms() + DAY_MS)
        assert not left.exists()

    def test_what_a_living_process_has_open_stays_however_old(self, rig):
        folder = self.batch_folder(rig)
        writing = DigestingFile(folder)
        with scratch_file(folder) as scratch:
            report = rig.maintain("leftovers", now_ms=now_ms() + 365 * DAY_MS)
            assert report.actions[0].count == 0
            assert "2 more are young or in use" in report.actions[0].kept
            assert all(p.exists() for p in (writing.path, scratch))
        writing.discard()
        assert list(folder.glob(".*.tmp")) == []

    @pytest.mark.parametrize(
        ("locks", "refused", "stay"),
        [
            pytest.param(fcntl.LOCK_EX, errno.EBADF, (True, False), id="NFS 4"),
            pytest.param(fcntl.LOCK_EX | fcntl.LOCK_SH, errno.ENOLCK, (True, True), id="none to be had"),
            pytest.param(fcntl.LOCK_EX | fcntl.LOCK_SH, errno.ENOTSUP, (False, False), id="none known"),
        ],
    )
    def test_age_alone_decides_only_on_a_file_system_that_knows_no_locks(self, rig, monkeypatch, locks, refused, stay):
        flock = fcntl.flock

        def of_another_file_system(handle: int, how: int) -> None:
            if how & locks and fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise OSError(refused, os.strerror(refused))
            flock(handle, how)

        monkeypatch.setattr(fcntl, "flock", of_another_file_system)
        folder = self.batch_folder(rig)
        writing, left = DigestingFile(folder), folder / scratch_name()
        left.write_text("half")
        rig.maintain("leftovers", now_ms=now_ms() + DAY_MS)
        assert (writing.path.exists(), left.exists()) == stay
        writing.discard()

    def test_files_that_have_a_name_are_not_touched(self, rig):
        folder = self.batch_folder(rig)
        for name in ("plan.json", "notes.tmp", ".hidden.tmp", "slice-0-5-9-abc.arrow"):
            (folder / name).write_text("?")
        os.symlink("/etc/hostname", folder / f".{'a' * 32}.tmp")
        before = sorted(folder.iterdir())
        rig.maintain("leftovers", now_ms=now_ms() + DAY_MS)
        assert sorted(folder.iterdir()) == before

    def batch_folder(self, rig: Rig) -> Path:
        folder = rig.deployment.settings.landing / STREAM / ("ab" * 16)
        folder.mkdir(parents=True)
        return folder

    def killed_while_writing(self, folder: Path) -> None:
        code = (
            "import sys; from pathlib import Path; from wavestitch.write_once import DigestingFile\n"
            "f = DigestingFile(Path(sys.argv[1])); f.write(b'x' * (1 << 20)); print('written', flush=True)\n"
            "sys.stdin.read()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "written\n"
            writer.send_signal(signal.SIGKILL)


class TestLandedPayload:
    """Landed payload is the only copy until the offsets stand: in all partitions."""

    def test_it_stays_while_one_partition_of_the_group_stands_at_an_earlier_head(self, rig):
        heads = [rig.publish("a")]
        plans = []
        for name in ("b", "c"):
            plan = rig.plan(heads[-1], clock_ms=now_ms(), nonce=name)
            heads.append(rig.publish(name, plan_id=plan.plan_id))
            (rig.deployment.folder(STREAM, plan.plan_id).path / "slice-0-5-9-abc.arrow").write_bytes(b"landed")
            plans.append(plan.plan_id)
        group = _Group(rig, [heads[2], heads[1]])
        rig.deployment.__dict__["log"] = group
        rig.maintain("landing", finished_batches=86400)
        assert [self.landed(rig, p) for p in plans] == [False, True]
        group.at = [heads[2], heads[2]]
        rig.maintain("landing", finished_batches=86400)
        assert [self.landed(rig, p) for p in plans] == [False, False]

    def landed(self, rig: Rig, plan_id: str) -> bool:
        return any(rig.deployment.folder(STREAM, plan_id).path.glob("slice-*.arrow"))


class _Group:
    """A group whose partitions stand at these heads."""

    def __init__(self, rig: Rig, at: list[Head]) -> None:
        self.table, self.at = rig.tables.table_uuid() or "", at

    def group_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> dict[int, GroupOffset]:
        tags = [Tag(self.table, h.generation, h.sequence).encode() for h in self.at]
        return {p: GroupOffset(self.at[p].positions[Partition(p)].next_offset, tags[p]) for p in partitions}


def _raise_no_right(*_: Any) -> Any:
    raise PermissionError(13, "Permission denied")
