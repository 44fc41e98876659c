"""The newcomer's first command, for real: Kafka, Airflow's REST API, whole batches, a rewind, and the proof (I1-I7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.conftest import ROOT

REPORT = ROOT / ".wavestitch" / "demo-report.json"


def test_the_demo_holds_every_promise(java_home: object, kafka_jars: object) -> None:
    REPORT.unlink(missing_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "WAVESTITCH_"))}
    done = subprocess.run(
        [sys.executable, "-m", "wavestitch.demo"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    said = ROOT / ".wavestitch" / "demo" / "airflow" / "airflow.log"
    log = said.read_text(errors="replace") if said.exists() else ""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:] + log[-8000:]
    report = json.loads(REPORT.read_text())
    assert report["ok"]
    assert report["samples_differing"] == 0
    assert report["samples_compared"] == 9 * 10_800 + 3 * 84_000
    by_stream = {s: [b for b in report["batches"] if b["stream"] == s] for s in ("ecg", "seismic")}
    for batches in by_stream.values():
        assert all(b["identity_balances"] for b in batches)
        assert batches[-1]["published"] == 0
        assert batches[-1]["replays"] > 0
    first, second, _ = by_stream["ecg"]
    assert (first["published"], first["open"], first["quarantined"], first["duplicates"]) == (6, 3, 1, 1)
    assert (second["published"], second["open"]) == (3, 0)
