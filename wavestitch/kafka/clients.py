"""Where every Kafka client of ours is made: nowhere else, so that none is made past the check of the listeners.

A login in the clear is sent to this machine alone; the client itself would follow whatever address a broker advertises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from wavestitch.contracts.errors import BadInput
from wavestitch.kafka.client_settings import Isolation, KafkaSettings, admin_config, consumer_config, producer_config
from wavestitch.kafka.kafka_errors import kafka_error
from wavestitch.kafka.login_token import read_token

OnError = Callable[[Any], None]


def open_consumer(
    settings: KafkaSettings,
    *,
    group: str,
    isolation: Isolation,
    on_error: OnError | None = None,
    more: Mapping[str, Any] | None = None,
) -> Any:
    """A bounded reader. `more`: what its maker sets beside."""
    config = consumer_config(settings, group=group, isolation=isolation, on_error=on_error)
    return _open(Consumer, settings, {**config, **(more or {})})


def open_admin(settings: KafkaSettings, *, on_error: OnError | None = None) -> Any:
    return _open(AdminClient, settings, admin_config(settings, on_error=on_error))


def open_producer(
    settings: KafkaSettings,
    *,
    own: Mapping[str, Any],
    tuning: Mapping[str, Any] | None = None,
    on_error: OnError | None = None,
) -> Any:
    """An idempotent producer. `own`: what its maker sets; `tuning`: what a caller may."""
    return _open(Producer, settings, producer_config(settings, own=own, tuning=tuning, on_error=on_error))


def _open(kind: Callable[[dict[str, Any]], Any], settings: KafkaSettings, config: dict[str, Any]) -> Any:
    if settings.protocol == "sasl_plaintext":
        from wavestitch.kafka.cluster_addresses import check_listeners  # noqa: PLC0415 - for logins in the clear alone

        check_listeners(settings)
    if settings.token is not None:
        # The client would wait for ten seconds for one that is not there, and say only that there was none.
        read_token(settings.token, now=time.time())
    try:
        return kind(config)
    except (KafkaException, ValueError, TypeError) as error:
        said = kafka_error(error).str() if isinstance(error, KafkaException) else str(error)
        raise BadInput(f"the Kafka client does not take its settings: {said}; correct them") from None
