"""Every fault class that needs three brokers, on few seeds, and what one of three is asked that dies.

Names what it proves: I1 to I8, as far as the fault of the class touches them.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from consumers import batch_scan
from consumers.log_view import KafkaLog
from consumers.range_scan import Source
from consumers.slice_reader import read_slice
from tests.broker.reading_rig import Sender
from tests.builders.ranges import span
from tests.builders.recordings import cut, recordings
from tests.builders.streams import make_stream
from tests.conftest import ROOT
from tests.deployment_rig import eventually
from tests.faults.broker_faults import CLASSES
from tests.faults.broker_faults_nodes import elected
from tests.faults.cluster import Cluster, settled, start_cluster
from tests.faults.fault_class import Bench, FaultClass, Need, named
from wavestitch.batch.cut_log import find_cuts, refuse_cut_log
from wavestitch.contracts.errors import DataLost, Transient
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.cluster_addresses import ask_cluster
from wavestitch.local.loopback_port import LOOPBACK
from wavestitch.producers.sender import send_chunks

ON_THREE = [(c, s) for c in CLASSES if c.need is Need.CLUSTER for s in c.quick]


@pytest.fixture(scope="module")
def cluster(java_home: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = start_cluster(tmp_path_factory.mktemp("cluster"), java_home=java_home, jars=kafka_jars)
    try:
        yield found
    finally:
        found.stop_all()


@pytest.mark.parametrize(("fault", "seed"), ON_THREE, ids=named)
def test_nothing_is_lost_twice_altered_or_unexplained_whatever_befalls_nodes_or_network(
    fault: FaultClass, seed: int, tmp_path: Path, cluster: Cluster, java_home: Path
) -> None:
    counts = fault.run(Bench(tmp_path, cluster.bootstrap, java_home, cluster), seed)
    assert counts.clean, counts


def test_a_partition_without_a_leader_has_no_end_instead_of_an_early_one(cluster: Cluster) -> None:
    """I8: the client's answer for it is -1001, without an error; taken for an offset, all were cut off behind it."""
    topic, victim = f"alone-{uuid.uuid4().hex[:6]}", 2
    log = KafkaLog(KafkaSettings(cluster.bootstrap), deadline=5)
    admin = cluster.admin
    admin.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[victim]])])[topic].result(30)
    settled(lambda: cluster.leader(topic, 0) == victim)
    assert log.ends(topic, [Partition(0)])[Partition(0)].high_watermark == 0
    try:
        cluster.kill(victim)
        for _ in range(2):  # by the client that knew the leader, and by one that never did
            with pytest.raises(Transient):
                log.ends(topic, [Partition(0)])
            log = KafkaLog(KafkaSettings(cluster.bootstrap), deadline=5)
    finally:
        cluster.heal()
    assert log.ends(topic, [Partition(0)])[Partition(0)].high_watermark == 0


def test_every_question_outlasts_one_dead_broker_of_three_whether_it_dies_before_or_while_it_is_asked(
    cluster: Cluster,
) -> None:
    """librdkafka sends some to the broker that it takes for the controller, and waits for that one alone."""
    topic, group, victim = f"outlast-{uuid.uuid4().hex[:6]}", f"g-{uuid.uuid4().hex[:6]}", 2
    settings, partitions = KafkaSettings(cluster.bootstrap), (Partition(0), Partition(1), Partition(2))
    admin = cluster.admin
    new = NewTopic(topic, num_partitions=3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    admin.create_topics([new])[topic].result(30)
    settled(lambda: cluster.leader(topic, 1) == victim)

    def going_to_ask_it() -> KafkaLog:
        log = KafkaLog(settings)
        log.ends(topic, partitions)
        client = log._admin._client.admin
        eventually(lambda: bool(client.list_topics(timeout=10).controller_id == victim), seconds=60)
        return log

    before, meanwhile, whole = going_to_ask_it(), going_to_ask_it(), cut(recordings(2))
    before.commit_group(group, topic, {Partition(0): Position(Offset(0))}, "")
    try:
        cluster.freeze(victim)
        silent_first = ",".join(f"{LOOPBACK}:{cluster.ports[node].clients}" for node in (victim, 1, 3))
        brokers, _ = ask_cluster(KafkaSettings(silent_first), [topic], until=time.monotonic() + 15)
        assert brokers.keys() >= {1, 3}
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(meanwhile.topic, topic)
            cluster.kill(victim)
            assert asked.result(60).partitions == partitions
        assert before.topic(topic).partitions == partitions
        for log in (before, KafkaLog(settings)):
            assert {p: at.high_watermark for p, at in log.ends(topic, partitions).items()} == dict.fromkeys(
                partitions, 0
            )
            assert log.members(group) == []
            log.commit_group(group, topic, {Partition(0): Position(Offset(1))}, "")
            found = log.group_offsets(group, topic, [Partition(0)])[Partition(0)]
            assert found is not None
            assert found.offset == 1
        sent = send_chunks(whole, topic=topic, settings=settings)
        assert sent.records == len(whole)
    finally:
        cluster.heal()


def test_the_check_of_a_node_that_is_alone_of_three_says_that_it_takes_nothing(cluster: Cluster) -> None:
    def healthy(node: int) -> int:
        address = f"{LOOPBACK}:{cluster.ports[node].clients}"
        words = [sys.executable, str(ROOT / "docker" / "bin" / "healthy"), "kafka", address, str(node)]
        return subprocess.run(words, capture_output=True, check=False, timeout=60).returncode

    topics = set(cluster.admin.list_topics(timeout=10).topics)
    assert healthy(1) == 0
    try:
        cluster.kill(2)
        cluster.kill(3)
        # A controller that leads goes on until it has heard of no other for the quorum's fetch timeout.
        settled(lambda: healthy(1) == 1)
    finally:
        cluster.heal()
    settled(lambda: healthy(1) == 0)
    assert set(cluster.admin.list_topics(timeout=10).topics) == topics


def once_so_many(records: int, act: Callable[[], None]) -> Callable[[int, int], None]:
    """What hears of records, and acts when it has heard of so many."""
    left = [records]

    def hear(more: int, _: int) -> None:
        before, left[0] = left[0], left[0] - more
        if before > 0 >= left[0]:
            act()

    return hear


def test_a_log_that_an_unclean_election_cut_off_says_where_what_was_read_ends(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it was written anew to the very position: by the leader epoch, which the client cannot ask for."""
    topic, ahead, behind = f"cut-{uuid.uuid4().hex[:6]}", 1, 2
    log, admin, stream = KafkaLog(KafkaSettings(cluster.bootstrap)), cluster.admin, make_stream(topic=topic)
    config = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    new = NewTopic(topic, num_partitions=1, replica_assignment=[[ahead, behind]], config=config)
    admin.create_topics([new])[topic].result(30)
    try:
        settled(lambda: cluster.leader(topic, 0) == ahead)
        Sender(cluster.bootstrap, topic).send(5)
        settled(lambda: cluster.in_sync(topic, 0) == {ahead, behind})
        cluster.stop(behind)
        settled(lambda: cluster.in_sync(topic, 0) == {ahead})
        last = Sender(cluster.bootstrap, topic)
        for _ in range(3):  # a batch each
            last.send(1)
        read = log.ends(topic, [Partition(0)])[Partition(0)]
        position = {Partition(0): Position(read.stable_end, leader_epoch=read.leader_epoch)}
        assert find_cuts(topic, position, {Partition(0): read}, log) == {}

        def cut_off() -> None:
            cluster.kill(ahead)
            cluster.start(behind)
            settled(lambda: elected(cluster, topic, behind))
            Sender(cluster.bootstrap, topic).send(3)

        # In the middle of a slice, of which more was read than is left.
        monkeypatch.setattr(batch_scan, "_FETCH_BYTES", 1)
        source = Source("ecg", topic, log.topic(topic).topic_id, "g", 60.0)
        with pytest.raises(Transient, match=r"cut off before offset [67] after it had been read up to there"):
            read_slice(
                span(0, 0, 8),
                settings=KafkaSettings(cluster.bootstrap),
                source=source,
                log=log,
                folder=tmp_path,
                careful=True,
                on_batch=once_so_many(6, cut_off),
            )
        log = KafkaLog(KafkaSettings(cluster.bootstrap))  # the other one has to learn who leads
        now = log.ends(topic, [Partition(0)])[Partition(0)]
        assert (read.stable_end, now.stable_end) == (8, 8)
        assert log.epoch_ends(topic, {Partition(0): read.leader_epoch or LeaderEpoch(0)}) == {0: 5}
        assert find_cuts(topic, position, {Partition(0): now}, log) == {0: 5}
        with pytest.raises(DataLost, match=r"--to 0:5 --apply"):
            refuse_cut_log(stream, position, {Partition(0): now}, log)
        # Either way of reading says of each record in which epoch it was written.
        found = [
            read_slice(
                span(0, 0, 8),
                settings=KafkaSettings(cluster.bootstrap),
                source=source,
                log=log,
                folder=tmp_path,
                careful=careful,
            ).written
            for careful in (True, False)
        ]
        assert found[0] == found[1]
        assert [run.start for run in found[0]] == [0, 5]
        assert found[0][0].epoch <= (read.leader_epoch or 0) < found[0][1].epoch <= (now.leader_epoch or 0)
        # One election more, which cuts nothing off: it still is found.
        cluster.heal(topic)
        assert log.epoch_ends(topic, {Partition(0): read.leader_epoch or LeaderEpoch(0)}) == {0: 5}
    finally:
        cluster.heal()
