"""A stream's tables and landing without a broker, and maintenance with limits of a test's own."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.builders.plans import make_plan
from tests.builders.streams import make_stream
from tests.builders.table_rows import first_head, hold, published_row, stage
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.plan import Plan
from wavestitch.contracts.batch_row import describe_head
from wavestitch.contracts.maintenance import MaintenanceReport
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.ports import HeldRow
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.sample_kinds import SampleType
from wavestitch.maintain.run import maintain_stream, raise_failures
from wavestitch.settings import load_settings
from wavestitch.settings_sections import MaintainLimits
from wavestitch.tables.stream_tables import StreamTables

STREAM = "ecg"
DAY_MS = 86_400_000


def limits(**changes: Any) -> MaintainLimits:
    """Everything may go at once, unless said otherwise; not validated, as a test's ages are below what is allowed."""
    values: dict[str, Any] = {
        "finished_batches": 0,
        "given_up_batches": 0,
        "data_docs": 0,
        "junk": 0,
        "snapshot_age": 0,
        "most_snapshots": 1,
        "least_snapshots": 1,
        "pinned_heads": 3600,
        "orphan_age": 0,
        "target_file": 128 << 20,
        "small_files": 10**9,
    }
    return MaintainLimits.model_construct(**{**values, **changes})


@dataclass
class Rig:
    """`now_ms`: the clock of the next maintenance; ahead of all that was written, so that everything is old.
    `catalog`: its address, a SQLite file beside the rest unless given. `samples`: as the stream declares them."""

    folder: Path
    catalog: str = ""
    samples: SampleType = "int"
    deployment: Deployment = field(init=False)
    tables: StreamTables = field(init=False)
    log: FakeLog = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        streams = self.folder / "streams"
        streams.mkdir(parents=True)
        self.define(f"topic: t\ngroup: g\nsamples: {self.samples}\n")
        config = self.folder / "wavestitch.toml"
        config.write_text(
            f'landing = "{self.folder}/landing"\ncache = "{self.folder}/cache"\n'
            f'docs = "{self.folder}/docs"\nstreams = "{streams}"\n'
            '[kafka]\nbootstrap = "127.0.0.1:1"\n'
            f'[tables]\nuri = "sqlite:///{self.folder}/catalog.db"\nwarehouse = "file://{self.folder}/warehouse"\n'
        )
        environment = {"WAVESTITCH_CONFIG": str(config)}
        if self.catalog:
            address = self.folder / "catalog-address"
            address.write_text(f"{self.catalog}\n")
            environment["WAVESTITCH_TABLES__URI"] = f"file:{address}"
        self.log = FakeLog("t", 1)
        self.read_settings(environment)

    def define(self, text: str) -> None:
        """The stream is declared so, since long."""
        path = self.folder / "streams" / f"{STREAM}.yaml"
        path.write_text(text)
        os.utime(path, (0, 0))

    def read_settings(self, environment: Mapping[str, str]) -> None:
        """As a process does that begins now."""
        self.deployment = Deployment(load_settings(environment))
        vars(self.deployment)["log"] = self.log  # no broker is waited for; its answers are compared with a real one's
        self.tables = self.deployment.tables(STREAM)

    def publish(self, *ids: str, chunks: int = 2, recorded: bool = True, **head: Any) -> Head:
        """One more head, with one file of these waveforms."""
        self.number += 1
        rows = [published_row(i, chunks=chunks) for i in ids]
        files = [stage(self.tables.data_folder(), f"f{self.number}", rows, samples=self.samples)]
        base = self.tables.head()
        values = {"decision": f"d{self.number}", **head}
        new = first_head(**values) if base is None else base.next(**values)
        made = self.tables.commit(base, new, files if ids else [])
        if recorded:
            self.record(made)
        return made

    def hold(self, rows: list[HeldRow], *, decision: str, sequence: int, recorded: bool = True) -> Head:
        """One more head, which names these rows beside what is held."""
        self.number += 1
        made = hold(self.tables, rows, decision=decision)
        if recorded:
            self.record(made)
        return made

    def record(self, head: Head) -> None:
        self.tables.append_batches([describe_head(head, stream=STREAM)])

    def plan(self, head: Head, *, clock_ms: int, kind: PlanKind = PlanKind.INGEST, nonce: str = "n") -> Plan:
        """A plan on this head, with its folder."""
        made = make_plan(
            kind=kind,
            stream=make_stream(STREAM, topic="t"),
            topic_id=head.topic_id,
            positions=dict(head.positions),
            generation=head.generation,
            base_sequence=head.sequence,
            base_snapshot=head.snapshot_id or 0,
            watermark_ms=0,
            clock_ms=clock_ms,
            nonce=nonce,
        )
        self.deployment.folder(STREAM, made.plan_id).create(made)
        return made

    def maintain(
        self,
        *only: str,
        apply: bool = True,
        now_ms: int | None = None,
        let_go: Collection[str] = (),
        **changes: Any,
    ) -> MaintenanceReport:
        report = maintain_stream(
            self.deployment,
            STREAM,
            apply=apply,
            only=only,
            limits=limits(**changes),
            now=None if now_ms is None else EpochMs(now_ms),
            let_go=let_go,
            who="a test",
        )
        raise_failures([report])
        return report

    def ids(self) -> list[str]:
        table = self.tables.waveforms()
        return (
            sorted(table.scan(selected_fields=("waveform_id",)).to_arrow()["waveform_id"].to_pylist()) if table else []
        )

    def files(self, pattern: str = "warehouse/**/*") -> set[str]:
        return {str(p.relative_to(self.folder)) for p in self.folder.glob(pattern) if p.is_file()}


def went(report: MaintenanceReport, action: str) -> int:
    return next(a.count for a in report.actions if a.action == action)
