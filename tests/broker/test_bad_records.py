"""Records that are no chunks: the batch goes on, the neighbours are published, and the operator finds each with its
reason, its bytes and its headers in the held table (I1, I3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.builders.recordings import cut, recordings
from tests.builders.records import letter
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, make_deployment_rig
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.reasons import Reason
from wavestitch.local.broker import Broker

META = json.loads(recordings(1)[0].meta)
VALUE = b"\1\0" * 50


def headers(**changes: bytes | None) -> list[tuple[str, bytes]]:
    """The headers of a valid chunk of `poison`, with some replaced (`ws_seq=b"9"`) or left out (None)."""
    found = dict(letter("poison", 0, VALUE, meta=json.dumps(META).encode(), count=2).headers)
    for name, value in changes.items():
        found[name.replace("_", "-")] = value
    return [(k, v) for k, v in found.items() if v is not None]


def sealed(waveform_id: str, *, value: bytes = VALUE, seq: int = 0, count: int | None = 1, **meta: object) -> dict:  # type: ignore[type-arg]
    """A record that proves itself, whatever its metadata say."""
    text = json.dumps({**META, "sample_count": len(value) // 2, **meta})
    one = letter(waveform_id, seq, value, meta=text.encode(), count=count)
    return {**one._asdict(), "headers": list(one.headers)}


def poison(**record: object) -> dict:  # type: ignore[type-arg]
    return {"key": b"poison", "value": VALUE, "headers": headers(), **record}


BAD: dict[str, tuple[Reason, str, list[dict]]] = {  # type: ignore[type-arg]
    "no headers": (Reason.NOT_A_CHUNK, "no ws-version header", [poison(headers=[])]),
    "null value": (Reason.NULL_VALUE, "no value", [poison(value=None)]),
    "sequence beyond the count": (
        Reason.BAD_SEQUENCE,
        "ws-seq is 7 with ws-count 2",
        [poison(headers=headers(ws_seq=b"7"))],
    ),
    "count of 2**31": (
        Reason.BAD_SEQUENCE,
        "ws-count is 2147483648; allowed",
        [poison(headers=headers(ws_count=b"2147483648"))],
    ),
    "negative sequence": (Reason.BAD_HEADER, "ws-seq is b'-1'", [poison(headers=headers(ws_seq=b"-1"))]),
    "wrong CRC": (Reason.CORRUPT, "the record's bytes give", [poison(value=b"\2\0" * 50)]),
    "unknown version": (Reason.UNKNOWN_VERSION, "known is 2", [poison(headers=headers(ws_version=b"1"))]),
    "key that is no text": (Reason.BAD_ID, "is not UTF-8", [poison(key=b"\xff\xfe")]),
    "a count that changes": (
        Reason.CONFLICT,
        "ws-count is 2",
        [
            sealed("changing", seq=0, count=2, sample_count=59),
            sealed("changing", seq=1, count=3, value=b"\3\0" * 9, sample_count=59),
        ],
    ),
    "other bytes at the same place": (
        Reason.CONFLICT,
        "chunk 0 has different bytes",
        [sealed("double"), sealed("double", value=b"\5\0" * 50)],
    ),
    "a time that cannot be": (
        Reason.IMPLAUSIBLE_TIME,
        "s from its record time",
        [sealed("ancient", start_time_ns=-(2**61))],
    ),
    "fewer samples than said": (Reason.WRONG_SAMPLE_COUNT, "ws-meta says 51", [sealed("short", sample_count=51)]),
    "more bytes than allowed": (
        Reason.TOO_LARGE,
        "allowed are 65536 bytes",
        [sealed("large", seq=i, count=2, value=bytes(40_000), sample_count=40_000) for i in range(2)],
    ),
}


@pytest.fixture(scope="module")
def held(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker, topic_factory: TopicFactory, java_home: Path
) -> dict[tuple[str, str], list[str]]:
    """All bad records in one batch, between good ones: (reason, waveform id) -> evidence."""
    limits = "65536 B"
    whole = make_deployment_rig(
        tmp_path_factory.mktemp("bad") / "deployment",
        bootstrap=broker.bootstrap,
        topic=topic_factory(partitions=2),
        java_home=java_home,
        max_waveform_bytes=limits,
    )
    before, after = recordings(3, prefix="before"), recordings(3, prefix="after", seed=2)
    whole.send(cut(before))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _, _, records in BAD.values():
        for record in records:
            producer.produce(whole.topic, **record)
    assert producer.flush(30) == 0
    whole.send(cut(after))
    done = whole.run_without_spark()["published"]
    assert done["identity_balances"]
    # A probe behind the poison: the neighbours on both sides are there, and nothing else.
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in before + after}
    assert done["counts"]["quarantined"] == sum(len(records) for _, _, records in BAD.values())

    found: dict[tuple[str, str], list[str]] = {}
    now = load_state(whole.deployment.tables(STREAM), topic_id="")
    for h in now.held:
        found.setdefault((h.reason, h.chunk.waveform_id or ""), []).append(h.evidence)
    # Nothing is lost: every held record has its bytes.
    rows = whole.deployment.tables(STREAM).held_payloads(
        now.head.held, [h.chunk.key for h in now.held], whole.folder / "held.arrow"
    )
    assert len(rows) == len(now.held)
    return found


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_record_is_held_with_its_reason(kind: str, held: dict[tuple[str, str], list[str]]) -> None:
    reason, sentence, _ = BAD[kind]
    evidence = [text for (found, _), texts in held.items() if found == reason for text in texts]
    assert any(sentence in text for text in evidence), evidence
