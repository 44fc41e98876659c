"""The tally of deliveries: nothing that failed is forgotten, nothing counts before the broker said so."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message

from tests.builders.ranges import span
from wavestitch.contracts.errors import Terminal, Transient
from wavestitch.producers.send_report import Deliveries


def stored(partition: int, offset: int, value: bytes = b"1234") -> Message:
    return Message(topic="t", partition=partition, offset=offset, value=value)


def test_a_report_counts_records_bytes_and_the_range_of_each_partition() -> None:
    deliveries = Deliveries("t")
    for partition, offset in ((1, 7), (0, 3), (1, 9), (1, 8)):
        deliveries.note(None, stored(partition, offset))
    report = deliveries.report(waveforms=2)
    assert (report.topic, report.waveforms, report.records, report.bytes) == ("t", 2, 4, 16)
    assert report.ranges == (span(0, 3, 4), span(1, 7, 10))
    assert report.unknown_offsets == 0


def test_a_record_whose_offset_the_broker_no_longer_tells_is_counted_as_such() -> None:
    deliveries = Deliveries("t")
    deliveries.note(None, stored(0, 5))
    deliveries.note(None, stored(0, -1001))
    report = deliveries.report(waveforms=1)
    assert (report.records, report.unknown_offsets, report.ranges) == (2, 1, (span(0, 5, 6),))


def test_failures_that_may_pass_are_transient_and_name_partition_code_and_number() -> None:
    deliveries = Deliveries("t")
    deliveries.note(None, stored(0, 5))
    deliveries.note(KafkaError(KafkaError._MSG_TIMED_OUT), stored(2, -1001))
    deliveries.note(KafkaError(KafkaError._MSG_TIMED_OUT), stored(2, -1001))
    deliveries.note_unanswered(3)
    deliveries.note_client_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    error = deliveries.error(planned=9)
    assert isinstance(error, Transient)
    assert "5 of 9 records were not delivered to topic t" in error.message
    assert "1 were, 3 were not tried" in error.message
    assert "no partition yet: NO_ANSWER x 3; partition 2: _MSG_TIMED_OUT x 2" in error.message
    assert "count as duplicates" in error.message
    assert "down" in error.message
    assert error.facts["failures"] == [
        {"partition": -1, "code": "NO_ANSWER", "records": 3},
        {"partition": 2, "code": "_MSG_TIMED_OUT", "records": 2},
    ]
    assert error.facts["delivered"] == 1


def test_one_refusal_for_good_makes_the_whole_error_terminal() -> None:
    deliveries = Deliveries("t")
    deliveries.note(KafkaError(KafkaError._MSG_TIMED_OUT), stored(0, -1001))
    deliveries.note(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), stored(1, -1001))
    error = deliveries.error(planned=2)
    assert isinstance(error, Terminal)
    assert "MSG_SIZE_TOO_LARGE x 1" in error.message


def test_failures_in_very_many_partitions_do_not_make_an_endless_message() -> None:
    deliveries = Deliveries("t")
    for partition in range(1000):
        deliveries.note(KafkaError(KafkaError._MSG_TIMED_OUT), stored(partition, -1001))
    message = deliveries.error(planned=1000).message
    assert "and 992 more" in message
    assert len(message) < 600
