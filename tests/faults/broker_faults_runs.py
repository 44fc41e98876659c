"""What happens to batches: chunks that are late, repeated or in conflict, readers killed, rewinds and resets under a
run, backfills beside an ingest (rows 3, 14 to 16, 23, 24)."""

from __future__ import annotations

import time
from functools import partial

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.builders.recordings import recordings
from tests.deployment_rig import STREAM
from tests.faults.broker_faults_case import BETWEEN, Case, play
from tests.faults.broker_faults_killed_reader import read_in_children
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import Fenced, Terminal, Transient
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.producers.chunking import ChunkRecord

HOUR_NS = 3600 * 1_000_000_000


def reader_killed(bench: Bench, seed: int) -> Counts:
    """SIGKILL in the middle of a slice, some times over; nothing of it may be seen, and the plan goes through."""

    def act(case: Case) -> None:
        sent = case.produce()
        ended = case.run(between={"plan": lambda: None}, read=partial(read_in_children, kill_at=_at(case, sent)))
        for _ in range(case.rng.randint(0, 1)):
            assert isinstance(ended.error, Transient), ended
            ended = case.run(plan_id=ended.plan_id, read=partial(read_in_children, kill_at=_at(case, sent)))
        assert isinstance(ended.error, Transient), ended
        assert "signal 9" in ended.error.message
        assert case.whole.published() == {}
        head = case.whole.deployment.tables(STREAM).head()
        assert head is not None
        assert {at.next_offset for at in head.positions.values()} == {0}
        case.again(ended)

    return play(bench, seed, act)


def _at(case: Case, sent: list[ChunkRecord]) -> int:
    return case.rng.randint(1, max(2, len(sent) // 2))


def chunks_repeated(bench: Bench, seed: int) -> Counts:
    """The same chunks again: in the batch, in other partitions, in later batches, all of them or some."""

    def act(case: Case) -> None:
        chunks = case.make()
        repeats = [c for c in chunks if case.rng.random() < 0.4]
        case.ledger.send(case.lay_out([*chunks, *repeats]))
        case.run()
        for _ in range(case.rng.randint(1, 2)):
            case.ledger.send(case.lay_out(case.rng.sample(chunks, case.rng.randint(1, len(chunks)))))
            assert case.run().word == "done"

    return play(bench, seed, act)


def chunks_in_conflict(bench: Bench, seed: int) -> Counts:
    """Two versions of a waveform. In one batch neither is published; across batches the first that was whole stays."""

    def act(case: Case) -> None:
        rng, count, samples = case.rng, case.rng.randint(2, 5), case.rng.randint(200, 700)
        first = recordings(count, samples=samples, seed=rng.randrange(1 << 30), prefix=f"c{seed}-")
        other = recordings(count, samples=samples, seed=rng.randrange(1 << 30), prefix=f"c{seed}-")
        size = rng.choice((128, 256, 512))
        ours, theirs = case.cut(first, size), case.cut(other, size)
        some = [c for c in theirs if rng.random() < 0.5] or theirs[:1]
        if rng.random() < 0.5:
            case.ledger.send(case.lay_out([*ours, *some]))
            assert case.run().word == "done"
            touched = {c.waveform_id for c in some}
            assert not touched & case.whole.published().keys(), "of a waveform in conflict a version was published"
        else:
            case.ledger.send(case.lay_out(ours))
            assert case.run().word == "done"
            before = case.whole.published()
            case.ledger.send(case.lay_out(some))
            assert case.run().word == "done"
            assert case.whole.published() == before
        case.ledger.send(case.lay_out(rng.sample(ours, len(ours) // 2)))

    return play(bench, seed, act)


def chunks_late(bench: Bench, seed: int) -> Counts:
    """Chunks that come in later batches, in any order, over any partition; the last missing one heals its waveform."""

    def act(case: Case) -> None:
        chunks = case.make()
        case.rng.shuffle(chunks)
        rounds = case.rng.randint(2, 4)
        for n in range(rounds):
            case.ledger.send(case.lay_out(chunks[n::rounds]))
            if case.rng.random() < 0.3:
                case.ledger.send(case.lay_out(chunks[: case.rng.randint(1, len(chunks))]))
            case.run()

    return play(bench, seed, act)


def rewound_under_a_run(bench: Bench, seed: int) -> Counts:
    """Our own rewind at every boundary: before the commit the run ends fenced, after it nothing is published twice."""

    def act(case: Case) -> None:
        case.produce()
        case.run()  # a rewind that moves nothing is refused
        case.produce()
        step = BETWEEN[seed % len(BETWEEN)]
        target = case.rng.choice((Target("earliest"), Target("previous")))
        if target.word == "previous" and not _stood_elsewhere(case):
            target = Target("earliest")
        ended = case.run(between={step: lambda: case.rewind(target)})
        if step in ("publish", "commit_offsets"):
            assert ended.word == "done", ended
        else:
            assert isinstance(ended.error, Fenced), ended
        again = case.run(plan_id=ended.plan_id)
        assert isinstance(again.error, Fenced) or again.result["published"]["again"], again

    return play(bench, seed, act)


def _stood_elsewhere(case: Case) -> bool:
    heads = case.whole.deployment.tables(STREAM).heads()
    return len({tuple(sorted(h.positions.items())) for h in heads}) > 1


def group_reset_under_a_run(bench: Bench, seed: int) -> Counts:
    """Kafka's own tools set the group back or forward at every boundary; the next plan takes it over or says so."""

    def act(case: Case) -> None:
        case.produce()
        if case.rng.random() < 0.5:
            case.run()
            case.produce()
        step = BETWEEN[seed % len(BETWEEN)]
        case.run(between={step: lambda: reset_group(case)})
        case.settle()
        kinds = [h.kind.value for h in case.whole.deployment.tables(STREAM).heads()]
        assert {"adopted", "rewind"} & set(kinds), f"a reset of the group was overwritten: {kinds}"

    return play(bench, seed, act)


def reset_group(case: Case) -> None:
    """As kafka-consumer-groups.sh --reset-offsets does: an offset without any metadata, on some partitions."""
    log, topic = case.whole.deployment.log, case.whole.topic
    ends = log.ends(topic, log.topic(topic).partitions)
    chosen = case.rng.sample(sorted(ends), case.rng.randint(1, len(ends)))
    at = [TopicPartition(topic, p, case.rng.randint(0, ends[p].stable_end)) for p in chosen]
    admin = case.admin
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(case.whole.group, at)])[case.whole.group].result(
        30
    )


def backfill_beside_an_ingest(bench: Bench, seed: int) -> Counts:
    """One inside the other, at every boundary, over the same records."""

    def act(case: Case) -> None:
        now = time.time_ns()
        chunks = case.make(case.rng.randint(3, 6), start_ns=now)
        withheld = [c for c in chunks if case.rng.random() < 0.08]
        case.ledger.send(case.lay_out([c for c in chunks if c not in withheld]))
        hours = case.rng.randint(1, 6)
        backfill = PlanRequest(PlanKind.BACKFILL, scope=Scope(now - 1, now - 1 + hours * HOUR_NS))
        step = BETWEEN[seed % len(BETWEEN)]
        case.run() if case.rng.random() < 0.3 else None
        if case.rng.random() < 0.5:
            ended = case.run(between={step: lambda: _inner(case, backfill)})
        else:
            ended = case.run(request=backfill, between={step: lambda: _inner(case, None)})
        assert ended.word in ("done", "nothing") or type(ended.error) in (Fenced, Terminal), ended
        if ended.error is not None:
            case.run(request=backfill)
        case.ledger.send(case.lay_out(withheld))

    return play(bench, seed, act)


def _inner(case: Case, request: PlanRequest | None) -> None:
    ended = case.run(request=request)
    assert ended.word in ("done", "nothing"), ended


CLASSES = (
    FaultClass("reader killed in a slice", (3,), Need.BROKER, 24, (0,), reader_killed),
    FaultClass("chunks repeated", (14,), Need.BROKER, 8, (0,), chunks_repeated),
    FaultClass("chunks in conflict", (15,), Need.BROKER, 8, (0,), chunks_in_conflict),
    FaultClass("chunks late or out of order", (16,), Need.BROKER, 8, (0,), chunks_late),
    FaultClass("rewound under a run", (23,), Need.BROKER, 12, (0,), rewound_under_a_run),
    FaultClass("group reset under a run", (23,), Need.BROKER, 12, (4,), group_reset_under_a_run),
    FaultClass("backfill beside an ingest", (24,), Need.BROKER, 12, (1,), backfill_beside_an_ingest),
)
