"""What happens to brokers: killed, frozen, leaders that move, an unclean election (rows 1, 2, 27, 28)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import KafkaException

from tests.faults.broker_faults_case import BETWEEN, Case, Ended, play
from tests.faults.cluster import NODES, Cluster, settled
from tests.faults.fault_class import Bench, Counts, FaultClass, Need

BEFORE_THE_COMMIT = (*BETWEEN, "mid-read", "mid-read", "mid-read")
DURABLE = {"min.insync.replicas": "2"}


def on(bench: Bench) -> Cluster:
    assert bench.cluster is not None, "this class needs a cluster"
    return bench.cluster


def spread(seed: int, partitions: int, replicas: int) -> list[list[int]]:
    """Replicas of each partition; the first of them leads."""
    return [[NODES[(seed + p + r) % len(NODES)] for r in range(replicas)] for p in range(partitions)]


def strike(case: Case, sent: int, what: Callable[[], None]) -> Ended:
    """A run, and the fault at a seeded moment of it."""
    step = case.moment(BEFORE_THE_COMMIT)
    if step == "mid-read":
        return case.run(at_record=(case.rng.randint(1, max(1, sent // 2)), what))
    return case.run(between={step: what})


def ends_well_or_transient(case: Case, ended: Ended) -> None:
    assert ended.word in ("done", "Transient"), ended
    if ended.error is not None:
        case.again(ended)


def broker_killed(bench: Bench, seed: int) -> Counts:
    """SIGKILL of a leader, and the run goes on; sometimes it is back before the run ends, sometimes after."""
    cluster = on(bench)

    def act(case: Case) -> None:
        sent = len(case.produce())
        victim = cluster.leader(case.whole.topic, case.rng.randrange(case.partitions))
        back = case.rng.random() < 0.3

        def kill() -> None:
            cluster.kill(victim)
            if back:
                cluster.start(victim)

        ended = strike(case, sent, kill)
        ends_well_or_transient(case, ended)
        cluster.heal(case.whole.topic)
        case.produce(2, prefix="after")

    return _played(bench, seed, act)


def broker_frozen(bench: Bench, seed: int) -> Counts:
    """SIGSTOP of a leader: its connections stay, it says nothing; it wakes up after the run has ended."""
    cluster = on(bench)

    def act(case: Case) -> None:
        sent = len(case.produce())
        victim = cluster.leader(case.whole.topic, case.rng.randrange(case.partitions))
        ended = strike(case, sent, lambda: cluster.freeze(victim))
        assert ended.word in ("done", "Transient"), ended
        cluster.heal(case.whole.topic)
        if ended.error is not None:
            case.again(ended)

    return _played(bench, seed, act)


def leader_moves(bench: Bench, seed: int) -> Counts:
    """A leader ends cleanly while a batch reads, comes back, and is elected again while the next one reads."""
    cluster = on(bench)

    def act(case: Case) -> None:
        topic, p = case.whole.topic, case.rng.randrange(case.partitions)
        sent = len(case.produce())
        victim = cluster.leader(topic, p)
        ended = case.run(at_record=(case.rng.randint(1, max(1, sent // 2)), lambda: cluster.stop(victim)))
        ends_well_or_transient(case, ended)
        cluster.heal(topic)
        assert cluster.leader(topic, p) != victim
        sent = len(case.produce())

        def elect() -> None:
            cluster.elect(topic, p)
            settled(lambda: cluster.leader(topic, p) == victim)

        ended = case.run(at_record=(case.rng.randint(1, max(1, sent // 2)), elect))
        assert ended.word == "done", ended

    return _played(bench, seed, act)


def unclean_election(bench: Bench, seed: int) -> Counts:
    """A replica that lacks acknowledged records becomes the leader: they are cut off, and others take their offsets.

    What was published stays as it is; what takes their place is read like anything else, or refused by name.
    """
    cluster = on(bench)

    def act(case: Case) -> None:
        topic = case.whole.topic
        ahead, behind = (spread(seed, 1, 2))[0]
        case.produce()
        if case.rng.random() < 0.5:
            case.run()
        cluster.stop(behind)
        settled(lambda: cluster.in_sync(topic, 0) == {ahead})
        kept = list(case.ledger.records)
        cut_off = len(case.produce(prefix="cut"))

        def cut() -> None:
            cluster.kill(ahead)
            cluster.start(behind)
            settled(lambda: elected(cluster, topic, behind))
            case.ledger.records[:] = kept
            case.rewritten = True
            while case.rng.random() < 0.7 or len(case.ledger.records) - len(kept) < cut_off * (seed % 3) // 2:
                case.produce(prefix="instead")
            cluster.start(ahead)

        when = case.moment(
            ("after a whole batch", "after a whole batch", "before the plan", "plan", "mid-read", "read")
        )
        if when == "after a whole batch":
            assert case.run_until_done().word == "done"
            before = case.whole.published()
            cut()
            ended = case.run()
            assert before.items() <= case.whole.published().items(), "what was published changed"
        elif when == "before the plan":
            cut()
            ended = case.run()
        elif when == "mid-read":
            ended = case.run(at_record=(case.rng.randint(1, cut_off), cut))
        else:
            ended = case.run(between={when: cut})
        assert ended.word in ("done", "nothing", "DataLost", "Refused", "Transient"), ended
        before = case.whole.published()
        cluster.heal(topic)
        case.settle()
        assert before.items() <= case.whole.published().items(), "what was published changed"

    configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    try:
        return play(bench, seed, act, assignment=spread(seed, 1, 2), configs=configs)
    finally:
        cluster.heal()


def elected(cluster: Cluster, topic: str, node: int) -> bool:
    """Whether it leads; asked for uncleanly where it does not."""
    if cluster.leader(topic, 0) == node:
        return True
    # The controllers may still be choosing one of themselves; the question is put again.
    with suppress(KafkaException, TimeoutError):
        cluster.elect(topic, 0, unclean=True)
    return False


def _played(bench: Bench, seed: int, act: Callable[[Case], None]) -> Counts:
    try:
        return play(bench, seed, act, assignment=spread(seed, 1 + seed % 3, 3), configs=DURABLE)
    finally:
        on(bench).heal()


CLASSES = (
    FaultClass("broker killed", (1,), Need.CLUSTER, 10, (0,), broker_killed),
    FaultClass("broker frozen", (27,), Need.CLUSTER, 6, (0,), broker_frozen),
    FaultClass("leader moves while reading", (2,), Need.CLUSTER, 8, (0,), leader_moves),
    FaultClass("unclean election", (28,), Need.CLUSTER, 10, (2,), unclean_election),
)
