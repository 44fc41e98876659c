"""`make demo`: starts everything, carries real recordings through whole batches by Airflow, proves the result, stops.

Ends with 0 only if every promise held: each published sample equals its source, nothing is missing or there twice,
every audit identity balances, and the rewind published nothing again.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from spark_apps.start_archive import archived_start
from wavestitch import console, terminal
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.chunk_header import SAMPLE_BYTES
from wavestitch.contracts.errors import Terminal, WavestitchError
from wavestitch.demo.report import compare_samples, describe_row, plot_waveform
from wavestitch.demo.story import Story, tell_ecg, tell_seismic
from wavestitch.local.airflow_api import AirflowApi, TaskState
from wavestitch.local.broker import run_kafka_tool
from wavestitch.local.java import find_java
from wavestitch.local.stack import CACHE, ROOT, STATE, Stack, start_stack, stop_stack
from wavestitch.producers.readers import read_recordings
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings
from wavestitch.tables.read_waveforms import read_waveforms

FOLDER = STATE / "demo"
REPORT = STATE / "demo-report.json"
PLOT = STATE / "demo-ecg.png"
ECG = ROOT / "examples/ecg/mitdb-208-mlii.npz"
SEISMIC = ROOT / "examples/seismic/IU.COLA.mseed"
_STARTED_2026 = 1_767_225_600 * 1_000_000_000
_RESET_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
Say = Callable[[str], None]


def main() -> int:
    """Run the demo; the exit code."""
    began = time.monotonic()

    def say(text: str) -> None:
        terminal.err.print(f"[{time.monotonic() - began:6.1f} s] {text}", markup=False, highlight=False, soft_wrap=True)

    stop_stack(say=lambda _: None, folder=FOLDER)
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        spark_conf = archived_start(cache=CACHE, java_home=find_java(CACHE), say=say)
        stack = start_stack(say=say, folder=FOLDER, spark_conf=spark_conf)
        report = tell(stack, say=say)
    except WavestitchError as error:
        terminal.err.print(f"{type(error).__name__}: {error.message}", style="red", markup=False)
        return 1
    finally:
        stop_stack(say=say, folder=FOLDER)
    report["seconds"] = round(time.monotonic() - began, 1)
    REPORT.write_text(json.dumps(report, indent=1, default=str))
    say(f"report {REPORT.relative_to(ROOT)}, plot {PLOT.relative_to(ROOT)}")
    say("every promise held" if report["ok"] else f"FAILED: {'; '.join(report['broken'])}")
    return 0 if report["ok"] else 1


def tell(stack: Stack, *, say: Say) -> dict[str, Any]:
    """The story on a running stack; the report."""
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(stack.config)}))
    api = stack.airflow.login()
    stories = {
        "ecg": tell_ecg(read_recordings(ECG, seconds_per_recording=30, start_time_ns=_STARTED_2026), chunk_bytes=4096),
        "seismic": tell_seismic(read_recordings(SEISMIC, seconds_per_recording=600), chunk_bytes=8192),
    }
    for name in stories:
        settle(api, name, say=say)
    deliver(deployment, {n: s.first for n, s in stories.items()}, say=say)
    ingest(api, deployment, stories, say=say)
    say("second delivery: the late chunks")
    deliver(deployment, {n: s.second for n, s in stories.items()}, say=say)
    ingest(api, deployment, stories, say=say)
    say("rewinding both groups to the beginning with Kafka's own tool")
    for name in stories:
        reset_group(stack, deployment, name)
    ingest(api, deployment, stories, say=say)
    return prove(deployment, stories, say=say)


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


def ingest(api: AirflowApi, deployment: Deployment, stories: dict[str, Story], *, say: Say) -> None:
    """Trigger both DAGs, follow them, and print the batches that they made."""
    before = {name: {b.sequence for b in deployment.tables(name).batches()} for name in stories}
    runs = {name: api.trigger(f"ingest_{name}") for name in stories}
    for name, run in runs.items():
        dag = f"ingest_{name}"
        say(f"{dag}: run {run}")
        state = api.wait(dag, run, Follower(dag, say))
        if state != "success":
            raise Terminal(f"{dag} run {run} ended {state}; its log is in {FOLDER / 'airflow' / 'logs'}")
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


def reset_group(stack: Stack, deployment: Deployment, name: str) -> None:
    stream = deployment.stream(name)
    where = ["--bootstrap-server", stack.broker.bootstrap, "--group", stream.group, "--topic", stream.topic]
    run_kafka_tool(
        stack.java_home, stack.kafka_jars, _RESET_TOOL, [*where, "--reset-offsets", "--to-earliest", "--execute"]
    )


def prove(deployment: Deployment, stories: dict[str, Story], *, say: Say) -> dict[str, Any]:
    """Compare, plot, and say what did not hold."""
    report: dict[str, Any] = {"ok": False, "batches": [], "samples_compared": 0, "samples_differing": 0, "streams": {}}
    broken: list[str] = []
    for name, story in stories.items():
        tables = deployment.tables(name)
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
            row = published.slice(0, 1).to_pylist()[0]
            width = SAMPLE_BYTES[row["sample_format"]]
            firsts = [sum(c["length"] for c in row["chunks"][:i]) // width for i in range(len(row["chunks"]))]
            plot_waveform(row, firsts, PLOT)
    if report["samples_differing"]:
        broken.append(f"{report['samples_differing']} samples differ from their source")
    report["broken"] = broken
    report["ok"] = not broken and report["samples_compared"] > 0
    return report


if __name__ == "__main__":
    sys.exit(main())
