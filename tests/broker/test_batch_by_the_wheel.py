"""A first batch as somebody has it who installed the wheel: an empty folder, `init`, `run`, and what is published."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.policy.test_wheel import build_wheel
from tests.product_logins import address_for_tests, as_product
from wavestitch.child_environment import child_environment
from wavestitch.local.broker import Broker
from wavestitch.local.spark_server import SparkServer
from wavestitch.producers.sender import send_chunks


def test_what_the_wheel_installs_publishes_a_first_batch(
    tmp_path: Path, broker: Broker, topic_factory: TopicFactory, spark_server: SparkServer
) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path)) as packed:
        packed.extractall(tmp_path / "site")
    home, topic = tmp_path / "empty", topic_factory(partitions=2)
    home.mkdir()
    own = {**child_environment(os.environ), "PYTHONPATH": str(tmp_path / "site"), "NO_COLOR": "1"}

    def wavestitch(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "wavestitch", *words],
            cwd=home,
            env=own,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    address = address_for_tests(as_product(broker.bootstrap))
    named = ["--stream", "bench", "--topic", topic, "--group", f"{topic}-readers", "--schedule", ""]
    wavestitch("init", "--bootstrap", address, *named, "--data", "data")
    settings = home / "wavestitch.toml"
    there = f'[spark]\nremote = "{spark_server.remote}"\ntoken = "{spark_server.token}"\n'
    settings.write_text(settings.read_text().replace("[spark]\n", there))
    with (home / "streams" / "bench.yaml").open("a") as stream:
        stream.write("limits: {max_clock_skew: 36500 d}\n")
    sent = recordings(3)
    send_chunks(cut(sent), topic=topic, settings=as_product(broker.bootstrap))
    wavestitch("run", "bench")
    ingested = [b for b in json.loads(wavestitch("batches", "bench", "--json")) if b["ranges"]]
    assert [b["counts"]["published"] for b in ingested] == [len(cut(sent))]
    shown = json.loads(wavestitch("waveforms", "bench", "--json"))["waveforms"]
    assert {w["waveform_id"] for w in shown} == {r.waveform_id for r in sent}
