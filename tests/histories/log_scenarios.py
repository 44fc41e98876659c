"""What is played on the log in memory and on a broker: the log's ends, transactions, retention, epochs, and a group.

Each scenario is kept by its name (`scenes.SCENARIOS`) once this is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.fakes.kept_partition import Visibility
from tests.histories.scenes import START_MS, Scene, Step, everything, scenario
from wavestitch.contracts.position import Position, Tag
from wavestitch.contracts.quantities import EpochMs, Generation, LeaderEpoch, Offset, Partition

TAG = Tag("0f8fad5b-d9cb-469f-a165-70867728950e", Generation(3), 14).encode()


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
    for offset in (2, 4, 9):
        yield f"the time of {offset}", partial(scene.log.times_at, scene.topic, {Partition(0): Offset(offset)})
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
    for offset in (5, 6, 7):
        yield f"the time of {offset}", partial(scene.log.times_at, scene.topic, {Partition(0): Offset(offset)})
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
