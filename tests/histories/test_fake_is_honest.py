"""The log in memory answers as a real broker does: the same scenarios on both, every answer compared.

What is true of the one through the product's own ports is true of the other; so the thousands of histories that run on
the memory log say something about Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TopicFactory
from tests.deployment_rig import eventually
from tests.fakes.fake_log import FakeLog, Visibility, _Partition
from tests.histories.scenes import (
    SCENARIOS,
    START_MS,
    BrokerScene,
    FakeScene,
    Scene,
    Step,
    everything,
    scenario,
)
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.position import GroupOffset, Position, Tag
from wavestitch.contracts.quantities import EpochMs, Generation, LeaderEpoch, Offset, Partition
from wavestitch.local.broker import Broker, run_kafka_tool

TAG = Tag("0f8fad5b-d9cb-469f-a165-70867728950e", Generation(3), 14).encode()
SETTLE_SECONDS = 10
"""A broker answers a moment later than it acts: so long a differing answer is asked for again."""


# the log


@scenario(partitions=2)
def plain_records_and_an_empty_partition(scene: Scene) -> Iterator[Step]:
    yield from everything(scene, (0, 1))
    scene.send(12, at_ms=1000)
    yield from everything(scene, (0, 1))
    yield "all of it", lambda: scene.read(0, 12)
    yield "the middle", lambda: scene.read(3, 7)


@scenario(partitions=2)
def committed_and_aborted_transactions_with_markers_at_the_end(scene: Scene) -> Iterator[Step]:
    scene.send(2)
    scene.begin(3)
    scene.begin(1, partition=1)
    scene.end(Visibility.COMMITTED)
    yield from everything(scene, (0, 1))
    scene.begin(3)
    scene.end(Visibility.ABORTED)
    yield from everything(scene, (0, 1))
    yield "all of it", lambda: scene.read(0, 10)
    yield "a marker as the last offset", lambda: scene.read(0, 6)
    yield "nothing but a marker", lambda: scene.read(5, 6)
    yield "nothing but what was aborted", lambda: scene.read(6, 10)
    yield "the other partition", lambda: scene.read(0, 2, partition=1)
    scene.send(1)
    yield "what comes after", lambda: scene.read(4, 11)


@scenario()
def an_open_transaction_at_the_end(scene: Scene) -> Iterator[Step]:
    scene.send(4, at_ms=1000)
    scene.begin(3, at_ms=5000)
    yield from everything(scene)
    yield "up to the stable end", lambda: scene.read(0, 4)
    yield "beyond it", lambda: scene.read(0, 7)
    yield (
        "a time behind the stable end",
        lambda: scene.log.offsets_at(scene.topic, {Partition(0): EpochMs(START_MS + 4000)}),
    )
    scene.send(2, at_ms=6000)
    yield "another producer goes on", lambda: scene.log.ends(scene.topic, [Partition(0)])
    scene.end(Visibility.COMMITTED)
    yield "ended", lambda: scene.log.ends(scene.topic, [Partition(0)])
    yield "all of it", lambda: scene.read(0, 10)


@scenario()
def retention(scene: Scene) -> Iterator[Step]:
    scene.send(10, at_ms=1000)
    scene.delete_before(4)
    yield from everything(scene)
    yield "from where it begins", lambda: scene.read(4, 10)
    yield "below where it begins", lambda: scene.read(2, 10)
    yield "all of it gone", lambda: scene.read(0, 3)
    for ms in (-1, -2, -3, -4, -(10**15)):
        yield f"a time before 1970, {ms}", partial(scene.log.offsets_at, scene.topic, {Partition(0): EpochMs(ms)})
    yield "a time before", lambda: scene.log.offsets_at(scene.topic, {Partition(0): EpochMs(START_MS)})
    scene.delete_before(10)
    yield "empty again", lambda: scene.log.ends(scene.topic, [Partition(0)])
    yield "a time of nothing", lambda: scene.log.offsets_at(scene.topic, {Partition(0): EpochMs(START_MS)})
    scene.send(1)
    yield "and on", lambda: scene.read(10, 11)


@scenario()
def retention_behind_an_open_transaction(scene: Scene) -> Iterator[Step]:
    scene.send(4, at_ms=1000)
    scene.begin(3, at_ms=5000)
    scene.send(5, at_ms=6000)

    def times(committed: bool) -> Any:
        asked = [EpochMs(START_MS + ms) for ms in (500, 5000, 6000, 7000)]
        return [scene.log.offsets_at(scene.topic, {Partition(0): at}, committed=committed) for at in asked]

    yield "times up to the stable end", lambda: times(True)
    yield "and up to the high watermark", lambda: times(False)
    scene.delete_before(6)
    yield from everything(scene)
    yield "times in what is left", lambda: times(False)
    scene.delete_before(12)
    yield from everything(scene)
    yield "none of them is left", lambda: times(False)
    scene.send(2, at_ms=8000)
    yield "it still is open", lambda: scene.log.ends(scene.topic, [Partition(0)])
    scene.end(Visibility.COMMITTED)
    yield "ended", lambda: scene.log.ends(scene.topic, [Partition(0)])
    yield "and on", lambda: scene.read(12, 15)


@scenario()
def leader_epochs(scene: Scene) -> Iterator[Step]:
    scene.send(5)

    def ends(epoch: int) -> Any:
        return scene.log.epoch_ends(scene.topic, {Partition(0): LeaderEpoch(epoch)})

    def there(offset: int) -> Any:
        (found,) = scene.log.batches_at(scene.topic, {Partition(0): Offset(offset)}).values()
        return found and found.leader_epoch, found == before

    (before,) = scene.log.batches_at(scene.topic, {Partition(0): Offset(4)}).values()
    yield "the epoch of now ends where the log does", lambda: ends(0)
    yield "one that never was", lambda: ends(7)
    scene.begin(2)
    yield "with what is open", lambda: ends(0)
    scene.end(Visibility.COMMITTED)
    scene.delete_before(3)
    yield "and what retention left", lambda: ends(0)
    yield "the batch that lies there is the same", lambda: there(4)
    yield "those behind it are others, a marker, too", lambda: [there(6), there(7)]
    yield "and below the log there is none", lambda: there(1)
    yield "none is asked for", lambda: scene.log.epoch_ends(scene.topic, {})


@scenario()
def beyond_the_end(scene: Scene) -> Iterator[Step]:
    scene.send(3)
    yield "beyond the end", lambda: scene.read(0, 5)
    yield "from beyond the end", lambda: scene.read(4, 5)


@scenario(partitions=2)
def a_recreated_topic(scene: Scene) -> Iterator[Step]:
    scene.send(5)
    first = scene.log.topic(scene.topic).topic_id
    yield from everything(scene, (0, 1))
    scene.log.commit_group(
        scene.group, scene.topic, {Partition(0): Position(Offset(5)), Partition(1): Position(Offset(0))}, TAG
    )
    yield "committed", lambda: scene.log.group_offsets(scene.group, scene.topic, [Partition(0), Partition(1)])
    scene.recreate(1)
    yield from everything(scene)
    scene.fresh_producer()
    scene.send(7)
    yield from everything(scene)
    yield "by its old id", lambda: scene.read(0, 5, topic_id=first)
    yield "by its new one", lambda: scene.read(0, 7)


@scenario()
def grown_partitions(scene: Scene) -> Iterator[Step]:
    scene.send(2)
    scene.log.commit_group(scene.group, scene.topic, {Partition(0): Position(Offset(2))}, TAG)
    scene.grow()
    yield from everything(scene, (0, 1))
    scene.fresh_producer()
    scene.send(3, partition=1)
    yield from everything(scene, (0, 1))
    yield "the new one", lambda: scene.read(0, 3, partition=1)


@scenario(partitions=2)
def offsets_by_time(scene: Scene) -> Iterator[Step]:
    for at_ms in (0, 10, 10, 40, 30, 90):
        scene.send(1, at_ms=at_ms)
    for at_ms in (-1, 0, 1, 10, 11, 35, 40, 41, 90, 91):
        asked = {0: START_MS + at_ms, 1: START_MS + at_ms}
        yield f"{at_ms} ms", lambda asked=asked: scene.log.offsets_at(scene.topic, asked)  # type: ignore[misc]
    scene.begin(2, at_ms=200)
    scene.end(Visibility.ABORTED)
    yield (
        "what was aborted has its time",
        lambda: scene.log.offsets_at(scene.topic, {Partition(0): EpochMs(START_MS + 150)}),
    )
    yield "so has its marker", lambda: scene.log.offsets_at(scene.topic, {Partition(0): EpochMs(START_MS + 300)})
    yield "and nothing is later", lambda: scene.log.offsets_at(scene.topic, {Partition(0): EpochMs(4_000_000_000_000)})


@scenario()
def a_compacted_topic(scene: Scene) -> Iterator[Step]:
    scene.send(3)
    topic_id = scene.log.topic(scene.topic).topic_id
    yield from everything(scene)
    scene.compact()
    yield from everything(scene)
    yield "reading it", lambda: scene.read(0, 3, topic_id=topic_id)


@scenario()
def what_is_not_there(scene: Scene) -> Iterator[Step]:
    log = scene.log
    yield "no topic", lambda: log.topic("no-such-topic")
    yield "no topic's ends", lambda: log.ends("no-such-topic", [Partition(0)])
    yield "no topic's times", lambda: log.offsets_at("no-such-topic", {Partition(0): EpochMs(0)})
    yield "no topic's group", lambda: log.group_offsets(scene.group, "no-such-topic", [Partition(0)])
    yield "no partition's ends", lambda: log.ends(scene.topic, [Partition(0), Partition(7)])
    yield (
        "no partition's times",
        lambda: log.offsets_at(scene.topic, {Partition(0): EpochMs(0), Partition(7): EpochMs(0)}),
    )
    yield "no partition's group", lambda: log.group_offsets(scene.group, scene.topic, [Partition(0), Partition(7)])
    yield "nothing asked", lambda: (log.ends(scene.topic, []), log.offsets_at(scene.topic, {}))


# the group


@scenario(partitions=3)
def offsets_of_a_group(scene: Scene) -> Iterator[Step]:
    scene.send(9)
    log = scene.log

    def look() -> Any:
        return log.group_offsets(scene.group, scene.topic, [Partition(0), Partition(1), Partition(2)])

    yield "none yet", look
    yield (
        "our own",
        lambda: log.commit_group(
            scene.group, scene.topic, {Partition(0): Position(Offset(4)), Partition(1): Position(Offset(0))}, TAG
        ),
    )
    yield "seen", look
    scene.reset(0, 2)
    yield "somebody's reset has no tag", look
    scene.reset(2, 5)
    yield "a reset where we had none", look
    yield (
        "written over",
        lambda: log.commit_group(scene.group, scene.topic, {Partition(p): Position(Offset(9)) for p in range(3)}, TAG),
    )
    yield "ours again", look
    yield (
        "with leader epochs",
        lambda: log.commit_group(
            scene.group,
            scene.topic,
            {Partition(0): Position(Offset(9), leader_epoch=LeaderEpoch(0)), Partition(1): Position(Offset(9))},
            TAG,
        ),
    )
    yield "which are kept", look
    scene.expire(1)
    yield "one expired, its neighbours not", look
    yield "none of them", lambda: log.commit_group(scene.group, scene.topic, {}, TAG)
    yield (
        "a partition that is not there",
        lambda: log.commit_group(
            scene.group, scene.topic, {Partition(0): Position(Offset(1)), Partition(7): Position(Offset(1))}, TAG
        ),
    )
    yield "the one that is there was written", look
    yield (
        "a topic that is not there",
        lambda: log.commit_group(scene.group, "no-such-topic", {Partition(0): Position(Offset(1))}, TAG),
    )


@scenario()
def a_live_member(scene: Scene) -> Iterator[Step]:
    with scene.member():
        yield "seen", lambda: len(scene.log.members(scene.group))
        yield (
            "kept out",
            lambda: scene.log.commit_group(scene.group, scene.topic, {Partition(0): Position(Offset(1))}, TAG),
        )
    yield "gone", lambda: len(scene.log.members(scene.group))
    yield "let in", lambda: scene.log.commit_group(scene.group, scene.topic, {Partition(0): Position(Offset(1))}, TAG)
    yield "written", lambda: scene.log.group_offsets(scene.group, scene.topic, [Partition(0)])


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
    "an open transaction is not waited for": (_Partition, "stable_end", property(lambda at: at.end)),
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
