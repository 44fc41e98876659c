"""How soon a waveform can be queried: from the acknowledgement of its last chunk until a table that is loaded has it.

Devices send 20 MB/s, a Spark is there, and `wavestitch run STREAM --catch-up --for …` goes on meanwhile, five minutes a
process. Somebody loads the table five times a second; when a row can be queried is when that
loading was done. `--minutes 60` is the whole of it. The stream declares what is aimed at, so that what the product
says of itself, to the commit and by the producers' record times, stands beside what is seen from outside.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyiceberg.manifest import ManifestEntryStatus

from benchmarks.children import ROOT, Json
from benchmarks.meter import spent
from benchmarks.options import Options
from benchmarks.parts.small_batch import PARTITIONS, send_small
from benchmarks.test_bed import Say, TestBed, make_topic
from spark_apps.server import ConnectServer
from wavestitch.batch.history import whole_history
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.freshness import ALLOWED
from wavestitch.local.spark_server import start_spark_server, stop_spark_server

MB_S = 20.0
DECLARED_S = 15
_STREAM = "steady"
_LOOK_S = 0.2
_AFTERWARDS_S = 120.0
_A_PROCESS_S = 300.0
_RETENTION = {"retention.ms": "300000", "segment.bytes": str(128 << 20)}
"""An hour is 72 GB: the log keeps five minutes of it, and the five until the broker looks for what may go."""
_STORED, _LOG = 0.6, 16 << 30
"""Bytes in the table for each that was sent, and what the log has of them at most."""


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    bed.need(int(options.minutes * 60 * MB_S * 1e6 * _STORED) + _LOG, "freshness")
    topic = make_topic(bed, partitions=PARTITIONS, prefix=_STREAM, config=_RETENTION)
    bed.declare(_STREAM, topic, more=f"freshness: {DECLARED_S} s\n")
    folder = bed.folder / "spark-of-freshness"
    program = ConnectServer(bed.java_home, conf=bed.deployment().spark_conf)
    server = start_spark_server(folder=folder, program=program, say=say)
    env = {**bed.config(), "WAVESTITCH_SPARK__REMOTE": server.remote, "WAVESTITCH_SPARK__TOKEN": server.token}
    try:
        for n in range(2):  # makes the tables, and the server's first task
            send_small(bed, topic, 500 + n)
            _catch_up(env)
        return _watched(bed, topic, env, options.minutes * 60, say)
    finally:
        stop_spark_server(folder)


def _watched(bed: TestBed, topic: str, env: Mapping[str, str], seconds: float, say: Say) -> Json:
    acknowledged = bed.folder / "acknowledged.json"
    job = {"bootstrap": bed.bootstrap, "topic": topic, "partitions": PARTITIONS, "mb_s": MB_S}
    job |= {"seconds": seconds, "acknowledged": str(acknowledged)}
    history = bed.deployment().history(_STREAM)
    known = {row.sequence for row in whole_history(history)}
    before = spent(without=[bed.broker_pid])
    with _Onlooker(bed) as onlooker:
        load = _start("benchmarks.contenders.steady_load", json.dumps(job))
        batches, end = 0, time.monotonic() + seconds + _AFTERWARDS_S
        try:
            while load.poll() is None and time.monotonic() < end:
                batches += _catch_up(env, seconds=min(_A_PROCESS_S, end - _AFTERWARDS_S - time.monotonic()))
        finally:
            load.kill()  # where it has not ended
        said, words = load.communicate()
        batches += _catch_up(env)  # what was acknowledged while the one before was under way
        if load.returncode:
            raise RuntimeError(f"the load ended with exit code {load.returncode}: {words[-800:]}")
        onlooker.look()
    cost = spent(without=[bed.broker_pid]) - before
    seen = onlooker.seen_ids()
    own = [row for row in whole_history(history) if row.sequence not in known and row.waits is not None]
    facts = json.loads(acknowledged.read_text())
    return _summary(facts, seen, own, json.loads(said), batches, cost.cpu / cost.wall, say)


def _summary(
    acknowledged: Mapping[str, float],
    seen: Mapping[str, float],
    rows: Sequence[BatchRow],
    sent: Json,
    batches: int,
    cores: float,
    say: Say,
) -> Json:
    """`rows`: of the batches that published, newest first, with what they measured. Raises `RuntimeError` where a
    waveform is not in the table, was there before it was sent, or was not measured by the batch that published it."""
    missing = sorted(acknowledged.keys() - seen.keys())
    if missing or not acknowledged:
        raise RuntimeError(f"{len(missing)} of {len(acknowledged)} waveforms did not come: {missing[:3]}")
    waits = np.array([seen[name] - at for name, at in acknowledged.items()])
    if waits.min() < 0:
        raise RuntimeError(f"a waveform was there {-waits.min():.3f} s before it was acknowledged")
    found = {f"p{q}": round(float(np.percentile(waits, q)), 2) for q in (50, 95, 99)}
    longest = round(float(waits.max()), 2)
    own = [row.waits for row in rows if row.waits is not None]
    measured, own_late = sum(w.waveforms for w in own), sum(w.late for w in own)
    if measured != len(waits):
        raise RuntimeError(f"the batches measured {measured} waveforms, {len(waits)} were sent")
    late = int(np.count_nonzero(waits > DECLARED_S))
    own_p99, own_longest = max(w.p99_s for w in own), max(w.longest_s for w in own)
    agrees = (late > ALLOWED * len(waits)) == (own_late > ALLOWED * measured)
    rate = sent["bytes"] / sent["seconds"] / 1e6
    say(f"{len(waits)} waveforms, {batches} batches, {rate:.1f} MB/s: {found}, longest {longest} s, {cores:.2f} cores")
    said = f"p99 at most {own_p99:.2f} s, longest {own_longest:.2f} s, {own_late} later than {DECLARED_S} s"
    steps = {step: round(float(np.median([row.seconds[step] for row in rows])), 2) for step in rows[0].seconds}
    between = -np.diff([row.committed_ms for row in rows]) / 1000
    cycle = round(float(np.median(between)), 2) if len(between) else None
    say(f"by the product itself: {said}; a batch every {cycle} s, its steps {steps}")
    return {
        "minutes": round(sent["seconds"] / 60, 2),
        "mb_s": round(rate, 2),
        "waveforms": len(waits),
        "batches": batches,
        "cores": round(cores, 2),
        **{f"{name}_s": value for name, value in found.items()},
        "longest_s": longest,
        "late": late,
        "own": {"p99_at_most_s": own_p99, "longest_s": own_longest, "late": own_late, "alarm_agrees": agrees},
        "a_batch": {"every_s": cycle, "steps_s": steps},
        "table": [
            [
                "minutes",
                "MB/s",
                "waveforms",
                "batches",
                "p50 s",
                "p95 s",
                "p99 s",
                "longest s",
                f"later than {DECLARED_S} s",
                "by the product itself: longest s, later",
                "the alarm agrees",
                "cores, without broker",
            ],
            [
                round(sent["seconds"] / 60, 1),
                rate,
                len(waits),
                batches,
                *found.values(),
                longest,
                late,
                f"{own_longest:.2f}, {own_late}",
                "yes" if agrees else "no",
                cores,
            ],
        ],
    }


class _Onlooker:
    """Loads the table again and again, and notes when each snapshot was first there for who does so."""

    def __init__(self, bed: TestBed) -> None:
        self._stored = bed.deployment().tables(_STREAM).stored()[0]
        self._seen: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Onlooker:
        self.look()
        self._before = set(self._seen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def look(self) -> None:
        table = self._stored.load()
        now = time.time()
        for snapshot in () if table is None else table.snapshots():
            self._seen.setdefault(snapshot.snapshot_id, now)

    def _watch(self) -> None:
        while not self._done.wait(_LOOK_S):
            self.look()

    def seen_ids(self) -> dict[str, float]:
        """Of each waveform, when it was first seen. Raises `RuntimeError` where one was added twice."""
        table = self._stored.load()
        if table is None:
            raise RuntimeError("the table is gone")
        found: dict[str, float] = {}
        for snapshot in table.snapshots():
            if snapshot.snapshot_id in self._before:
                continue
            for path in _added(table, snapshot):
                for name in pq.read_table(path, columns=["waveform_id"])["waveform_id"].to_pylist():
                    if name in found:
                        raise RuntimeError(f"waveform {name} was added twice")
                    found[name] = self._seen[snapshot.snapshot_id]
        return found


def _added(table: Any, snapshot: Any) -> list[str]:
    return [
        entry.data_file.file_path.removeprefix("file://")
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.status == ManifestEntryStatus.ADDED
    ]


def _catch_up(env: Mapping[str, str], *, seconds: float = 0) -> int:
    """How many batches it made; `seconds`: it goes on for. Raises `RuntimeError` with its words where it fails."""
    so_long = ["--for", f"{int(seconds)}s"] if seconds >= 1 else []
    done = subprocess.run(
        [sys.executable, "-m", "wavestitch", "run", _STREAM, "--catch-up", *so_long, "--json"],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=600 + seconds,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"wavestitch run ended with exit code {done.returncode}: {done.stderr[-800:]}")
    return sum("nothing" not in each for each in json.loads(done.stdout))


def _start(module: str, job: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, job],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
