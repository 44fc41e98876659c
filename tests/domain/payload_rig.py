"""A deployment whose payload goes to an object store: log in memory, tables in a folder, a store on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.deployment_rig import STREAM
from tests.domain.maintenance_rig import limits
from tests.hostile.landed_deployment import FakeDeployment, landed_edges, make_landed_deployment, run_landed_batch
from tests.object_store import ObjectStore
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.run import RunOptions, Silent, done_to_json, run_batch
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.maintenance import MaintenanceReport
from wavestitch.contracts.quantities import EpochMs, Partition
from wavestitch.maintain.run import maintain_stream, raise_failures
from wavestitch.producers.chunking import ChunkRecord

PLAN_ID = "0123456789abcdef0123456789abcdef"
BATCH_BYTES, PIECE_BYTES = 2500, 1000
"""Several record batches a slice, and several objects a record batch."""


class Whole:
    """A deployment whose payload goes to the store."""

    def __init__(self, folder: Path, store: ObjectStore) -> None:
        self.store, self.folder = store, folder
        self.rig = make_landed_deployment(
            folder,
            stream_yaml="limits: {max_clock_skew: 36500 d}\n",
            partitions=2,
            payload=store.payload_settings(folder / "keys", attempts=2),
        )
        assert isinstance(self.rig.deployment, FakeDeployment)
        self.deployment = self.rig.deployment
        self.tables = self.deployment.tables(STREAM)

    def send(self, chunks: Sequence[ChunkRecord]) -> None:
        for n, c in enumerate(chunks):
            self.deployment.memory.append(
                Partition(n % 2), time.time_ns() // 1_000_000, c.key, c.headers, bytes(c.value)
            )

    def batch(self) -> dict[str, Any]:
        return run_landed_batch(self.deployment)

    def take_up(self, plan_id: str) -> dict[str, Any]:
        done = run_batch(landed_edges(self.deployment), RunOptions(plan_id=plan_id), watcher=Silent())
        return dict(done_to_json(done)["published"])

    def plan(self) -> str:
        planned = step_plan(landed_edges(self.deployment), PlanRequest())
        assert isinstance(planned, Planned)
        return planned.plan_id

    def objects(self) -> set[str]:
        return self.store.names("payload")

    def maintain(self, *only: str, ahead_ms: int = 0, **changes: Any) -> MaintenanceReport:
        now = EpochMs(time.time_ns() // 1_000_000 + ahead_ms)
        report = maintain_stream(
            self.deployment, STREAM, apply=True, only=only, limits=limits(**changes), now=now, who="a test"
        )
        raise_failures([report])
        return report

    def put(self, name: str, content: bytes) -> None:
        with self.store.files.open_output_stream(f"{self.store.bucket}/{name}") as sink:
            sink.write(content)


@contextmanager
def whole_in(folder: Path, server: ObjectStore) -> Iterator[Whole]:
    """One, and an empty store afterwards."""
    try:
        yield Whole(folder, server)
    finally:
        server.fault, server.unlisted = (lambda _method, _path: None), ""
        server.in_parts.clear()
        server.files.delete_dir_contents(server.bucket)
