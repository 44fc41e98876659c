"""Every batch leaves its figures where Prometheus and OpenTelemetry take them, and so does whoever watches."""

from __future__ import annotations

from pathlib import Path

from tests.builders.metrics import in_request, in_textfile
from tests.builders.recordings import cut, recordings
from tests.builders.webhook import listening_webhook
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, make_deployment_rig
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.watch import watch_stream
from wavestitch.contracts.metrics import METRICS
from wavestitch.local.broker import Broker
from wavestitch.settings import load_settings

KEPT_AN_HOUR = {"retention.ms": "3600000", "message.timestamp.type": "LogAppendTime"}


def test_a_batch_and_a_look_are_told_to_prometheus_and_opentelemetry_in_the_same_figures(
    tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path
) -> None:
    topic = topic_factory(partitions=2, configs=KEPT_AN_HOUR)
    made = make_deployment_rig(
        tmp_path / "deployment",
        bootstrap=broker.bootstrap,
        topic=topic,
        java_home=java_home,
        stream="freshness: 15 s\n",
    )
    (folder := tmp_path / "collected").mkdir()
    config = made.folder / "wavestitch.toml"
    chunks = cut(recordings(3))
    with listening_webhook() as receiver:
        config.write_text(f'{config.read_text()}[metrics]\ntextfile = "{folder}"\notlp = "{receiver.address}"\n')
        deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(config)}))
        rig = DeploymentRig(deployment, topic, made.group, made.folder)
        rig.send(chunks[:-1])
        done = rig.run_without_spark()["published"]
        after_batch = in_textfile(folder, STREAM)
        assert in_request(receiver.bodies[-1], STREAM) == after_batch
        rig.send(chunks[-1:])
        watch_stream(deployment, STREAM)
        watched = in_textfile(folder, STREAM)
        assert in_request(receiver.bodies[-1], STREAM) == watched

    assert done["waveforms"] == {"published": 2, "open": 1, "quarantined": 0}
    partition = {p: r["read"] for p, r in rig.deployment.tables(STREAM).batches()[0].partitions.items()}
    for p, n in partition.items():
        assert after_batch["wavestitch_read_records_total", p] == n
        assert after_batch["wavestitch_lag_offsets", p] == 0
    sent = sum(len(c.value) for c in chunks[:-1])
    assert sum(n for (name, *_), n in after_batch.items() if name == "wavestitch_read_bytes_total") == sent
    assert after_batch["wavestitch_waveforms_total", "published"] == 2
    assert after_batch["wavestitch_chunks_total", "carried_out"] == after_batch["wavestitch_held_chunks", "open"] > 0
    assert after_batch["wavestitch_open_waveforms",] == 1
    assert 0 < after_batch["wavestitch_open_age_seconds",] < 3600
    assert after_batch["wavestitch_last_batch_seconds", "publish"] > 0

    assert {name for name, *_ in watched} == {m.name for m in METRICS}, "every metric there is was told"
    (behind,) = [key[1] for key, n in watched.items() if key[0] == "wavestitch_lag_offsets" and n == 1]
    assert 0 < watched["wavestitch_lag_seconds", behind] < 600
    assert 3000 < watched["wavestitch_headroom_seconds", behind] <= 3600
    assert watched["wavestitch_up",] == 1
    counters = [m.name for m in METRICS if m.name.endswith("_total")]
    assert all(watched[key] == n for key, n in after_batch.items() if key[0] in counters), "counted once"
