"""What a stream may demand of its chunks beside the CRC, made and looked at as docs/chunk-contract.md has it.

Shares no code with the product. Decides nothing but whether the proof of one record is there, and right.
"""

from __future__ import annotations

import hashlib
import hmac

from tests.builders.records import Letter
from tests.domain.oracle import Sent


def sealed(one: Letter, key: bytes, topic: str) -> Letter:
    """The chunk with the MAC of whoever has the key; one that it had is replaced."""
    headers = tuple((name, value) for name, value in one.headers if name != "ws-mac")
    return one._replace(headers=(*headers, ("ws-mac", _mac(one._replace(headers=headers), key, topic))))


def is_proven(record: Letter | Sent, kind: str, key: bytes, topic: str) -> bool:
    if kind == "none":
        return True
    found = [value for name, value in record.headers if name == "ws-mac"]
    return len(found) == 1 and found[0] == _mac(record, key, topic)


def _mac(record: Letter | Sent, key: bytes, topic: str) -> bytes:
    h = dict(record.headers)
    said = [topic.encode(), record.key if record.key is not None else h.get("ws-id")]
    said += [h.get(name) for name in ("ws-seq", "ws-count", "ws-meta", "ws-digest")]
    parts = [part or b"" for part in said]
    lengths = " ".join(str(len(part)) for part in parts).encode() + b"\n"
    return hmac.new(key, lengths + b"\0".join((*parts, record.value or b"")), hashlib.sha256).hexdigest().encode()
