"""kafka-python's protocol classes, imported here and nowhere else: what confluent-kafka cannot ask a broker.

Its import takes half a second: whoever may do without imports this where it is needed.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # Version 3.0.12 reads its schemas by importlib.resources.read_text, which Python 3.11 and 3.12 deprecate (3.13 no
    # longer does): two warnings a schema, 218 in all, about code that is not ours. No other is hidden, and none later.
    warnings.filterwarnings("ignore", message=r"(read|open)_text is deprecated", category=DeprecationWarning)
    from kafka.errors import KafkaError as ProtocolError
    from kafka.net.sasl.scram import ScramClient
    from kafka.protocol import consumer, metadata, producer, sasl
    from kafka.protocol.parser import KafkaProtocol
    from kafka.record.default_records import DefaultRecordBase
    from kafka.record.util import calc_crc32c

__all__ = [
    "DefaultRecordBase",
    "KafkaProtocol",
    "ProtocolError",
    "ScramClient",
    "calc_crc32c",
    "consumer",
    "metadata",
    "producer",
    "sasl",
]
