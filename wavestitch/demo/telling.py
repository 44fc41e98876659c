"""What the demo does on whatever runs: deliveries, Airflow's runs, a reset of the groups, and the proof at the end.

Starts and stops nothing. Both the local stack and a composition of containers are told the same story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavestitch import console
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.chunk_metadata import SAMPLE_BYTES
from wavestitch.contracts.errors import Terminal
from wavestitch.demo.report import compare_samples, describe_row, plot_waveform
from wavestitch.demo.story import Story, tell_ecg, tell_seismic
from wavestitch.local.airflow_api import AirflowApi, TaskState
from wavestitch.local.broker import run_kafka_tool
from wavestitch.producers.readers import read_recordings
from wavestitch.producers.sender import send_chunks
from wavestitch.tables.read_waveforms import each_row, read_waveforms

ECG = "ecg/mitdb-208-mlii.npz"
SEISMIC = "seismic/IU.COLA.mseed"
_STARTED_2026 = 1_767_225_600 * 1_000_000_000
_RESET_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """What the story is told on. `examples`: the folder of recordings. `logs`: where Airflow's are, for whoever looks.
    `java_home` and `kafka_jars` are for Kafka's own tool."""

    deployment: Deployment
    api: AirflowApi
    examples: Path
    plot: Path
    logs: Path
    java_home: Path
    kafka_jars: Path


def tell(stage: Stage, *, say: Say) -> dict[str, Any]:
    """The story; the report."""
    deployment, api = stage.deployment, stage.api
    ecg = read_recordings(stage.examples / ECG, seconds_per_recording=30, start_time_ns=_STARTED_2026)
    seismic = read_recordings(stage.examples / SEISMIC, seconds_per_recording=600)
    stories = {"ecg": tell_ecg(ecg, chunk_bytes=4096), "seismic": tell_seismic(seismic, chunk_bytes=8192)}
    for name in stories:
        settle(api, name, say=say)
    deliver(deployment, {n: s.first for n, s in stories.items()}, say=say)
    ingest(stage, stories, say=say)
    say("second delivery: the late chunks")
    deliver(deployment, {n: s.second for n, s in stories.items()}, say=say)
    ingest(stage, stories, say=say)
    say("rewinding both groups to the beginning with Kafka's own tool")
    for name in stories:
        reset_group(stage, name)
    ingest(stage, stories, say=say)
    return prove(stage, stories, say=say)


def settle(api: AirflowApi, stream: str, *, say: Say) -> None:
    """Wait for the DAG, and for the run that its schedule starts at once."""
    dag = f"ingest_{stream}"
    say(f"waiting for DAG {dag}")
    api.wait_for_dag(dag, seconds=120)
    for run in api.unfinished_runs(dag):
        say(f"{dag}: {run} found state {api.wait(dag, run)}")


def deliver(deployment: Deployment, deliveries: dict[str, list[Any]], *, say: Say) -> None:
    for name, chunks in deliveries.items():
        stream = deployment.stream(name)
        report = send_chunks(chunks, topic=stream.topic, settings=deployment.kafka)
        say(f"{name}: {report.records} chunks sent to {stream.topic}, {report.bytes} bytes")


def ingest(stage: Stage, stories: dict[str, Story], *, say: Say) -> None:
    """Trigger both DAGs, follow them, and print the batches that they made."""
    api, deployment = stage.api, stage.deployment
    before = {name: {b.sequence for b in deployment.tables(name).batches()} for name in stories}
    runs = {name: api.trigger(f"ingest_{name}") for name in stories}
    for name, run in runs.items():
        dag = f"ingest_{name}"
        say(f"{dag}: run {run}")
        state = api.wait(dag, run, Follower(dag, say))
        if state != "success":
            raise Terminal(f"{dag} run {run} ended {state}; its log is in {stage.logs}")
        for row in reversed(deployment.tables(name).batches()):
            if row.sequence not in before[name] and row.partitions:
                console.show_batch(row)


class Follower:
    """Says which tasks of a run have ended, each once."""

    def __init__(self, dag: str, say: Say) -> None:
        self._dag = dag
        self._say = say
        self._told: set[tuple[str, int]] = set()

    def __call__(self, states: Sequence[TaskState]) -> None:
        for s in states:
            if (
                s.state in ("success", "failed", "skipped", "upstream_failed")
                and (s.task_id, s.map_index) not in self._told
            ):
                self._told.add((s.task_id, s.map_index))
                part = "" if s.map_index < 0 else f" [{s.map_index}]"
                self._say(f"{self._dag}: {s.task_id}{part} {s.state}")


def reset_group(stage: Stage, name: str) -> None:
    """By Kafka's own tool, which knows no login here."""
    stream, kafka = stage.deployment.stream(name), stage.deployment.kafka
    where = ["--bootstrap-server", kafka.bootstrap, "--group", stream.group, "--topic", stream.topic]
    run_kafka_tool(
        stage.java_home, stage.kafka_jars, _RESET_TOOL, [*where, "--reset-offsets", "--to-earliest", "--execute"]
    )


def prove(stage: Stage, stories: dict[str, Story], *, say: Say) -> dict[str, Any]:
    """Compare, plot, and say what did not hold."""
    report: dict[str, Any] = {"ok": False, "batches": [], "samples_compared": 0, "samples_differing": 0, "streams": {}}
    broken: list[str] = []
    for name, story in stories.items():
        tables = stage.deployment.tables(name)
        published = read_waveforms(tables)
        found = compare_samples(published, story.published)
        report["streams"][name] = found
        report["samples_compared"] += found["samples_compared"]
        report["samples_differing"] += found["samples_differing"]
        broken += [f"{name}: {key} {found[key]}" for key in ("missing", "unexpected", "twice") if found[key]]
        rows = [b for b in reversed(tables.batches()) if b.partitions]
        report["batches"] += [describe_row(b) for b in rows]
        broken += [f"{name}: batch {b.plan_id[:16]} does not balance" for b in rows if not b.identity_balances]
        if len(rows) < 3 or rows[-1].waveforms["published"] or not rows[-1].counts["replay"]:
            broken.append(f"{name}: the rewound batch did not replay everything and publish nothing")
        if not any(h.kind == "adopted" for h in tables.heads()):
            broken.append(f"{name}: the reset by Kafka's tool was not taken over as a rewind")
        say(f"{name}: {found['samples_compared']} samples compared, {found['samples_differing']} differ")
        if name == "ecg" and published.num_rows:
            row = next(each_row(published.slice(0, 1)))
            width = SAMPLE_BYTES[row["sample_format"]]
            firsts = [sum(c["length"] for c in row["chunks"][:i]) // width for i in range(len(row["chunks"]))]
            plot_waveform(row, firsts, stage.plot)
    if report["samples_differing"]:
        broken.append(f"{report['samples_differing']} samples differ from their source")
    report["broken"] = broken
    report["ok"] = not broken and report["samples_compared"] > 0
    return report
