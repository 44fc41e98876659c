"""What happens to the log itself: retention, compaction, deletion, more partitions, transactions (rows 9 to 13)."""

from __future__ import annotations

from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from tests.deployment_rig import eventually
from tests.faults.broker_faults_case import BETWEEN, Case, make_topic, play
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from wavestitch.contracts.errors import DataLost, Refused, Transient


def _delete_before(case: Case, partition: int, offset: int) -> None:
    at = TopicPartition(case.whole.topic, partition, offset)
    admin = case.admin
    admin.delete_records([at])[at].result(30)


def _ends(case: Case) -> dict[int, int]:
    log = case.whole.deployment.log
    found = log.ends(case.whole.topic, log.topic(case.whole.topic).partitions)
    return {p: e.stable_end for p, e in found.items()}


def _overtake(case: Case, *, to_the_last: bool = False) -> None:
    """Retention deletes the beginning of a partition that has something."""
    p, end = case.rng.choice([(p, e) for p, e in sorted(_ends(case).items()) if e])
    _delete_before(case, p, end - 1 if to_the_last else case.rng.randint(1, end))


def retention_before_the_plan(bench: Bench, seed: int) -> Counts:
    def act(case: Case) -> None:
        case.produce()
        if case.rng.random() < 0.5:
            case.run()
            case.produce()
        _overtake(case)
        ended = case.run()
        assert ended.word in ("done", "nothing", "DataLost"), ended

    return play(bench, seed, act)


def retention_between_plan_and_read(bench: Bench, seed: int) -> Counts:
    def act(case: Case) -> None:
        case.produce()
        ended = case.run(between={"plan": lambda: _overtake(case)})
        assert isinstance(ended.error, DataLost), ended
        assert "were deleted before all of them were read" in ended.error.message
        case.again(ended)

    return play(bench, seed, act)


def retention_while_reading(bench: Bench, seed: int) -> Counts:
    def act(case: Case) -> None:
        sent = case.produce(case.rng.randint(6, 12))
        ended = case.run(at_record=(case.rng.randint(1, len(sent)), lambda: _overtake(case)))
        assert ended.word in ("done", "DataLost"), ended
        case.again(ended)

    return play(bench, seed, act)


def retention_up_to_the_last_record(bench: Bench, seed: int) -> Counts:
    def act(case: Case) -> None:
        case.produce()
        step = case.moment(("plan", "read", "publish"))
        case.run(between={step: lambda: _overtake(case, to_the_last=True)})
        case.produce()

    return play(bench, seed, act)


def _configure(admin: AdminClient, resource: ConfigResource, **values: str) -> None:
    for name, value in values.items():
        entry = ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        resource.add_incremental_config(entry)
    admin.incremental_alter_configs([resource])[resource].result(30)


def _set_policy(case: Case, policy: str) -> None:
    admin = case.admin
    _configure(admin, ConfigResource(ResourceType.TOPIC, case.whole.topic), cleanup_policy=policy)
    eventually(lambda: case.whole.deployment.log.topic(case.whole.topic).compacted == ("compact" in policy))


def compaction_refused(bench: Bench, seed: int) -> Counts:
    """Switched on before the plan, or after it."""

    def act(case: Case) -> None:
        case.produce()
        when = case.moment(("before", "plan", "mid-read"))
        policy = case.rng.choice(("compact", "compact,delete"))
        if when == "before":
            _set_policy(case, policy)
            ended = case.run()
        elif when == "plan":
            ended = case.run(between={"plan": lambda: _set_policy(case, policy)})
        else:
            ended = case.run(at_record=(1, lambda: _set_policy(case, policy)))
        assert isinstance(ended.error, Refused), ended
        assert "compact" in ended.error.message
        assert case.whole.published() == {}
        _set_policy(case, "delete")
        case.again(ended)

    return play(bench, seed, act)


def topic_made_anew(bench: Bench, seed: int) -> Counts:
    """Deleted and made again at every boundary between steps; the old one's offsets must not be taken for the new's."""

    def act(case: Case) -> None:
        case.one_topic = False
        case.produce()
        if case.rng.random() < 0.5:
            case.run()
            case.produce()
        step = BETWEEN[seed % len(BETWEEN)]
        ended = case.run(between={step: lambda: _make_anew(case)})
        assert ended.word in ("done", "Refused"), ended
        if step == "plan":
            assert isinstance(ended.error, Refused), ended
        case.produce()
        case.again(ended)

    return play(bench, seed, act)


def _make_anew(case: Case) -> None:
    admin, topic = case.admin, case.whole.topic
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics)
    case.partitions = case.rng.choice((1, 2, 3))
    make_topic(admin, topic, case.partitions, {})
    case.ledger.topic_id = case.whole.deployment.log.topic(topic).topic_id
    if case.rng.random() < 0.7:
        case.produce(prefix="anew")


def topic_away(bench: Bench, seed: int) -> Counts:
    """Deleted at a boundary and not there when the run goes on; made again later."""

    def act(case: Case) -> None:
        case.one_topic = False
        case.produce()
        admin, topic = case.admin, case.whole.topic

        def delete() -> None:
            admin.delete_topics([topic], operation_timeout=30)[topic].result(30)
            eventually(lambda: topic not in admin.list_topics(timeout=10).topics)

        step = BETWEEN[seed % len(BETWEEN)]
        ended = case.run(between={step: delete})
        if step != "commit_offsets":
            assert isinstance(ended.error, (Refused, Transient)), ended
        make_topic(admin, topic, case.partitions, {})
        case.ledger.topic_id = case.whole.deployment.log.topic(topic).topic_id
        case.produce(prefix="anew")

    return play(bench, seed, act)


def partitions_grow(bench: Bench, seed: int) -> Counts:
    def act(case: Case) -> None:
        sent = case.produce()

        def grow() -> None:
            admin, total = case.admin, case.partitions + case.rng.randint(1, 3)
            admin.create_partitions([NewPartitions(case.whole.topic, total)])[case.whole.topic].result(30)
            eventually(
                lambda: (
                    len(admin.list_topics(case.whole.topic, timeout=10).topics[case.whole.topic].partitions) == total
                )
            )
            case.partitions = total
            case.produce(prefix="grown")

        step = case.moment((*BETWEEN, "mid-read"))
        if step == "mid-read":
            ended = case.run(at_record=(case.rng.randint(1, len(sent)), grow))
        else:
            ended = case.run(between={step: grow})
        assert ended.word == "done", ended
        planned = {p for p, _, _ in ended.result["plan"]["ranges"]}
        assert all(p < case.partitions for p in planned)

    return play(bench, seed, act)


def transactions_committed_and_aborted(bench: Bench, seed: int) -> Counts:
    """Mixes in which markers or aborted records are the last offsets, and waveforms are spread over transactions."""

    def act(case: Case) -> None:
        for _ in range(case.rng.randint(2, 4)):
            placed = case.lay_out(case.make(case.rng.randint(1, 3)))
            cut = case.rng.randint(0, len(placed))
            for part in (placed[:cut], placed[cut:]):
                if part:
                    if case.rng.random() < 0.5:
                        case.ledger.open_transaction(case.lay_out(case.make(1, prefix="aborted"))).abort()
                    case.ledger.open_transaction(part).commit()
        if case.rng.random() < 0.5:
            case.ledger.open_transaction(case.lay_out(case.make(1, prefix="aborted"))).abort()
        assert case.run().word == "done"
        assert not [i for i in case.whole.published() if i.startswith("aborted")]

    return play(bench, seed, act)


def transaction_open_at_the_end(bench: Bench, seed: int) -> Counts:
    """A batch reads up to it and ends; what lies behind comes once it is over, however it ends, at whatever step."""

    def act(case: Case) -> None:
        if case.rng.random() < 0.8:
            case.ledger.open_transaction(case.lay_out(case.make(case.rng.randint(1, 3)))).commit()
        pending = case.ledger.open_transaction(case.lay_out(case.make(case.rng.randint(1, 2), prefix="open")))
        over = pending.commit if case.rng.random() < 0.5 else pending.abort
        if case.rng.random() < 0.5:
            case.ledger.send(case.lay_out(case.make(1, prefix="behind")))
        step = case.moment((*BETWEEN, "later"))
        ended = case.run(between={step: over})
        assert ended.word in ("done", "Transient"), ended
        if step == "later" or ended.word == "Transient":
            waiting = case.run()
            assert waiting.word in ("done", "Transient", "nothing"), waiting
            if step == "later" or ended.error is not None:
                over()

    return play(bench, seed, act)


CLASSES = (
    FaultClass("retention before the plan", (9,), Need.BROKER, 8, (0,), retention_before_the_plan),
    FaultClass("retention between plan and read", (9,), Need.BROKER, 8, (0,), retention_between_plan_and_read),
    FaultClass("retention while reading", (9,), Need.BROKER, 10, (0,), retention_while_reading),
    FaultClass("retention up to the last record", (9,), Need.BROKER, 8, (0,), retention_up_to_the_last_record),
    FaultClass("compaction switched on", (13,), Need.BROKER, 8, (0,), compaction_refused),
    FaultClass("topic made anew between steps", (10,), Need.BROKER, 10, (0,), topic_made_anew),
    FaultClass("topic deleted between steps", (10,), Need.BROKER, 8, (1,), topic_away),
    FaultClass("partitions added during a run", (11,), Need.BROKER, 8, (0,), partitions_grow),
    FaultClass("transactions aborted, markers last", (12,), Need.BROKER, 8, (0,), transactions_committed_and_aborted),
    FaultClass("transaction open at the end", (12,), Need.BROKER, 8, (0,), transaction_open_at_the_end),
)
