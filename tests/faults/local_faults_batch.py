"""Batches without spark-submit, and what is produced for them: real Kafka, real tables, the product's own six steps.

One topic serves many deployments, each with its own tables and group, so that a case costs a second or two. A
deployment is named by its folder, so that any process can open it. Never judges.
"""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from consumers.unit_reader import read_here
from spark_apps.in_process import stitch_here
from tests.builders.recordings import cut, recordings
from tests.deployment_rig import STREAM, DeploymentRig, eventually
from tests.fakes.kept_partition import Record
from tests.faults.broker_faults_ledger import Ledger
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.request import Gate
from wavestitch.batch.run import RunOptions, Silent, done_to_json, run_batch
from wavestitch.contracts.errors import WavestitchError
from wavestitch.producers.chunking import ChunkRecord
from wavestitch.settings import load_settings

PARTITIONS = 2
WAVEFORMS = 10
MARK = ".at."
_MOST_BATCHES = 20


@dataclass(frozen=True)
class Produced:
    """A topic and what is in it. `whole`: id to samples of what must come out in the end."""

    topic: str
    topic_id: str
    records: list[Record]
    whole: dict[str, bytes]


@dataclass(frozen=True)
class Way:
    """How a batch is carried through. `before`: called with the name of each step as it begins."""

    plan_id: str | None = None
    request: PlanRequest = field(default_factory=PlanRequest)
    gate: Gate = "stop"
    before: Callable[[str], None] = lambda _: None


def produce_mixture(bootstrap: str, *, seed: int = 1) -> Produced:
    """A new topic with whole waveforms, one that lacks a chunk, one with a corrupt chunk, and repeated chunks."""
    rng = random.Random(seed)
    sent = recordings(WAVEFORMS, samples=1200, seed=seed)
    chunks = cut(sent, 512)
    per = len(chunks) // len(sent)
    gone, broken = rng.randrange(per, 2 * per), rng.randrange(3 * per, 4 * per)
    placed = [(c if i != broken else damaged(c), i // per % PARTITIONS) for i, c in enumerate(chunks) if i != gone]
    repeated = placed[rng.randrange(4 * per, 5 * per)]
    placed = [*placed[: 6 * per], repeated, *placed[6 * per :], *placed[2 * per : 3 * per]]
    ledger = make_ledger(bootstrap)
    ledger.send(placed)
    whole = {r.waveform_id: bytes(r.samples) for i, r in enumerate(sent) if i not in (1, 3)}
    return Produced(ledger.topic, ledger.topic_id, ledger.records, whole)


def damaged(chunk: ChunkRecord) -> ChunkRecord:
    """The chunk with one bit of its samples flipped."""
    value = bytearray(chunk.value)
    value[len(value) // 2] ^= 4
    return replace(chunk, value=memoryview(bytes(value)))


def make_ledger(bootstrap: str, partitions: int = PARTITIONS) -> Ledger:
    """A new topic."""
    name = f"local-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, partitions, 1, config={"max.message.bytes": "65536"})
    admin.create_topics([topic], operation_timeout=30)[name].result(timeout=30)

    def led() -> bool:
        found = admin.list_topics(timeout=10).topics.get(name)
        return found is not None and sum(p.leader >= 0 for p in found.partitions.values()) == partitions

    eventually(led)
    return Ledger(bootstrap, name, _topic_id(bootstrap, name))


def _topic_id(bootstrap: str, topic: str) -> str:
    from confluent_kafka import TopicCollection  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": bootstrap})
    return str(admin.describe_topics(TopicCollection([topic]))[topic].result(timeout=30).topic_id)


def make_deployment(
    folder: Path,
    *,
    bootstrap: str,
    topic: str,
    most: int = 1_000_000,
    java_home: Path | None = None,
    spark: str = "",
    catalog: str = "",
) -> Path:
    """A deployment with one stream on the topic, and its own group. `most`: records a batch; `spark`: more settings;
    `catalog`: its address, a SQLite file here unless given."""
    streams = folder / "streams"
    streams.mkdir(parents=True)
    (folder / "catalog-address").touch(mode=0o600)
    (folder / "catalog-address").write_text(catalog or f"sqlite:///{folder}/catalog.db")
    (streams / f"{STREAM}.yaml").write_text(
        f"topic: {topic}\ngroup: g-{uuid.uuid4().hex[:12]}\nreading: {{min_slice: 4}}\n"
        f"limits: {{max_clock_skew: 36500 d, max_batch_records: {most}}}\n"
    )
    (folder / "wavestitch.toml").write_text(
        f'landing = "{folder}/landing"\ncache = "{folder}/cache"\ndocs = "{folder}/docs"\nstreams = "{streams}"\n'
        f'[kafka]\nbootstrap = "{bootstrap}"\n'
        f'[tables]\nuri = "file:{folder}/catalog-address"\nwarehouse = "file://{folder}/warehouse"\n'
        + (f'[spark]\njava_home = "{java_home}"\n{spark}' if java_home else "")
    )
    return folder


def open_deployment(folder: Path) -> Deployment:
    return Deployment(load_settings({"WAVESTITCH_CONFIG": str(folder / "wavestitch.toml")}))


def rig_at(folder: Path) -> DeploymentRig:
    """The deployment as `tests.deployment_rig` knows it."""
    deployment = open_deployment(folder)
    stream = deployment.stream(STREAM)
    return DeploymentRig(deployment, stream.topic, stream.group, folder)


def carry(folder: Path, way: Way | None = None) -> dict[str, Any]:
    """One batch from plan to moved offsets; `{"nothing": why}` where there is none."""
    way = way or Way()
    steps = _Steps(folder, way)
    edges = DeploymentEdges(open_deployment(folder), STREAM, read=read_here, submit=stitch_here)
    options = RunOptions(request=way.request, plan_id=way.plan_id, gate=way.gate, why="a test")
    found = run_batch(edges, options, watcher=steps)
    if not isinstance(found, NothingToDo):
        steps.begin("after offsets")
    return done_to_json(found)


class _Steps(Silent):
    """Tells of each step as it begins."""

    def __init__(self, folder: Path, way: Way) -> None:
        self._folder, self._way = folder, way

    def begin(self, step: str, total: int | None = None) -> None:
        os.path.lexists(self._folder / f"{MARK}{step}")  # whoever watches this process's calls sees where it is
        self._way.before(step)


def plans_of(folder: Path) -> list[str]:
    """The plans that were made, oldest first."""
    found = (folder / "landing" / STREAM).glob("*/plan.json")
    return [p.parent.name for p in sorted(found, key=lambda p: p.stat().st_mtime_ns)]


def quiet(folder: Path) -> int:
    """Undisturbed batches until there is nothing to do; returns how many."""
    for n in range(_MOST_BATCHES):
        if "nothing" in carry(folder):
            return n
    raise AssertionError(f"there was still something to do after {_MOST_BATCHES} batches")


def end_of_batch(folder: Path, plan_id: str | None = None, *, way: Way | None = None) -> str:
    """How a batch ends, in one word; what is no error of the tree is raised."""
    try:
        found = carry(folder, way or Way(plan_id))
    except WavestitchError as error:
        return type(error).__name__
    return "nothing" if "nothing" in found else "done"
