"""The corpus on a real broker, all in one topic: every poison between two probes, one batch with Spark, then again.

Proves I1, I2 and I3 where nothing is in memory: what the broker takes, the client hands out and Spark stitches.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.conftest import TopicFactory
from tests.deployment_rig import DeploymentRig, make_deployment_rig
from tests.hostile.corpus import STREAM_YAML, record_kinds
from tests.hostile.kind import PUBLISHED
from tests.hostile.landed_deployment import declare
from tests.hostile.outcome import HeldRecord, Sent, count_fates, held_records, interleave, problems, samples_of
from tests.hostile.sending import ALLOWED_LATENESS_S, record_time
from wavestitch.local.broker import Broker

PARTITIONS = 2
READER_GROWS_BY = 128 << 20
"""Beyond what is imported: one record batch of 16 MiB three times, and what the client fetches ahead."""


@dataclass(frozen=True)
class OnBroker:
    """A corpus that was sent and carried. `sent` and `held` are by partition and offset."""

    whole: DeploymentRig
    sent: dict[tuple[int, int], Sent]
    done: dict[str, Any]
    held: dict[tuple[int, int], HeldRecord]


def send(bootstrap: str, topic: str, what: Iterable[Sent]) -> dict[tuple[int, int], Sent]:
    """In this order, each to its partition; returns where each came to lie."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    now_ms = time.time_ns() // 1_000_000
    placed: dict[tuple[int, int], Sent] = {}
    for one in what:

        def remember(error: Any, message: Any, one: Sent = one) -> None:
            assert error is None, (one.kind, error)
            placed[message.partition(), message.offset()] = one

        r = one.record
        producer.produce(
            topic,
            key=r.key,
            value=r.value,
            headers=list(r.headers),
            partition=one.partition,
            timestamp=record_time(r, now_ms),
            on_delivery=remember,
        )
    assert producer.flush(60) == 0
    return placed


@pytest.fixture(scope="module")
def on_broker(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker, topic_factory: TopicFactory, java_home: Any
) -> OnBroker:
    topic = topic_factory(
        partitions=PARTITIONS,
        configs={"message.timestamp.after.max.ms": str((1 << 63) - 1)},
        prefix="hostile",
    )
    folder = tmp_path_factory.mktemp("hostile") / "deployment"
    whole = make_deployment_rig(folder, bootstrap=broker.bootstrap, topic=topic, java_home=java_home)
    declare(whole, STREAM_YAML)
    what = interleave(record_kinds(), partitions=PARTITIONS)
    sent = send(broker.bootstrap, topic, what)
    assert len(sent) == len(what)
    done = whole.run()["published"]
    return OnBroker(whole, sent, done, held_records(whole, allowed_lateness_s=ALLOWED_LATENESS_S))


def test_every_poison_is_held_as_it_came_with_its_reason_and_nothing_else_is(on_broker: OnBroker) -> None:
    assert problems(on_broker.sent, on_broker.held) == {}


def test_every_probe_in_front_of_and_behind_a_poison_is_published_and_nothing_else(on_broker: OnBroker) -> None:
    assert on_broker.whole.published() == samples_of(record_kinds(), partitions=PARTITIONS)


def test_the_audit_identity_counts_every_record_of_the_topic_once(on_broker: OnBroker) -> None:
    expected = count_fates(on_broker.sent.values())
    counts = on_broker.done["counts"]
    assert on_broker.done["identity_balances"]
    assert {fate: counts[fate] for fate in expected} == dict(expected)
    assert counts["read"] == counts["planned"] == len(on_broker.sent)


def test_sent_again_all_that_was_published_is_a_replay(on_broker: OnBroker, broker: Broker) -> None:
    mixed = {one.kind for one in on_broker.sent.values() if one.becomes != PUBLISHED}
    again = [one for one in on_broker.sent.values() if one.kind not in mixed]
    before = on_broker.whole.published()
    send(broker.bootstrap, on_broker.whole.topic, again)
    done = on_broker.whole.run()["published"]
    assert done["counts"]["replay"] == done["counts"]["read"] == len(again)
    assert on_broker.whole.published() == before


def test_a_reader_of_the_whole_topic_stays_small(on_broker: OnBroker, tmp_path: Path) -> None:
    """Every unit of the batch read once more, in a process of its own that tells what it took at most (I5)."""
    (plan,) = on_broker.whole.folder.glob(f"landing/*/{on_broker.done['plan_id']}/plan.json")
    program = """
        import sys
        from pathlib import Path
        from tests.peak_memory import forget_peak, peak_rss
        from wavestitch.kafka.client_settings import KafkaSettings
        from consumers.unit_reader import read_unit
        from wavestitch.contracts.plan import plan_from_json
        plan, before = plan_from_json(Path(sys.argv[1]).read_text()), forget_peak()
        for unit in range(len(plan.units)):
            receipt = read_unit(plan=plan, unit=unit, kafka=KafkaSettings(sys.argv[2]), folder=Path(sys.argv[3]))
        print(peak_rss() - before)
    """
    bootstrap = on_broker.whole.deployment.kafka.bootstrap
    argv = [sys.executable, "-c", textwrap.dedent(program), str(plan), bootstrap, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < READER_GROWS_BY
