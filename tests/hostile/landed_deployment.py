"""A whole deployment whose log is in memory: the product steps on real folders and tables, without Kafka and Spark.

In place of the Kafka reader a record goes through the product's parser into the product's landing; in place of Spark
the product's task runs in this process. Everything else is what a batch runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_apps.in_process import stitch_here
from tests.builders.landing import land_records
from tests.deployment_rig import STREAM, DeploymentRig
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import Record
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges, ReadUnits
from wavestitch.batch.edges import Progress
from wavestitch.batch.run import RunOptions, Silent, done_to_json, run_batch
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.receipt import LandedSlice, Receipt
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.payload_store import BatchPayload, PayloadStore
from wavestitch.settings import load_settings


@dataclass(frozen=True)
class FakeDeployment(Deployment):
    """A deployment that reads its log from memory."""

    memory: FakeLog = field(default_factory=FakeLog)

    @property
    def log(self) -> Any:  # type: ignore[override]
        return self.memory


def make_landed_deployment(
    folder: Path, *, stream_yaml: str, partitions: int, warehouse: str = "", payload: str = ""
) -> DeploymentRig:
    """`stream_yaml`: the stream's definition but for topic and group. `warehouse`: what the settings say of it, a
    folder here unless given. `payload`: its section, if any."""
    log = FakeLog(partitions=partitions)
    (folder / "streams").mkdir(parents=True)
    # Neither a broker nor Spark is named: nothing here may ask for one.
    (folder / "wavestitch.toml").write_text(
        f'landing = "{folder}/landing"\ncache = "{folder}/cache"\n'
        f'docs = "{folder}/docs"\nstreams = "{folder}/streams"\n'
        '[kafka]\nbootstrap = "127.0.0.1:1"\n'
        f'[tables]\nuri = "sqlite:///{folder}/catalog.db"\n'
        + (warehouse or f'warehouse = "file://{folder}/warehouse"\n')
        + payload
    )
    settings = load_settings({"WAVESTITCH_CONFIG": str(folder / "wavestitch.toml")})
    whole = DeploymentRig(FakeDeployment(settings, log), log.name, f"{log.name}-batches", folder)
    declare(whole, stream_yaml)
    return whole


def declare(whole: DeploymentRig, stream_yaml: str) -> None:
    """Give the deployment's stream this definition."""
    path = whole.folder / "streams" / f"{STREAM}.yaml"
    path.write_text(f"topic: {whole.topic}\ngroup: {whole.group}\n{stream_yaml}", encoding="utf-8")


def run_landed_batch(deployment: FakeDeployment) -> dict[str, Any]:
    """One batch; returns what was published."""
    published: dict[str, Any] = done_to_json(run_batch(landed_edges(deployment), RunOptions(), watcher=Silent()))
    return dict(published["published"])


def landed_edges(deployment: FakeDeployment, stream: str = STREAM) -> DeploymentEdges:
    """The product's own edges, but for the reader and Spark."""
    return DeploymentEdges(deployment, stream, read=reader_of(deployment), submit=stitch_here)


def reader_of(deployment: FakeDeployment) -> ReadUnits:
    """Lands what the log in memory has."""

    def read(
        *,
        plan: Plan,
        kafka: KafkaSettings,
        folder: Path,
        units: Sequence[int],
        progress: Progress,
        proof: ChunkProof,
        payload: PayloadPlace | None = None,
    ) -> list[Receipt]:
        apart = None if payload is None else PayloadStore(payload).of(folder)
        return [_land_unit(deployment.memory, plan, n, folder, apart) for n in units]

    return read


def _land_unit(log: FakeLog, plan: Plan, unit: int, folder: Path, payload: BatchPayload | None) -> Receipt:
    records = [r for r in log.committed() if r.topic_id == plan.topic_id]
    slices = [_land_slice(records, wanted, folder, payload) for wanted in plan.units[unit]]
    return Receipt(plan.plan_id, unit, slices, 0.0)


def _land_slice(
    records: Sequence[Record], wanted: OffsetRange, folder: Path, payload: BatchPayload | None
) -> LandedSlice:
    mine = (r for r in records if r.partition == wanted.partition and wanted.start <= r.offset < wanted.end)
    return land_records(folder, wanted, ((r.offset, r.timestamp_ms, r) for r in mine), payload=payload)
