"""The log in memory answers as a real broker does: the same scenarios on both, every answer compared.

What is true of the one through the product's own ports is true of the other; so the thousands of histories that run on
the memory log say something about Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TopicFactory
from tests.deployment_rig import eventually
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import KeptPartition, Visibility
from tests.histories.log_scenarios import TAG
from tests.histories.scenes import (
    SCENARIOS,
    BrokerScene,
    FakeScene,
)
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.position import GroupOffset
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.local.broker import Broker, run_kafka_tool

SETTLE_SECONDS = 10
"""A broker answers a moment later than it acts: so long a differing answer is asked for again."""


# logs that lie


def _keeping_the_group(real: Any) -> Any:
    def recreate(self: FakeLog, partitions: int) -> None:
        kept = getattr(self, "group", {})
        real(self, partitions)
        self.group = kept

    return recreate


def _up_to_the_stable_end(self: FakeLog, partition: int, offset: int) -> None:
    at = self.partitions[Partition(partition)]
    at.log_start = Offset(min(max(at.log_start, offset), at.stable_end))


def _without_markers(self: FakeLog, outcome: Visibility, _time_ms: int) -> None:
    for at in self.partitions.values():
        at.seen = [outcome if v is Visibility.OPEN else v for v in at.seen]


def _keeping_the_tag(self: FakeLog, partition: int, offset: int) -> None:
    self.group[Partition(partition)] = GroupOffset(Offset(offset), TAG)


# both worlds


def look(call: Callable[[], Any]) -> Any:
    """The answer, or the name of the error: its words may differ, what a run does about it may not."""
    try:
        return call()
    except WavestitchError as error:
        return type(error).__name__


def observe_memory(play: Any, partitions: int) -> list[tuple[str, Any]]:
    return [(what, look(call)) for what, call in play(FakeScene(partitions))]


def observe_broker(play: Any, scene: BrokerScene, expected: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The same of a broker. An answer that differs is asked for again until the deadline, and then kept as it is."""
    seen: list[tuple[str, Any]] = []
    for n, (what, call) in enumerate(play(scene)):
        answers: list[Any] = []

        def settled(call: Any = call, answers: list[Any] = answers, wanted: Any = expected[n][1]) -> bool:
            answers.append(look(call))
            return bool(answers[-1] == wanted)

        with suppress(AssertionError):  # the comparison will say which answer it was
            eventually(settled, seconds=SETTLE_SECONDS)
        seen.append((what, answers[-1]))
    return seen


LIES: dict[str, tuple[Any, str, Any]] = {
    "offsets of a group outlive its topic": (FakeLog, "recreate", _keeping_the_group(FakeLog.recreate)),
    "a topic made anew is the same one": (FakeLog, "topic_id", property(lambda _: "topic-1")),
    "an open transaction is not waited for": (KeptPartition, "stable_end", property(lambda at: at.end)),
    "retention deletes nothing": (FakeLog, "retain_from", lambda *_, **__: None),
    "an open transaction is safe from retention": (FakeLog, "retain_from", _up_to_the_stable_end),
    "markers take no offset": (FakeLog, "end_transactions", _without_markers),
    "a reset keeps our tag": (FakeLog, "reset_group", _keeping_the_tag),
    "members keep nobody out": (FakeLog, "live_members", property(lambda _: [], lambda *_: None)),
    "a time is never found": (FakeLog, "_offset_at", staticmethod(lambda *asked: asked[-1])),
}


@pytest.mark.parametrize("lie", LIES)
def test_the_scenarios_find_out_a_log_that_lies(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = {name: observe_memory(play, partitions) for name, (partitions, play) in SCENARIOS.items()}
    monkeypatch.setattr(*LIES[lie], raising=False)
    assert {name: observe_memory(play, partitions) for name, (partitions, play) in SCENARIOS.items()} != honest


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_log_in_memory_answers_as_the_broker_does(
    name: str,
    broker: Broker,
    topic_factory: TopicFactory,
    make_topic: Callable[..., None],
    tmp_path: Path,
    java_home: Path,
    kafka_jars: Path,
) -> None:
    partitions, play = SCENARIOS[name]

    def forget(group: str, topic: str, partition: int) -> None:
        argv = ["--bootstrap-server", broker.bootstrap, "--group", group, "--topic", f"{topic}:{partition}"]
        tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        run_kafka_tool(java_home, kafka_jars, tool, [*argv, "--delete-offsets"])

    expected = observe_memory(play, partitions)
    topic = topic_factory(partitions=partitions)
    scene = BrokerScene(broker.bootstrap, topic, tmp_path, make_topic=make_topic, forget=forget)
    try:
        seen = observe_broker(play, scene, expected)
    finally:
        scene.close()
    assert seen == expected
