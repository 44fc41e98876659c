"""What became of a corpus that was sent: compared record by record with what must become of it.

Fails by naming the kind. Sees nothing of a batch but its tables and its counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from tests.deployment_rig import STREAM, DeploymentRig
from tests.hostile.kind import DUPLICATE, PUBLISHED, VALUE, Kind, Record, sealed
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.held import held_states
from wavestitch.contracts.quantities import Seconds, milliseconds
from wavestitch.contracts.raw_headers import decode_raw_headers
from wavestitch.contracts.reasons import Reason


class Sent(NamedTuple):
    """A record of the corpus, where it was put, and what must become of it."""

    kind: str
    record: Record
    becomes: str
    partition: int


class HeldRecord(NamedTuple):
    """A record as the held table has it."""

    reason: Reason
    evidence: str
    key: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    value: bytes | None
    is_chunk: bool


def probe(n: int) -> Record:
    return sealed(f"probe-{n:04d}", value=VALUE + n.to_bytes(2, "little"))


def interleave(kinds: Sequence[Kind], *, partitions: int) -> list[Sent]:
    """Every kind between two probes in its own partition, kinds dealt out over the partitions in turn."""
    sent = [Sent(f"probe in front, {p}", probe(p), PUBLISHED, p) for p in range(partitions)]
    for n, kind in enumerate(kinds):
        p = n % partitions
        sent += [Sent(kind.name, r, b, p) for r, b in zip(kind.records, kind.becomes, strict=True)]
        sent.append(Sent(f"probe behind {kind.name}", probe(partitions + n), PUBLISHED, p))
    return sent


def samples_of(kinds: Sequence[Kind], *, partitions: int) -> dict[str, bytes]:
    """All that may be published of an interleaved corpus."""
    found = {i: s for kind in kinds for i, s in kind.samples.items()}
    assert len(found) == sum(len(k.samples) for k in kinds), "two kinds share a waveform id"
    for n in range(partitions + len(kinds)):
        found[f"probe-{n:04d}"] = VALUE + n.to_bytes(2, "little")
    return found


def held_records(whole: DeploymentRig, *, allowed_lateness_s: int) -> dict[tuple[int, int], HeldRecord]:
    """What is held, by partition and offset, bytes included."""
    tables = whole.deployment.tables(STREAM)
    now = load_state(tables, topic_id=whole.deployment.log.topic(whole.topic).topic_id)
    lateness = milliseconds(Seconds(allowed_lateness_s))
    states = held_states(now.held, watermark=now.head.watermark_ms, allowed_lateness=lateness)
    topic_id = whole.deployment.log.topic(whole.topic).topic_id
    names = [h.chunk._replace(topic_id=topic_id).key for h in now.held]
    path = whole.folder / "held-for-the-test.arrow"
    path.unlink(missing_ok=True)
    rows = tables.held_payloads(now.head.held, names, path)
    with pa.ipc.open_file(str(path)) as reader:
        table = reader.read_all()
    columns = {n: table.column(n).to_pylist() for n in ("raw_key", "raw_headers", "payload")}
    found: dict[tuple[int, int], HeldRecord] = {}
    for h, state, name in zip(now.held, states, names, strict=True):
        row = {n: column[rows[name]] for n, column in columns.items()}
        found[h.chunk.partition, h.chunk.offset] = HeldRecord(
            state, h.evidence, row["raw_key"], _decoded(row["raw_headers"]), row["payload"], h.chunk.reason is None
        )
    return found


def problems(sent: Mapping[tuple[int, int], Sent], held: Mapping[tuple[int, int], HeldRecord]) -> dict[str, list[str]]:
    """By kind, what did not become of its records what must."""
    found: dict[str, list[str]] = {}
    for place, one in sent.items():
        wrong = _wrong(one, held.get(place))
        if wrong:
            found.setdefault(one.kind, []).append(f"{place}: {wrong}")
    for place in held.keys() - sent.keys():
        found.setdefault("nothing that was sent", []).append(f"{place} is held")
    return found


def count_fates(sent: Iterable[Sent]) -> Counter[str]:
    """How many records must have which class of the audit identity."""
    found: Counter[str] = Counter()
    for one in sent:
        if one.becomes in (PUBLISHED, DUPLICATE):
            found[one.becomes] += 1
        else:
            found["carried_out" if one.becomes == Reason.OPEN else "quarantined"] += 1
    return found


def _wrong(one: Sent, row: HeldRecord | None) -> str:
    if one.becomes in (PUBLISHED, DUPLICATE):
        return f"is held as {row.reason}: {row.evidence}" if row is not None else ""
    if row is None:
        return f"is not held; must be {one.becomes}"
    if row.reason != one.becomes:
        return f"is held as {row.reason} ({row.evidence}); must be {one.becomes}"
    if row.value != one.record.value:
        return "is held with other bytes"
    # The client hands out no list where a record has no headers at all.
    if not row.is_chunk and (row.key, row.headers or []) != (one.record.key, list(one.record.headers)):
        return "is held with another key or other headers"
    if not 0 < len(row.evidence) < 600:
        return f"has an evidence of {len(row.evidence)} characters"
    return ""


def _decoded(raw: bytes | None) -> list[tuple[str, bytes | None]] | None:
    return None if raw is None else decode_raw_headers(raw)
