"""`docker/bin/init-topics` on a real broker: a stream's file takes no topic, and no start, from other streams."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.conftest import ROOT
from wavestitch.child_environment import child_environment
from wavestitch.local.broker import Broker
from wavestitch.local.topics import PARTITIONS


def test_a_topic_that_is_refused_and_a_file_that_is_none_are_said_and_the_others_have_theirs(
    tmp_path: Path, broker: Broker
) -> None:
    own = uuid.uuid4().hex[:8]
    taken, refused, last = f"{own}.a", f"{own}_a", f"{own}-last"
    texts = {name: f"topic: {topic}\ngroup: g\n" for name, topic in [("ecg", taken), ("mallory", refused), ("x", last)]}
    too_many = {f"z{n}": f"topic: {own}-{n}\ngroup: g\n# {'x' * n}\n" for n in (1, 2)}
    (tmp_path / "streams").mkdir()
    for name, text in {**texts, "broken": "topic: [", **too_many}.items():
        (tmp_path / "streams" / f"{name}.yaml").write_text(text)
    (tmp_path / "w.toml").write_text(
        f'landing = "{tmp_path}/landing"\ndocs = "{tmp_path}/docs"\nstreams = "{tmp_path}/streams"\nmost_streams = 4\n'
        f'[kafka]\nbootstrap = "{broker.bootstrap}"\n'
        f'[tables]\nuri = "sqlite:///{tmp_path}/c.db"\nwarehouse = "file://{tmp_path}/w"\n'
    )
    done = subprocess.run(
        [sys.executable, ROOT / "docker" / "bin" / "init-topics"],
        env={**child_environment(os.environ), "WAVESTITCH_CONFIG": str(tmp_path / "w.toml")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics
    assert {t: len(about.partitions) for t, about in made.items() if t.startswith(own)} == {
        taken: PARTITIONS,
        last: PARTITIONS,
    }
    many, broken, first, second, third = done.stdout.splitlines()
    assert "most_streams allows (4" in many
    assert broken.startswith("streams/broken.yaml")
    assert first == f"topic {taken}, of stream ecg: made, {PARTITIONS} partitions"
    assert second.startswith(f"topic {refused}, of stream mallory: not made, as its plans will say: making it on ")
    assert "collides" in second
    assert second.endswith("then correct `topic` in the stream's file")
    assert third == f"topic {last}, of stream x: made, {PARTITIONS} partitions"
