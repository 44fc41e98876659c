"""What the client's errors mean: which refusals are for good, and what was said.

Everything that is not for good may be tried again: chunks that are sent twice are duplicates.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

_FOR_GOOD = frozenset(
    (
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.INVALID_REQUIRED_ACKS,
        KafkaError._AUTHENTICATION,
        KafkaError._INVALID_ARG,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNSUPPORTED_FEATURE,
    )
)


def is_terminal(error: KafkaError) -> bool:
    """Whether sending the same again cannot help. A fatal error ends only the producer that had it, not the next."""
    return error.code() in _FOR_GOOD


def said(error: Exception) -> str:
    """The sentence in an exception of the client, without the wrapping that its own text has."""
    return error.args[0].str() if isinstance(error, KafkaException) else str(error)
