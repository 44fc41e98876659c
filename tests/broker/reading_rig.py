"""What the tests of the Kafka edge share: records with a known content, plans over them, and what came of it."""

from __future__ import annotations

import ctypes
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from consumers.landed_file import open_landing, read_index
from consumers.log_view import KafkaLog
from consumers.unit_reader import read_unit
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from tests.builders.streams import make_stream
from tests.product_logins import as_product
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.landed_payload import take_proven
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.contracts.receipt import Receipt, check_coverage

META = (
    '{"source":"s","channel":"c","start_time_ns":0,"sampling_rate_hz":1.0,"sample_format":"i16le","units":"mV",'
    '"adc_gain":1.0,"baseline":0.0}'
)
Headers = list[tuple[str, bytes | None]]


class Sender:
    """Writes chunks of waveform `w` to a topic, in transactions where it is told to; remembers every value."""

    def __init__(self, bootstrap: str, topic: str, *, transactional: bool = False, value_bytes: int = 64) -> None:
        config: dict[str, Any] = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1}
        if transactional:
            config["transactional.id"] = f"tx-{uuid.uuid4().hex}"
        self._producer = Producer(config)
        if transactional:
            self._producer.init_transactions(30)
        self._topic = topic
        self._value_bytes = value_bytes
        self._seq = 0
        self._random = random.Random(7)

    def send(self, count: int, *, partition: int = 0, timestamp: int = 0) -> list[bytes]:
        values = [self._random.randbytes(self._value_bytes) for _ in range(count)]
        for value in values:
            headers = encode_headers(waveform_id="w", seq=self._seq, count=None, meta=META, value=value, digest=None)
            self.record(value, key=b"w", headers=headers, partition=partition, timestamp=timestamp)
            self._seq += 1
        self.flush()
        return values

    def record(
        self, value: bytes | None, *, key: bytes | None, headers: Any, partition: int = 0, timestamp: int = 0
    ) -> None:
        self._producer.produce(
            self._topic, value, key, partition=partition, headers=headers or None, timestamp=timestamp
        )

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    def begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self, count: int, *, partition: int = 0) -> list[bytes]:
        self.begin()
        values = self.send(count, partition=partition)
        self._producer.commit_transaction(30)
        return values

    def abort(self, count: int, *, partition: int = 0) -> None:
        self.begin()
        # Flushed first: what is still in the client's queue would never reach the log.
        self.send(count, partition=partition)
        self._producer.abort_transaction(30)


def plan_over(
    topic: str,
    topic_id: str,
    units: Sequence[Sequence[tuple[int, int, int]]],
    *,
    idle_deadline: int = 10,
    epochs: LeaderEpoch | None = None,
    mean: float,
    **declared: Any,
) -> Plan:
    """An ingest plan that reads these slices; `declared`: more of the stream's definition. `mean`: of a record's bytes,
    as it was expected."""
    slices = [tuple(span(*s) for s in unit) for unit in units]
    ends: dict[int, int] = {}
    for unit in slices:
        for s in unit:
            ends[s.partition] = max(s.end, ends.get(s.partition, 0))
    return make_plan(
        stream=make_stream(topic=topic, group=f"g-{topic}", reading={"idle_deadline": idle_deadline}, **declared),
        topic_id=topic_id,
        partitions=max(ends) + 1,
        ranges=(),
        units=tuple(slices),
        positions={},
        ends={p: Position(Offset(end), None, epochs) for p, end in ends.items()},
        mean_record_bytes=mean,
        nonce="",
    )


def landed_rows(folder: Path, plan: Plan, receipts: Sequence[Receipt]) -> list[dict[str, Any]]:
    """Every landed row by partition and offset; checks that the receipts cover the plan and the files are whole."""
    check_coverage(plan, receipts)
    rows: list[dict[str, Any]] = []
    for receipt in receipts:
        for landed in receipt.slices:
            if landed.file is not None:
                table = open_landing(folder / landed.file)
                table.validate(full=True)
                assert table.num_rows == landed.records == read_index(folder, landed).num_rows
                for batch in table.to_batches():
                    take_proven(landed.file, batch, range(batch.num_rows))
                rows += table.to_pylist()
    return sorted(rows, key=lambda r: (r["partition"], r["offset"]))


def delete_before(bootstrap: str, topic: str, offset: int, *, partition: int = 0) -> None:
    """As retention does: the log begins at this offset."""
    at = TopicPartition(topic, partition, offset)
    admin = AdminClient({"bootstrap.servers": bootstrap})  # named: an answer dies with its client
    admin.delete_records([at])[at].result(30)


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)


def reread(plan: Plan, **changes: Any) -> Plan:
    """The plan with other facts, sealed anew."""
    return replace(plan, **changes).sealed()


def send_with_raw_header_name(bootstrap: str, topic: str, name: bytes) -> None:
    """A record whose header has a name of any bytes, which clients in other languages can send and Python's cannot."""
    libs = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    lib = ctypes.CDLL(str(next(libs.glob("librdkafka*"))))
    pointer = ctypes.c_void_p
    for function in (lib.rd_kafka_conf_new, lib.rd_kafka_new, lib.rd_kafka_headers_new):
        function.restype = pointer
    words = ctypes.create_string_buffer(512)
    conf = pointer(lib.rd_kafka_conf_new())
    lib.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), words, 512)
    producer = pointer(lib.rd_kafka_new(0, conf, words, 512))
    headers = pointer(lib.rd_kafka_headers_new(ctypes.c_size_t(1)))
    lib.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(len(name)), b"1", ctypes.c_ssize_t(1))
    topic_, partition_, value_, key_, headers_, end_ = 1, 3, 4, 5, 10, 0
    try:
        failed = lib.rd_kafka_producev(
            producer,
            *(topic_, topic.encode()),
            *(partition_, ctypes.c_int32(0)),
            *(value_, b"payload", ctypes.c_size_t(7)),
            *(key_, b"key", ctypes.c_size_t(3)),
            *(headers_, headers),
            end_,
        )
        assert failed == 0
        assert lib.rd_kafka_flush(producer, 30_000) == 0
    finally:
        lib.rd_kafka_destroy(producer)


Slices = list[list[tuple[int, int, int]]]


SMALL, LARGE = 100.0, 64e3
"""What is expected of records: these are read from raw batches, those by the client."""


class Rig:
    """One broker, one folder. `mean`: what its plans expect of a record."""

    def __init__(self, bootstrap: str, folder: Path, *, mean: float = LARGE) -> None:
        self.bootstrap = bootstrap
        self.mean = mean
        self.folder = folder
        self.kafka = as_product(bootstrap)
        self.log = KafkaLog(self.kafka)

    def sender(self, topic: str, **options: Any) -> Sender:
        return Sender(self.bootstrap, topic, **options)

    def plan(self, topic: str, units: Slices, **options: Any) -> Plan:
        return plan_over(topic, self.log.topic(topic).topic_id, units, **{"mean": self.mean} | options)

    def settled_end(self, topic: str) -> int:
        """The end once every marker is written: that happens shortly after a producer's commit or abort returns."""
        wait_for(lambda: (ends := self.log.ends(topic, [Partition(0)])[Partition(0)]).stable_end == ends.high_watermark)
        return self.log.ends(topic, [Partition(0)])[Partition(0)].stable_end

    def recreate(self, topic: str, make_topic: Callable[..., None]) -> None:
        """Delete a topic and make it again; returns when the broker itself has noticed both."""
        before = self.log.topic(topic).topic_id
        delete_topic(self.bootstrap, topic)
        make_topic(self.bootstrap, topic, 1, {})

        def is_new() -> bool:
            try:
                return self.log.topic(topic).topic_id != before
            except Refused:
                return False

        wait_for(is_new)

    def configure(self, kind: ResourceType, name: str, values: dict[str, str]) -> None:
        """Change settings of a topic or of a broker while they run."""
        asked = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in values.items()]
        resource = ConfigResource(kind, name, incremental_configs=asked)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(30)

    def nodes(self) -> list[str]:
        """Each broker's id, as `configure` takes it."""
        return [
            str(node) for node in AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=10).brokers
        ]

    def first_delivered(self, topic: str) -> set[int | None]:
        """The offsets of the first records that readers of partition 0 get: of its leader, and of the replica in the
        rack of ours. Each broker cleans its own copy of a log."""
        racks = {"", self.kafka.options.get("client.rack", "")}
        return {self._first_delivered(topic, rack) for rack in racks}

    def _first_delivered(self, topic: str, rack: str) -> int | None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "looks-only", "client.rack": rack})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            message = consumer.poll(10)
            return None if message is None else message.offset()
        finally:
            consumer.close()

    def read(self, plan: Plan, **options: Any) -> list[dict[str, Any]]:
        receipts = [
            read_unit(plan=plan, unit=n, kafka=self.kafka, folder=self.folder, **options)
            for n in range(len(plan.units))
        ]
        self.holes = [hole for r in receipts for s in r.slices for hole in s.holes]
        self.epochs = [run.epoch for r in receipts for s in r.slices for run in s.written]
        return landed_rows(self.folder, plan, receipts)

    def files(self) -> list[str]:
        return sorted(p.name for p in self.folder.iterdir()) if self.folder.exists() else []


def payloads(rows: list[dict[str, Any]]) -> list[bytes]:
    return [r["payload"] for r in rows]


def offsets(rows: list[dict[str, Any]]) -> list[int]:
    return [r["offset"] for r in rows]


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)  # between two looks at a condition
