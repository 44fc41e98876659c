"""A client that is not let in says so once, and then that no broker is left: the refusal is not lost behind that."""

from __future__ import annotations

import time

from confluent_kafka import KafkaError, KafkaException

from consumers.range_scan import _ClientEvents
from wavestitch.contracts.errors import Terminal, Transient
from wavestitch.contracts.quantities import Partition
from wavestitch.kafka.admin import Admin
from wavestitch.kafka.client_settings import KafkaSettings

REFUSED = KafkaError(KafkaError._SSL, "certificate verify failed")
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_who_asks_about_a_group_is_told_of_the_refusal_and_not_that_nobody_answers() -> None:
    admin, began = Admin(KafkaSettings("127.0.0.1:1")), time.monotonic()
    for error in (REFUSED, ALL_DOWN):
        admin.remember(error)
    assert admin.refused_since(began) is REFUSED
    said = admin.error(TIMED_OUT, "fetching")
    assert isinstance(said, Terminal)
    assert "certificate verify failed" in said.message
    assert admin.refused_since(time.monotonic()) is None, "an older one is no answer to who asks now"


def test_a_broker_that_is_away_and_refused_nobody_is_away() -> None:
    admin = Admin(KafkaSettings("127.0.0.1:1"))
    admin.remember(ALL_DOWN)
    assert admin.refused_since(0) is None
    assert isinstance(admin.error(TIMED_OUT, "fetching"), Transient)


def test_a_reader_is_told_of_the_refusal_too() -> None:
    events = _ClientEvents(Partition(0))
    for error in (ALL_DOWN, REFUSED, ALL_DOWN):
        events.remember(error)
    assert events.complaint is REFUSED
