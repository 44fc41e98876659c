"""How the product comes in to a broker that tests know by its address: as they do, unless it was given logins there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from wavestitch.kafka.client_settings import KafkaSettings

PRODUCT, PRODUCER = "wavestitch", "producer"
_LOGINS: dict[str, Mapping[str, KafkaSettings]] = {}


def as_product(bootstrap: str) -> KafkaSettings:
    """Of what plans, reads, commits and rewinds at the broker that tests reach there."""
    return _LOGINS[bootstrap][PRODUCT] if bootstrap in _LOGINS else KafkaSettings(bootstrap)


def as_producer(kafka: KafkaSettings) -> KafkaSettings:
    """Of a producer of ours, where the product comes in by these."""
    return next((users[PRODUCER] for users in _LOGINS.values() if users[PRODUCT] == kafka), kafka)


def address_for_tests(kafka: KafkaSettings) -> str:
    """Where tests reach the broker that the product comes in to by these."""
    return next((bootstrap for bootstrap, users in _LOGINS.items() if users[PRODUCT] == kafka), kafka.bootstrap)


@contextmanager
def logins(bootstrap: str, users: Mapping[str, KafkaSettings]) -> Iterator[None]:
    """Until the block ends."""
    _LOGINS[bootstrap] = users
    try:
        yield
    finally:
        del _LOGINS[bootstrap]
