"""Whoever is to be warned is warned before retention takes what nobody has read, once; and is told of what it took."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from typer.testing import CliRunner

from tests.builders.recordings import cut, recordings
from tests.builders.webhook import Webhook, listening_webhook
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, eventually, make_deployment_rig
from tests.product_logins import address_for_tests
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.record_ages import ages_of
from wavestitch.batch.steps import step_plan
from wavestitch.batch.watch import Watched, watch_stream, watched_line
from wavestitch.cli import app
from wavestitch.contracts.headroom import Alarm
from wavestitch.contracts.quantities import EpochMs, Partition, epoch_ms
from wavestitch.local.broker import Broker
from wavestitch.settings import load_settings

HOUR_MS = 3_600_000
KEPT_AN_HOUR = {"retention.ms": str(HOUR_MS), "message.timestamp.type": "LogAppendTime"}


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with listening_webhook() as found:
        yield found


@pytest.fixture
def told(
    tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path, webhook: Webhook
) -> DeploymentRig:
    """A deployment whose webhook is told; the stream's topic is empty."""
    topic = topic_factory(partitions=2, configs=KEPT_AN_HOUR)
    rig = make_deployment_rig(tmp_path / "deployment", bootstrap=broker.bootstrap, topic=topic, java_home=java_home)
    config = rig.folder / "wavestitch.toml"
    config.write_text(f'{config.read_text()}[notify]\nwebhook = "{webhook.address}"\n')
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(config)}))
    return DeploymentRig(deployment, topic, rig.group, rig.folder)


@pytest.fixture
def waiting(told: DeploymentRig) -> DeploymentRig:
    """A stream that has begun, and records that nobody has read."""
    told.send(cut(recordings(2)))
    told.plan()
    return told


def look(rig: DeploymentRig, minutes: int) -> Watched:
    """As it would be seen so long from now."""
    return watch_stream(rig.deployment, STREAM, now=EpochMs(epoch_ms(time.time_ns()) + minutes * 60_000))


def keep_for(rig: DeploymentRig, ms: int) -> None:
    entry = ConfigEntry("retention.ms", str(ms), incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, rig.topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address_for_tests(rig.deployment.kafka)})
    admin.incremental_alter_configs([topic])[topic].result(30)


def taken(rig: DeploymentRig) -> bool:
    ends = rig.deployment.log.ends(rig.topic, [Partition(0), Partition(1)])
    return all(at.log_start == at.high_watermark for at in ends.values())


def test_the_alarm_comes_before_the_loss_and_once_and_the_webhook_got_it(
    waiting: DeploymentRig, webhook: Webhook
) -> None:
    assert not look(waiting, 0).told
    assert look(waiting, 35).told
    assert not look(waiting, 36).told
    webhook.status = 503
    assert not look(waiting, 50).delivered
    webhook.status = 204
    assert look(waiting, 50).delivered, "it was not told yet"
    assert not look(waiting, 51).told
    assert not taken(waiting)
    keep_for(waiting, 1000)
    eventually(lambda: taken(waiting), seconds=60)
    lost = look(waiting, 0)
    assert lost.room is not None
    assert not look(waiting, 1).told
    amber, red, red_again, gone = webhook.told
    assert amber["subject"].startswith(f"{STREAM}: headroom is amber: retention takes unread data in 2")
    assert amber["facts"] == {
        "stream": STREAM,
        "alarm": "amber",
        "blind": False,
        "late": False,
        "backlog": lost.room.lost,
        "behind_s": pytest.approx(35 * 60, rel=0.05),
        "left_s": pytest.approx(25 * 60, rel=0.05),
        "lost": 0,
        "behind_open": 0,
        "stands": False,
        "partitions": "0, 1",
    }
    assert "wavestitch run" in amber["text"]
    assert red == red_again
    assert red["facts"]["alarm"] == "red"
    assert gone["subject"] == f"{STREAM}: retention took {lost.room.lost} offsets that nobody had read"


def test_the_alarm_comes_before_retention_takes_what_waits_behind_an_open_transaction(
    told: DeploymentRig, webhook: Webhook
) -> None:
    assert isinstance(step_plan(told.edges(), PlanRequest()), NothingToDo), "the stream has begun"
    long_time_out = {"transactional.id": f"hangs-{told.topic}", "transaction.timeout.ms": 900_000}
    hangs = Producer({"bootstrap.servers": address_for_tests(told.deployment.kafka), **long_time_out})
    hangs.init_transactions(30)
    hangs.begin_transaction()
    for p in (0, 1):
        hangs.produce(told.topic, b"x", key=b"x", partition=p)
    assert hangs.flush(30) == 0
    told.send(cut(recordings(2)))
    ends = told.deployment.log.ends(told.topic, [Partition(0), Partition(1)])
    unread = sum(at.high_watermark for at in ends.values())
    assert [at.stable_end for at in ends.values()] == [0, 0]
    first = look(told, 5)
    assert first.room is not None
    assert (first.told, first.room.backlog, first.room.waiting) == (False, unread, unread)
    assert "partition 1 (" in watched_line(first)
    assert look(told, 50).told
    keep_for(told, 1000)
    eventually(lambda: taken(told), seconds=60)
    lost = look(told, 0)
    assert lost.room is not None
    assert (lost.room.lost, lost.room.backlog) == (unread, 0)
    red, gone = webhook.told
    assert (red["facts"]["alarm"], red["facts"]["behind_open"]) == ("red", unread)
    assert "find-hanging" in red["text"]
    assert gone["subject"] == f"{STREAM}: retention took {unread} offsets that nobody had read"


def test_how_old_the_first_unread_record_is_is_found_without_reading_it(waiting: DeploymentRig) -> None:
    ends = waiting.deployment.log.ends(waiting.topic, [Partition(0), Partition(1)])
    unread = {p: at.log_start for p, at in ends.items() if at.stable_end}
    an_hour_on = EpochMs(epoch_ms(time.time_ns()) + HOUR_MS)
    ages = ages_of(waiting.deployment.log, waiting.topic, unread, now=an_hour_on)
    assert ages == {p: pytest.approx(HOUR_MS, rel=0.02) for p in unread}


def test_status_and_watch_show_it_and_a_stream_that_nobody_can_look_at_is_told_after_the_second_look(
    waiting: DeploymentRig, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = waiting.folder / "wavestitch.toml"
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
    keep_for(waiting, 24 * HOUR_MS)
    shown = CliRunner().invoke(app, ["status", "--json"])
    (row,) = json.loads(shown.stdout)
    assert row["headroom"]["alarm"] == Alarm.GREEN
    assert row["headroom"]["left_s"] == pytest.approx(24 * 3600, rel=0.05)
    assert "green 2" in CliRunner().invoke(app, ["status"], env={"COLUMNS": "160"}).stdout
    watched = CliRunner().invoke(app, ["watch"])
    assert (watched.exit_code, webhook.calls) == (0, [])
    assert "headroom is green" in watched.stdout
    declared = waiting.folder / "streams" / f"{STREAM}.yaml"
    whole = declared.read_text()
    declared.write_text(whole.replace(waiting.topic, "nobody-made-it"))
    for told in ([], ["blind"], ["blind"]):
        assert CliRunner().invoke(app, ["watch", "--json"]).exit_code == 75
        assert ["blind" for body in webhook.told if body["facts"]["blind"]] == told
    declared.write_text(whole)
    assert CliRunner().invoke(app, ["watch"]).exit_code == 0
    assert not logging.getLogger("wavestitch.batch").handlers, "who called it hears no more of it on stderr"
    assert webhook.subjects[-1] == f"{STREAM}: headroom is green again"
