"""Where brokers are, asked of those that answer: silent hosts, names that are none, answers that lack a part."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from confluent_kafka import KafkaError

from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.kafka import cluster_addresses
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.cluster_addresses import ask_cluster
from wavestitch.kafka.connection import Connection, Disconnected, OutOfTime, with_before
from wavestitch.kafka.host_addresses import reach
from wavestitch.kafka.kafka_python import consumer, metadata
from wavestitch.kafka.raw_log import RawLog

_METADATA, _FETCH, _EPOCH = 3, 1, 23
_FLEXIBLE = (_METADATA, _FETCH)


NONE = r"no connection to the broker at .*; is it up"


class Peer:
    """A listener on loopback that answers each kind of request as it is told, and others never; counts who came.
    `frames`: what it was asked."""

    def __init__(self, answers: dict[int, Any] | None = None) -> None:
        self.answers = answers or {}
        self.came = 0
        self.frames: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.came += 1
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with suppress(OSError), client, client.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size, "big"))
                kind, version, number = struct.unpack_from(">hhi", frame)
                self.frames.append(frame)
                if kind in self.answers:
                    body = struct.pack(">i", number) + b"\0" * (kind in _FLEXIBLE)
                    body += bytes(self.answers[kind].encode(version=version))
                    client.sendall(struct.pack(">i", len(body)) + body)


@pytest.fixture
def peers() -> Iterator[Any]:
    with ExitStack() as stack:

        def make(answers: dict[int, Any] | None = None) -> Peer:
            peer = Peer(answers)
            stack.callback(peer.listener.close)
            return peer

        yield make


def brokers(host: str, port: int, *, epoch: int = 0, **more: Any) -> Any:
    known = metadata.MetadataResponse
    topic = known.MetadataResponseTopic
    part = topic.MetadataResponsePartition(
        error_code=0,
        partition_index=0,
        leader_id=1,
        leader_epoch=epoch,
        replica_nodes=[1],
        isr_nodes=[1],
        offline_replicas=[],
    )
    said = {
        "throttle_time_ms": 0,
        "brokers": [known.MetadataResponseBroker(node_id=1, host=host, port=port, rack=None)],
        "cluster_id": "c",
        "controller_id": 1,
        "topics": [topic(error_code=0, name="waves", is_internal=False, partitions=[part])],
    }
    return known[9](**said | more)


def test_what_was_the_matter_with_a_broker_is_told_once_however_often_it_is_asked_again() -> None:
    """It had the time to say it, so the time alone is not the matter."""
    told = with_before(OutOfTime("late"), Disconnected("refused"))
    again = with_before(OutOfTime("later"), told)
    assert (type(told), told.message) == (Disconnected, "late. Before that: refused")
    assert (type(again), again.message) == (Disconnected, "later. Before that: refused")
    assert with_before(Disconnected("closed"), told).message == "closed"
    assert with_before(OutOfTime("late"), OutOfTime("late, too")).message == "late"


def test_a_broker_that_says_nothing_keeps_no_answer_of_another_one_away(
    peers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_addresses, "_FIRST_SECONDS", 0.1)
    silent, there = peers(), peers()
    there.answers = {_METADATA: brokers("127.0.0.1", there.port)}
    settings, found = KafkaSettings(f"{silent.address},{there.address}"), []

    def ask() -> None:
        for _ in range(3):
            found.append(ask_cluster(settings, ["waves"], until=time.monotonic() + 3600)[0])

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(30)
    assert found == [{1: ("127.0.0.1", there.port)}] * 3
    assert (silent.came, there.came) == (1, 3)  # who answered last is asked first


def test_a_broker_that_is_only_slow_is_asked_again_with_more_time(peers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_addresses, "_FIRST_SECONDS", 0.0)
    peer = peers()
    peer.answers = {_METADATA: brokers("127.0.0.1", peer.port)}
    settings = KafkaSettings(f"127.0.0.1:1,{peer.address}")
    assert ask_cluster(settings, ["waves"], until=time.monotonic() + 60)[0] == {1: ("127.0.0.1", peer.port)}


@pytest.mark.parametrize("host", ["a..b", ".", "x" * 70, ""])
def test_a_host_s_name_that_is_none_is_told_in_a_sentence(host: str, peers: Any) -> None:
    peer = peers({_METADATA: brokers(host, 9092)})
    for bootstrap in (peer.address, f"{host or '.'}:9092"):
        with RawLog(KafkaSettings(bootstrap), "waves", deadline=1) as raw, pytest.raises(Disconnected, match=NONE):
            raw.fetch(Partition(0), Offset(0), most_bytes=100)


class Once(dict[int, Any]):
    """Answers, each given once."""

    def __getitem__(self, kind: int) -> Any:
        return self.pop(kind)


def test_what_was_the_matter_is_not_hidden_by_an_attempt_for_which_no_time_is_left(peers: Any) -> None:
    """The broker says nothing any more, after it had named a host that is none."""
    peer = peers(Once({_METADATA: brokers("a..b", 9092)}))
    with RawLog(KafkaSettings(peer.address), "waves", deadline=1) as raw, pytest.raises(Disconnected, match=NONE):
        raw.fetch(Partition(0), Offset(0), most_bytes=100)
    assert peer.came > 1


LACKING: dict[str, dict[int, Any]] = {
    "no topics": {_METADATA: {"topics": []}},
    "null for topics": {_METADATA: {"topics": None}},
    "null for brokers": {_METADATA: {"brokers": None}},
    "no partitions of a fetch": {_FETCH: []},
    "null for partitions of a fetch": {_FETCH: None},
    "no topics of an epoch": {_EPOCH: []},
}


@pytest.mark.parametrize("lacks", LACKING)
def test_an_answer_that_lacks_what_brokers_say_is_told_as_none(lacks: str, peers: Any) -> None:
    peer, odd = peers(), LACKING[lacks]
    topic = consumer.FetchResponse.FetchableTopicResponse(topic="waves", partitions=odd.get(_FETCH))
    peer.answers = {
        _METADATA: brokers("127.0.0.1", peer.port, **odd.get(_METADATA, {})),
        _FETCH: consumer.FetchResponse[12](throttle_time_ms=0, error_code=0, session_id=0, responses=[topic]),
        _EPOCH: consumer.OffsetForLeaderEpochResponse[3](throttle_time_ms=0, topics=[]),
    }
    with RawLog(KafkaSettings(peer.address), "waves", deadline=0.2) as raw:
        ask = {
            "fetch": lambda: raw.fetch(Partition(0), Offset(0), most_bytes=100),
            "the first batches": lambda: raw.batches_at({Partition(0): Offset(0)}),
            "an epoch": lambda: raw.epoch_end(Partition(0), LeaderEpoch(0)),
        }
        for one in ("an epoch",) if _EPOCH in odd else ("fetch", "the first batches"):
            with pytest.raises(Transient, match=r"[Tt]ry again"):
                ask[one]()


def fetched(code: int = 0, topic: str = "waves") -> Any:
    """Nothing of partition 0, or an error."""
    found = consumer.FetchResponse.FetchableTopicResponse
    part = found.PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=0,
        last_stable_offset=0,
        log_start_offset=0,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=None,
    )
    responses = [found(topic=topic, partitions=[part])]
    return consumer.FetchResponse[12](throttle_time_ms=0, error_code=0, session_id=0, responses=responses)


def epoch_refused(code: int) -> Any:
    known = consumer.OffsetForLeaderEpochResponse
    part = known.OffsetForLeaderTopicResult.EpochEndOffset(error_code=code, partition=0, leader_epoch=-1, end_offset=-1)
    topics = [known.OffsetForLeaderTopicResult(topic="waves", partitions=[part])]
    return known[3](throttle_time_ms=0, topics=topics)


NO_LEADER = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
"""What a broker says that leads no more, or has not heard yet that it does, or of the partition at all."""


@pytest.mark.parametrize("code", NO_LEADER)
def test_who_is_refused_until_the_time_is_up_says_so(code: int, peers: Any) -> None:
    peer = peers()
    peer.answers = {
        _METADATA: brokers("127.0.0.1", peer.port),
        _FETCH: fetched(code),
        _EPOCH: epoch_refused(code),
    }
    with RawLog(KafkaSettings(peer.address), "waves", deadline=0.3) as raw:
        for ask in (
            lambda: raw.fetch(Partition(0), Offset(0), most_bytes=100),
            lambda: raw.batches_at({Partition(0): Offset(0)}),
            lambda: raw.epoch_end(Partition(0), LeaderEpoch(0)),
        ):
            with pytest.raises(Transient, match=KafkaError(code).name()):
                ask()


def test_a_refusal_before_a_broker_was_gone_is_told_with_that(peers: Any) -> None:
    peer = peers()
    peer.answers = {_METADATA: brokers("127.0.0.1", peer.port), _FETCH: fetched(KafkaError.LEADER_NOT_AVAILABLE)}
    with RawLog(KafkaSettings(peer.address), "waves", deadline=1.0) as raw:
        fetch = raw._fetch

        def gone(*given: Any, **more: Any) -> Any:
            found = fetch(*given, **more)
            peer.answers = {}
            return found

        raw._fetch = gone  # type: ignore[method-assign]
        with pytest.raises(Disconnected, match=r"gave no answer: .*the last answer before: .*LEADER_NOT_AVAILABLE"):
            raw.fetch(Partition(0), Offset(0), most_bytes=100)


@pytest.mark.parametrize("code", NO_LEADER)
def test_who_named_a_leader_that_is_none_is_not_asked_alone(code: int, peers: Any) -> None:
    """One that is cut off from whoever elects them would name it for ever."""
    behind, leads = peers(), peers()
    behind.answers = {
        _METADATA: brokers("127.0.0.1", behind.port, epoch=6),
        _FETCH: fetched(code),
    }
    leads.answers = {_METADATA: brokers("127.0.0.1", leads.port, epoch=7), _FETCH: fetched()}
    with RawLog(KafkaSettings(f"{behind.address},{leads.address}"), "waves", deadline=30) as raw:
        assert raw.fetch(Partition(0), Offset(0), most_bytes=100).batches == []


def test_a_topic_that_a_broker_does_not_know_any_more_or_yet_is_waited_for(peers: Any) -> None:
    """It was found before anybody read: who looks for it next is told whether it is gone."""
    peer = peers()
    peer.answers = {
        _METADATA: brokers("127.0.0.1", peer.port),
        _FETCH: fetched(KafkaError.UNKNOWN_TOPIC_OR_PART),
    }
    with RawLog(KafkaSettings(peer.address), "waves", deadline=0.3) as raw:
        raw._leader(0, time.monotonic() + 30)
        gone = metadata.MetadataResponse.MetadataResponseTopic(
            error_code=KafkaError.UNKNOWN_TOPIC_OR_PART, name="waves", is_internal=False, partitions=[]
        )
        peer.answers[_METADATA] = brokers("127.0.0.1", peer.port, topics=[gone])
        with pytest.raises(Transient, match=r"UNKNOWN_TOPIC_OR_PART|topic waves: .*; try again"):
            raw.fetch(Partition(0), Offset(0), most_bytes=100)


def test_a_leader_is_asked_as_the_one_of_the_newest_epoch_that_was_heard_of(peers: Any) -> None:
    """So one that is none any more, or is again, refuses instead of answering from another log."""
    peer = peers()
    with RawLog(KafkaSettings(peer.address), "waves", deadline=30) as raw:
        for said in (7, 6):
            peer.answers = {_METADATA: brokers("127.0.0.1", peer.port, epoch=said), _FETCH: fetched()}
            raw._leaders.clear()
            raw.fetch(Partition(0), Offset(0), most_bytes=100)
        peer.answers |= {_EPOCH: epoch_refused(0)}
        assert raw.epoch_end(Partition(0), LeaderEpoch(3)) is None
    asked = [frame for frame in peer.frames if int.from_bytes(frame[:2]) in (_FETCH, _EPOCH)]
    assert [struct.pack(">ii", 0, 7) in frame for frame in asked] == [True] * 3


def test_what_is_said_of_another_topic_is_no_answer(peers: Any) -> None:
    peer = peers()
    peer.answers = {_METADATA: brokers("127.0.0.1", peer.port), _FETCH: fetched(topic="others")}
    with RawLog(KafkaSettings(peer.address), "waves", deadline=0.2) as raw:
        with pytest.raises(Transient, match="no answer to a FetchRequest"):
            raw.fetch(Partition(0), Offset(0), most_bytes=100)
        with pytest.raises(Transient, match="no record batch came"):
            raw.batches_at({Partition(0): Offset(0)})


def test_an_address_of_a_host_that_swallows_everything_takes_no_other_one_s_time(
    peers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as open_:
        full = open_.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # whoever comes behind these is not answered
            waiting = open_.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        peer = peers({_METADATA: brokers("twofold", 9092)})
        both = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", at) for at in (full.getsockname(), ("127.0.0.1", peer.port))
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: both)
        found, _ = ask_cluster(KafkaSettings("twofold:9092"), ["waves"], until=time.monotonic() + 4)
        assert found == {1: ("twofold", 9092)}
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: both[:1])
        with pytest.raises(OSError, match="timed out"):
            reach("twofold", 9092, family="any", until=time.monotonic() + 0.1)


@pytest.mark.parametrize(("family", "wanted"), [("any", 0), ("v4", socket.AF_INET), ("v6", socket.AF_INET6)])
def test_addresses_are_of_the_family_that_the_settings_ask_for(
    family: str, wanted: int, peers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, asked = peers(), []
    real = socket.getaddrinfo

    def noted(host: str, port: int, kind: int, *more: Any) -> Any:
        asked.append(kind)
        return real(host, port, socket.AF_INET, *more)

    monkeypatch.setattr(socket, "getaddrinfo", noted)
    settings = KafkaSettings(peer.address, {"broker.address.family": family})
    Connection(settings, "127.0.0.1", peer.port, deadline=time.monotonic() + 20).close()
    assert asked == [wanted]
