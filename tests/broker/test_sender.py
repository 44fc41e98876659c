"""Sending to a real broker: every chunk arrives as it was cut and where it was meant to, or the call says so."""

from __future__ import annotations

import itertools
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.builders.ranges import span
from wavestitch.contracts.chunk_header import Chunk, parse_chunk
from wavestitch.contracts.errors import BadInput, Refused, Terminal, Transient
from wavestitch.contracts.murmur2 import key_partition
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.local.broker import Broker, start_broker, stop_broker
from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.partitioning import Strategy
from wavestitch.producers.readers import read_recordings
from wavestitch.producers.record_size import batch_bytes
from wavestitch.producers.recording import Recording, make_recording
from wavestitch.producers.sender import send_chunks

ECG = Path(__file__).parents[2] / "examples" / "ecg" / "mitdb-208-mlii.npz"
START = 1_700_000_000_000_000_000


class TopicFactory(Protocol):
    def __call__(self, *, partitions: int = 1, configs: Mapping[str, str] | None = None, prefix: str = "t") -> str: ...


def settings(broker: Broker) -> KafkaSettings:
    return KafkaSettings(broker.bootstrap)


def tuned(**more: int) -> dict[str, int]:
    return {k.replace("_", "."): v for k, v in more.items()}


def ecg() -> list[Recording]:
    return read_recordings(ECG, seconds_per_recording=30, start_time_ns=START)


def cut(recordings: list[Recording], chunk_bytes: int = 2000, *, keyed: bool = True) -> list[ChunkRecord]:
    return [chunk for r in recordings for chunk in cut_recording(r, chunk_bytes, keyed=keyed)]


def noise(size: int, waveform_id: str = "w") -> Recording:
    """A waveform that no compression makes smaller matters here only by its size."""
    return make_recording(
        waveform_id=waveform_id,
        source="s",
        channel="c",
        start_time_ns=START,
        sampling_rate_hz=1000,
        sample_format="i16le",
        units="{count}",
        adc_gain=1,
        baseline=0,
        samples=bytes(size),
    )


def read_back(broker: Broker, topic: str) -> dict[int, list[Message]]:
    """Everything in the topic, by partition, read to the watermarks by a plain consumer."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "witness", "auto.offset.reset": "error"}
        | {"enable.auto.commit": False}
    )
    try:
        places = [TopicPartition(topic, p) for p in sorted(consumer.list_topics(topic, 10).topics[topic].partitions)]
        marks = [consumer.get_watermark_offsets(place, 10) for place in places]
        consumer.assign([TopicPartition(topic, t.partition, low) for t, (low, _) in zip(places, marks, strict=True)])
        found: dict[int, list[Message]] = {place.partition: [] for place in places}
        missing = sum(high - low for low, high in marks)
        while missing:
            got = consumer.consume(min(missing, 500), 10)
            assert got, f"{missing} messages are missing, and nothing came for 10 s"
            assert not [m.error() for m in got if m.error()]
            missing -= len(got)
            for message in got:
                found[message.partition()].append(message)
    finally:
        consumer.close()
    return found


def as_chunk(message: Message) -> Chunk:
    found = parse_chunk(message.key(), message.headers(), message.value())
    assert isinstance(found, Chunk), found
    return found


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_chunk_arrives_once_and_as_it_was_cut_whatever_the_strategy(
    broker: Broker, topic_factory: TopicFactory, strategy: Strategy
) -> None:
    topic = topic_factory(partitions=4)
    chunks = cut(ecg(), keyed=strategy.keyed)
    report = send_chunks(chunks, topic=topic, settings=settings(broker), strategy=strategy)
    log = read_back(broker, topic)
    messages = [m for part in log.values() for m in part]
    sent = {(c.waveform_id, dict(c.headers)["ws-seq"]): (c.key, bytes(c.value), c.headers) for c in chunks}
    arrived = {
        (as_chunk(m).waveform_id, b"%d" % as_chunk(m).seq): (m.key(), m.value(), tuple(m.headers())) for m in messages
    }
    assert arrived == sent
    assert len(messages) == len(chunks)
    assert (report.topic, report.waveforms, report.records) == (topic, 10, len(chunks))
    assert report.bytes == sum(len(c.value) for c in chunks)
    assert report.unknown_offsets == 0
    assert report.ranges == tuple(span(p, 0, len(part)) for p, part in log.items() if part)
    for recording in ecg():
        mine = sorted(
            (m for m in messages if as_chunk(m).waveform_id == recording.waveform_id), key=lambda m: as_chunk(m).seq
        )
        assert b"".join(m.value() for m in mine) == recording.samples


def test_a_sticky_waveform_is_one_run_of_offsets_in_order(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory(partitions=3)
    send_chunks(cut(ecg(), 500), topic=topic, settings=settings(broker))
    log = read_back(broker, topic)
    runs = [
        (waveform_id, [as_chunk(m).seq for m in run])
        for part in log.values()
        for waveform_id, run in itertools.groupby(part, key=lambda m: as_chunk(m).waveform_id)
    ]
    assert sorted(waveform_id for waveform_id, _ in runs) == [r.waveform_id for r in ecg()]
    assert all(seqs == list(range(44)) for _, seqs in runs)
    assert all(log.values())


def test_a_sticky_waveform_stays_one_run_through_a_full_queue(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory(partitions=2)
    small = tuned(queue_buffering_max_messages=7, linger_ms=0)
    report = send_chunks(cut(ecg(), 500), topic=topic, settings=settings(broker), tuning=small)
    assert report.records == 440
    for part in read_back(broker, topic).values():
        runs = [list(run) for _, run in itertools.groupby(part, key=lambda m: as_chunk(m).waveform_id)]
        assert all([as_chunk(m).seq for m in run] == list(range(44)) for run in runs)


def test_key_hash_is_where_the_client_s_own_murmur2_puts_the_key(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory(partitions=7)
    keys = [f"sensor-{i}-µ".encode()[: 3 + i % 12] for i in range(200)]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2"})
    for key in keys:
        producer.produce(topic, b"x", key=key)
    assert producer.flush(30) == 0
    for partition, messages in read_back(broker, topic).items():
        assert {key_partition(m.key(), 7) for m in messages} <= {partition}


def test_round_robin_spreads_a_waveform_evenly(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory(partitions=3)
    report = send_chunks(cut(ecg()[:1], 1000), topic=topic, settings=settings(broker), strategy=Strategy.ROUND_ROBIN)
    assert [r.size for r in report.ranges] == [8, 7, 7]


def test_records_without_a_key_are_placed_by_the_client(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory(partitions=3)
    chunks = cut(ecg(), 500, keyed=False)
    send_chunks(chunks, topic=topic, settings=settings(broker), strategy=Strategy.NULL_KEY_STICKY)
    assert {m.key() for part in read_back(broker, topic).values() for m in part} == {None}


def test_record_times_are_the_given_ones(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory()
    chunks = cut(ecg()[:2], 5000)
    send_chunks(chunks, topic=topic, settings=settings(broker), timestamp_ms=1_600_000_000_123)
    times = {c.waveform_id: 1_600_000_001_000 + i for i, c in enumerate(chunks)}
    send_chunks(chunks, topic=topic, settings=settings(broker), timestamp_ms=lambda c: times[c.waveform_id])
    stamps = [m.timestamp()[1] for m in read_back(broker, topic)[0]]
    assert stamps == [1_600_000_000_123] * len(chunks) + [times[c.waveform_id] for c in chunks]


@pytest.mark.parametrize("stamp", [0, -1])
def test_a_record_time_that_the_client_would_take_for_now_is_refused(
    broker: Broker, topic_factory: TopicFactory, stamp: int
) -> None:
    topic = topic_factory()
    with pytest.raises(BadInput, match="must be after 1970"):
        send_chunks(cut(ecg()), topic=topic, settings=settings(broker), timestamp_ms=stamp)
    assert read_back(broker, topic) == {0: []}


def test_sending_again_appends_and_reports_its_own_range(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory()
    chunks = cut(ecg()[:1])
    first, second = (send_chunks(chunks, topic=topic, settings=settings(broker)) for _ in range(2))
    assert first.ranges == (span(0, 0, len(chunks)),)
    assert second.ranges == (span(0, len(chunks), 2 * len(chunks)),)


@pytest.mark.parametrize("limit", [3_000, 100_000, 1_048_588, 3_000_000])
def test_a_chunk_of_just_the_allowed_size_arrives_and_a_larger_one_stops_everything_before_it_starts(
    broker: Broker, topic_factory: TopicFactory, limit: int
) -> None:
    topic = topic_factory(configs={"max.message.bytes": str(limit)})
    overhead = batch_bytes(cut([noise(2)])[0]) - 2
    whole = noise((limit - overhead) // 2 * 2 - 60)
    fits = cut([whole], limit)
    assert len(fits) == 1
    room = limit - batch_bytes(fits[0])
    fitting = cut([noise(len(whole.samples) + room // 2 * 2)], limit)
    assert limit - 1 <= batch_bytes(fitting[0]) <= limit
    # Small ones around it: the client must not batch them into one that the broker refuses.
    small = cut([noise(100, f"s{i}") for i in range(5)])
    assert send_chunks(small + fitting * 3 + small, topic=topic, settings=settings(broker)).records == 13

    too_large = cut([noise(len(fitting[0].value) + 2)], limit)
    with pytest.raises(BadInput, match=rf"topic {topic} allows {limit} \(max.message.bytes\)") as raised:
        send_chunks(small + too_large, topic=topic, settings=settings(broker))
    assert raised.value.facts["waveform_id"] == "w"
    assert len(read_back(broker, topic)[0]) == 13


def test_the_size_that_the_refusal_proposes_is_accepted(broker: Broker, topic_factory: TopicFactory) -> None:
    topic = topic_factory(configs={"max.message.bytes": "4000"})
    recording = ecg()[0]
    with pytest.raises(BadInput, match=r"cut chunks of at most (\d+) bytes") as raised:
        send_chunks(cut([recording], 8000), topic=topic, settings=settings(broker))
    proposed = int(str(raised.value).split("at most ")[1].split()[0])
    assert send_chunks(cut([recording], proposed), topic=topic, settings=settings(broker)).waveforms == 1


def test_what_the_broker_refuses_for_good_is_terminal_with_partition_and_number(
    broker: Broker, topic_factory: TopicFactory
) -> None:
    topic = topic_factory(configs={"max.message.bytes": "4000"})
    chunks = cut([noise(1000, "small")]) + cut([noise(9000, "large")], 9000)
    alone = tuned(batch_num_messages=1)
    with pytest.raises(Terminal, match=rf"1 of 2 records were not delivered to topic {topic} .*partition 0") as raised:
        send_chunks(chunks, topic=topic, settings=settings(broker), tuning=alone, max_message_bytes=1_000_000)
    assert not isinstance(raised.value, BadInput)
    assert raised.value.facts["failures"] == [{"partition": 0, "code": "MSG_SIZE_TOO_LARGE", "records": 1}]
    assert raised.value.facts["delivered"] == 1


def test_a_topic_that_does_not_exist_is_refused_and_not_created(broker: Broker) -> None:
    with pytest.raises(Refused, match="topic never-made does not exist"):
        send_chunks(cut(ecg()), topic="never-made", settings=settings(broker))
    assert "never-made" not in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics


def test_progress_counts_acknowledged_records_up_to_all(broker: Broker, topic_factory: TopicFactory) -> None:
    seen: list[tuple[int, int]] = []
    chunks = cut(ecg(), 100)
    report = send_chunks(
        chunks,
        topic=topic_factory(partitions=2),
        settings=settings(broker),
        tuning=tuned(queue_buffering_max_messages=100),
        on_progress=lambda records, size: seen.append((records, size)),
    )
    assert seen == sorted(set(seen))
    assert seen[-1] == (report.records, report.bytes) == (len(chunks), 216_000)
    assert len(seen) > 1


def test_nothing_goes_on_being_sent_after_the_caller_has_stopped_it(
    broker: Broker, topic_factory: TopicFactory
) -> None:
    class Stopped(Exception):
        pass

    def stop(records: int, _: int) -> None:
        raise Stopped(records)

    topic = topic_factory()
    slow = tuned(queue_buffering_max_messages=5, linger_ms=0)
    with pytest.raises(Stopped):
        send_chunks(cut(ecg(), 100), topic=topic, settings=settings(broker), tuning=slow, on_progress=stop)
    before = len(read_back(broker, topic)[0])
    assert before < 2160
    assert len(read_back(broker, topic)[0]) == before


def test_nothing_to_send_is_an_empty_report(broker: Broker, topic_factory: TopicFactory) -> None:
    report = send_chunks([], topic=topic_factory(), settings=settings(broker))
    assert (report.records, report.bytes, report.waveforms, report.ranges) == (0, 0, 0, ())


def test_a_broker_that_does_not_answer_is_transient_and_bounded_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Transient, match="topic t"):
            send_chunks(cut(ecg()), topic="t", settings=KafkaSettings(address), deadline_seconds=1)


@pytest.mark.parametrize("name", ["enable.idempotence", "transactional.id", "message.max.bytes", "acks", "debug"])
def test_tuning_that_would_break_the_sender_s_promises_is_refused(
    broker: Broker, topic_factory: TopicFactory, name: str
) -> None:
    with pytest.raises(BadInput, match=f"'{name}' cannot be set here; allowed are batch.num.messages"):
        send_chunks([], topic=topic_factory(), settings=settings(broker), tuning={name: 1})


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan"), float("inf")])
def test_a_deadline_that_is_none_is_refused(deadline: float) -> None:
    with pytest.raises(BadInput, match="allowed are 1 s to one day"):
        send_chunks([], topic="t", settings=KafkaSettings("127.0.0.1:1"), deadline_seconds=deadline)


def test_a_broker_that_goes_away_in_the_middle_is_transient_and_says_how_many_are_missing(
    java_home: Path, kafka_jars: Path, make_topic: Callable[..., None], tmp_path: Path
) -> None:
    folder = tmp_path / "going"
    gone = False

    def stop_it(_: int, __: int) -> None:
        nonlocal gone
        if not gone:
            gone = True
            stop_broker(folder)

    try:
        own = start_broker(folder=folder, java_home=java_home, jars=kafka_jars, say=lambda t: print(t, file=sys.stderr))
        make_topic(own.bootstrap, "going", 2, {})
        chunks = cut(ecg(), 100)
        small = tuned(queue_buffering_max_messages=20)
        with pytest.raises(Transient, match="of 2160 records were not delivered to topic going") as raised:
            send_chunks(
                chunks,
                topic="going",
                settings=settings(own),
                tuning=small,
                deadline_seconds=5,
                on_progress=stop_it,
            )
    finally:
        stop_broker(folder)
    facts = raised.value.facts
    assert 0 < facts["delivered"] < len(chunks)
    failed = sum(f["records"] for f in facts["failures"])
    assert failed > 0
    assert facts["delivered"] + failed + facts["untried"] == len(chunks)
