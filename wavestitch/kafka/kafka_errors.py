"""What Kafka's error codes mean for us: may the same step succeed later, and what has a person to do if not.

Unknown codes count as terminal unless the client says that they are worth a retry. That a topic or a partition is not
known means two things: of a topic that is looked up that there is none; of a partition of one that was `found` just
now that this broker, a leader or a coordinator, has an older view of the topic than the one that showed it.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from wavestitch.contracts.errors import Refused, Terminal, Transient, WavestitchError

_AUTHENTICATION = frozenset((KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL))
_AUTHORIZATION = frozenset(
    (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    )
)
_MISSING = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION))
# The client calls some of these not retriable because *it* has given up; a new attempt of ours may find a broker.
_PASSING = frozenset(
    (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
        KafkaError._RESOLVE,
        KafkaError._NOENT,  # no leader is known (yet)
        KafkaError._DESTROY_BROKER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        # Of records that were sent. Chunks that are sent twice are duplicates.
        KafkaError._MSG_TIMED_OUT,
        KafkaError._PURGE_QUEUE,
        KafkaError._PURGE_INFLIGHT,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        # They end the producer that has them, not the next one.
        KafkaError._FATAL,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.DUPLICATE_SEQUENCE_NUMBER,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.INVALID_PRODUCER_EPOCH,
    )
)
READER_RIGHTS = "Read and DescribeConfigs on the topic, Read on the group"
PRODUCER_RIGHTS = "Write and DescribeConfigs on the topic"


def kafka_error(raised: KafkaException) -> KafkaError:
    """The error inside an exception of the client's."""
    error = raised.args[0]
    return error if isinstance(error, KafkaError) else KafkaError(KafkaError._FAIL, str(error))


def is_passing(error: KafkaError, *, found: bool = False) -> bool:
    """Whether the same request may succeed later."""
    code = error.code()
    if code in _MISSING:
        return found
    return code in _PASSING or (bool(error.retriable()) and code not in _AUTHENTICATION | _AUTHORIZATION)


def is_refused_login(error: KafkaError) -> bool:
    """Whether the broker would not let us in; the client itself goes on trying for ever."""
    return error.code() in _AUTHENTICATION


def weightier(known: KafkaError | None, heard: KafkaError) -> KafkaError:
    """Of a client's complaints the one that says more: right after a refusal it complains that no broker is left."""
    return known if known is not None and is_refused_login(known) and not is_refused_login(heard) else heard


def is_refused_act(error: KafkaError) -> bool:
    """Whether we are let in, but not to do this."""
    return error.code() in _AUTHORIZATION


def translate(error: KafkaError, doing: str, *, rights: str = READER_RIGHTS, found: bool = False) -> WavestitchError:
    """The error as one of ours. `doing`: what was tried and where, e.g. `reading topic ecg partition 3`. `rights`: what
    whoever does this needs."""
    what, code = f"{doing} failed: {error.str()} ({error.name()})", error.name()
    if error.code() in _AUTHENTICATION:
        return Terminal(
            f"{what}; check user, password or token, certificates and security.protocol in the settings",
            for_guests=True,
            code=code,
        )
    if error.code() in _AUTHORIZATION:
        return Terminal(
            f"{what}; give this user {rights} (docs/threat-model.md says which part needs which)",
            for_guests=True,
            code=code,
        )
    if error.code() in _MISSING and found:
        return Transient(
            f"{what}: the topic was found, and is gone since or not known to this broker yet; try again",
            for_guests=True,
            code=code,
        )
    if error.code() in _MISSING:
        return Refused(f"{what}; create the topic, or correct its name in the stream's file", code=code)
    if is_passing(error):
        return Transient(f"{what}; is the broker up and within reach? Try again", for_guests=True, code=code)
    return Terminal(f"{what}; trying again will not help, look at the broker's log", code=code)
