"""Maintenance leaves what its stages name, nothing else: files and tables are compared before and after each stage."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders.table_rows import facts, held_row, hold, published_row, write_landing
from tests.domain.maintenance_rig import DAY_MS, STREAM, Rig, limits
from tests.domain.observed_effects import Seen, effects, look
from wavestitch.batch.landing_facts import closed_gates
from wavestitch.contracts.maintenance import MaintenanceReport
from wavestitch.contracts.maintenance_stages import STAGES
from wavestitch.contracts.position import GroupOffset, Tag
from wavestitch.contracts.quantities import EpochMs, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stages import Stage, explain
from wavestitch.maintain.landing_folders import write_first_seen
from wavestitch.maintain.run import maintain_stream

pytestmark = pytest.mark.filterwarnings("error")


class Projected:
    """A group that stands at the newest head."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def group_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> dict[int, GroupOffset]:
        head = self.rig.tables.head()
        assert head is not None
        tag = Tag(self.rig.tables.table_uuid() or "", head.generation, head.sequence)
        return {p: GroupOffset(head.positions[Partition(p)].next_offset, tag.encode()) for p in partitions}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Something for every stage to let go of."""
    made = Rig(tmp_path)
    made.publish("a")
    late = published_row("late")["chunks"]
    landing = tmp_path / "late.arrow"
    write_landing(landing, [(3, 10, b"x" * 8), (3, 11, b"x" * 8)])
    chunks = [
        facts(3, 10 + n, b"x" * 8)._replace(waveform_id="late", seq=n, piece=piece["piece"])
        for n, piece in enumerate(late)
    ]
    made.hold(
        [held_row(c, landing=landing, row=n, decision="d2", sequence=2) for n, c in enumerate(chunks)],
        decision="d2",
        sequence=2,
    )
    junk = [facts(0, n, b"", reason=Reason.NOT_A_CHUNK)._replace(waveform_id=None) for n in range(2)]
    for n, chunk in enumerate(junk):
        rows = [held_row(chunk, landing=None, decision=f"j{n}", reason=Reason.NOT_A_CHUNK)]
        made.record(hold(made.tables, rows, clock_ms=1))
    for n in range(2):  # open, in a small file each: they stay, and are put together
        write_landing(tmp_path / f"open{n}.arrow", [(3, 20 + n, b"open")])
        chunk = facts(3, 20 + n, b"open")._replace(waveform_id=f"open{n}")
        made.hold(
            [held_row(chunk, landing=tmp_path / f"open{n}.arrow", row=0, decision=f"o{n}", sequence=5 + n)],
            decision=f"o{n}",
            sequence=5 + n,
        )
    made.publish("late", decision="d3")
    made.maintain("snapshots")  # from now on every snapshot has it
    plans = [made.plan(made.tables.head(), clock_ms=1, nonce="committed")]
    made.publish("b", plan_id=plans[0].plan_id)
    made.plan(made.tables.head(), clock_ms=1, nonce="given up")
    given_up = made.plan(made.tables.head(), clock_ms=1, nonce="really given up")
    made.deployment.folder(STREAM, given_up.plan_id).abandon(who="o", why="w", at_ms=EpochMs(0))
    folder = made.deployment.folder(STREAM, plans[0].plan_id).path
    (folder / "slice-0-5-9-abc.arrow").write_bytes(b"landed")
    (folder / f".{'a' * 32}.tmp").write_bytes(b"half")
    docs = made.deployment.settings.docs / STREAM / plans[0].plan_id
    docs.mkdir(parents=True)
    os.utime(docs, (1, 1))
    made.publish("c", recorded=False)
    dead = made.tables.data_folder() / "dead-batch.parquet"
    dead.write_bytes(b"x")
    write_first_seen(made.deployment.settings.landing, STREAM, {str(dead): EpochMs(1)})
    set(made.tables.published(["a", "b", "c", "late"]))  # the index of ids knows all files
    assert closed_gates(made.deployment.settings.landing, STREAM) == []
    made.deployment.__dict__["log"] = Projected(made)
    return made


def seen_of(rig: Rig) -> Seen:
    return look(rig.deployment, STREAM, rig.folder)


def maintain(rig: Rig, stage: type[Stage], *, apply: bool = True, **changes: Any) -> MaintenanceReport:
    return maintain_stream(
        rig.deployment,
        STREAM,
        apply=apply,
        only=[stage.name],
        limits=limits(small_files=2, finished_batches=365 * 86400, **changes),
        now=EpochMs(time.time_ns() // 1_000_000 + 40 * DAY_MS),
    )


def test_every_stage_leaves_what_it_names_and_nothing_else_and_its_dry_run_nothing(rig: Rig) -> None:
    seen = seen_of(rig)
    for stage in STAGES:
        shown = maintain(rig, stage, apply=False)
        assert effects(seen, seen_of(rig)) == set(), f"the dry run of {stage.name} changed something"
        report = maintain(rig, stage)
        assert report.failures == (), report.failures
        assert shown.stages == report.stages == explain([stage()])
        after = seen_of(rig)
        left, seen = effects(seen, after), after
        assert left == stage.effects, f"{stage.name}: names {sorted(stage.effects)}, left {sorted(left)}"
