"""A deployment in a folder: settings, a stream with a topic and group, real tables. For tests of batches."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_apps.in_process import stitch_here
from spark_apps.start_archive import archived_start
from tests.builders.published_bytes import published_bytes
from tests.product_logins import as_producer, as_product
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.edges import Edges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.run import RunOptions, Silent, done_to_json, run_batch
from wavestitch.batch.steps import step_plan
from wavestitch.local.folders import CACHE
from wavestitch.local.spark_server import SparkServer
from wavestitch.producers.chunking import ChunkRecord
from wavestitch.producers.partitioning import Strategy
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings

STREAM = "bench_rig"


@dataclass(frozen=True)
class DeploymentRig:
    """A deployment with one stream on a real broker."""

    deployment: Deployment
    topic: str
    group: str
    folder: Path

    def send(self, chunks: Sequence[ChunkRecord], strategy: Strategy = Strategy.WAVEFORM_STICKY) -> None:
        send_chunks(chunks, topic=self.topic, settings=as_producer(self.deployment.kafka), strategy=strategy)

    def run(self, **options: Any) -> dict[str, Any]:
        return done_to_json(run_batch(self.edges(), RunOptions(**options), watcher=Silent()))

    def run_without_spark(self, **options: Any) -> dict[str, Any]:
        """The same, stitched in this process as Spark's tasks do it: for what is not about Spark."""
        return done_to_json(run_batch(self.edges(submit=stitch_here), RunOptions(**options), watcher=Silent()))

    def edges(self, **how: Any) -> DeploymentEdges:
        return DeploymentEdges(self.deployment, STREAM, **how)

    def plan(self, request: PlanRequest | None = None) -> Planned:
        """A plan, made and not carried out."""
        return plan_on(self.edges(), request)

    def published(self) -> dict[str, bytes]:
        """id -> samples; fails where an id is there twice (I2)."""
        rows = published_bytes(self.deployment.tables(STREAM))
        assert len(dict(rows)) == len(rows), "a waveform is published twice"
        return dict(rows)


def plan_on(edges: Edges, request: PlanRequest | None = None) -> Planned:
    """A plan; there must be something to do."""
    planned = step_plan(edges, request or PlanRequest())
    assert isinstance(planned, Planned), planned
    return planned


def make_deployment_rig(
    folder: Path,
    *,
    bootstrap: str,
    topic: str,
    java_home: Path,
    stream: str = "",
    max_waveform_bytes: str = "256 MiB",
    catalog: str = "",
    spark: SparkServer | None = None,
    payload: str = "",
) -> DeploymentRig:
    """`stream`: further lines of the stream's YAML. `catalog`: its address, a SQLite file here unless given. `spark`:
    one that is there already, instead of spark-submit. `payload`: its section, if any."""
    group = f"g-{uuid.uuid4().hex[:10]}"
    spark_conf = archived_start(cache=CACHE, java_home=java_home, say=print)
    streams = folder / "streams"
    streams.mkdir(parents=True)
    (streams / f"{STREAM}.yaml").write_text(
        f"topic: {topic}\ngroup: {group}\nreading: {{min_slice: 4}}\n"
        f"limits: {{max_clock_skew: 36500 d, max_waveform_bytes: {max_waveform_bytes}}}\n{stream}"
    )
    kafka = as_product(bootstrap)
    options = dict(kafka.options)
    if "sasl.password" in options:
        (folder / "password").touch(mode=0o600)
        (folder / "password").write_text(options["sasl.password"])
        options["sasl.password"] = f"file:{folder}/password"
    (folder / "catalog-address").touch(mode=0o600)
    (folder / "catalog-address").write_text(catalog or f"sqlite:///{folder}/catalog.db")
    (folder / "wavestitch.toml").write_text(
        f'landing = "{folder}/landing"\ncache = "{folder}/cache"\ndocs = "{folder}/docs"\nstreams = "{streams}"\n'
        f'[kafka]\nbootstrap = "{kafka.bootstrap}"\n[kafka.options]\n'
        + "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in options.items())
        + f'[tables]\nuri = "file:{folder}/catalog-address"\nwarehouse = "file://{folder}/warehouse"\n'
        f'[spark]\nmaster = "local[2]"\njava_home = "{java_home}"\n'
        + (f'remote = "{spark.remote}"\ntoken = "{spark.token}"\n' if spark is not None else "")
        + "[spark.conf]\n"
        + "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in spark_conf.items())
        + payload
    )
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(folder / "wavestitch.toml")}))
    return DeploymentRig(deployment, topic, group, folder)


def eventually(condition: Callable[[], bool], *, seconds: float = 30.0, every: float = 0.05) -> None:
    """Wait on a condition, with a deadline. `every`: so many seconds are between two looks."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(every)  # between two looks at a condition, not instead of one
