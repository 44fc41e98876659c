"""What is decided at once: all waveforms that are normal, and no other; and that it says what objects say.

The comparison with what objects decide is `tests/both_ways.py`, in which every decision of a test is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.chunks import NOON, make_chunk, make_held
from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from tests.builders.records import metadata
from tests.builders.streams import make_stream
from tests.domain.effort import effort
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.decision import decide
from wavestitch.contracts.fates import Evidence, Stitched
from wavestitch.contracts.held import HeldChunk, PublishedChunk, PublishedWaveform
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.plain_waveforms import no_plain
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import EpochMs, Offset, Partition, milliseconds
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits

LIMITS = Limits(max_waveform_bytes=64, max_batch_bytes=1 << 20, max_chunks=4)
DAY_MS = 86_400_000
META, OTHER = metadata(NOON), metadata(NOON, note="another")
DIGEST, OTHER_DIGEST = "d" * 32, "e" * 32


@dataclass
class World:
    """What a batch finds, by waveform."""

    chunks: list[ChunkFacts] = field(default_factory=list)
    held: list[HeldChunk] = field(default_factory=list)
    published: dict[str, PublishedWaveform] = field(default_factory=dict)
    stitched: dict[str, Stitched] = field(default_factory=dict)
    failed: dict[str, tuple[str, ...]] = field(default_factory=dict)


Odd = Callable[[World, str, list[ChunkFacts]], list[ChunkFacts]]
ODD: dict[str, Odd] = {}


def odd(make: Odd) -> Odd:
    ODD[make.__name__.replace("_", " ")] = make
    return make


def _with(chunks: list[ChunkFacts], n: int, **changes: Any) -> list[ChunkFacts]:
    return [c._replace(**changes) if k == n else c for k, c in enumerate(chunks)]


@odd
def its_last_chunk_is_missing(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return chunks[:-1]


@odd
def its_first_chunk_is_missing(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return chunks[1:]


@odd
def a_chunk_comes_twice(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return [*chunks, chunks[0]]


@odd
def a_chunk_has_other_bytes_in_a_copy(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return [*chunks, make_chunk(name, 0, b"\xff\xff", count=len(chunks), meta=META)]


@odd
def a_chunk_takes_the_place_of_another(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return [*chunks[:-1], make_chunk(name, 0, b"\xff\xff", count=len(chunks), meta=META)]


@odd
def metadata_differ(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return _with(chunks, 1, meta=OTHER.decode())


@odd
def counts_differ(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return _with(chunks, 0, count=len(chunks) + 1)


@odd
def a_smaller_count_is_said(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return _with(chunks, 0, count=1)


@odd
def nobody_says_the_count(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return [c._replace(count=None) for c in chunks]


@odd
def digests_differ(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return _with(_with(chunks, 0, digest=DIGEST), 1, digest=OTHER_DIGEST)


@odd
def it_is_too_large(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return _with(chunks, 0, length=LIMITS.max_waveform_bytes)


@odd
def it_has_too_many_chunks(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    many = LIMITS.max_chunks + 1
    return [make_chunk(name, n, b"\1\0", count=many, meta=META) for n in range(many)]


@odd
def it_starts_far_from_its_record_times(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return [c._replace(timestamp_ms=EpochMs(NOON + 8 * DAY_MS)) for c in chunks]


@odd
def a_record_time_lies_at_the_end_of_all_numbers(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return _with(chunks, 0, timestamp_ms=EpochMs((1 << 63) - 1))


@odd
def it_says_another_number_of_samples(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    return [c._replace(meta=metadata(NOON, sample_count=1000).decode()) for c in chunks]


@odd
def it_ends_beyond_what_time_can_say(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    start_ms = (1 << 62) // 1_000_000
    meta = metadata(start_ms, sampling_rate_hz=1e-6).decode()
    return [c._replace(meta=meta, timestamp_ms=EpochMs(start_ms)) for c in chunks]


@odd
def it_is_published(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    pieces = tuple(PublishedChunk(Partition(0), Offset(n), c.length, c.piece) for n, c in enumerate(chunks))
    world.published[name] = PublishedWaveform(name, pieces)
    return chunks


@odd
def a_chunk_of_it_is_held(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    world.held.append(
        make_held(chunks[0]._replace(partition=Partition(9), offset=Offset(len(world.held))), Reason.OPEN)
    )
    return chunks[1:]


@odd
def it_is_parked(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    world.held.append(
        make_held(chunks[0]._replace(partition=Partition(9), offset=Offset(len(world.held))), Reason.PARKED)
    )
    return chunks


@odd
def its_digest_was_another(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    world.stitched[name] = Stitched(Reason.DIGEST_MISMATCH, "another")
    return chunks


@odd
def the_gate_refuses_it(world: World, name: str, chunks: list[ChunkFacts]) -> list[ChunkFacts]:
    world.failed[name] = ("too low",)
    return chunks


HARMLESS: dict[str, Callable[[list[ChunkFacts]], list[ChunkFacts]]] = {
    "as it is": lambda chunks: chunks,
    "only the last says the count": lambda chunks: [*(c._replace(count=None) for c in chunks[:-1]), chunks[-1]],
    "one says the digest": lambda chunks: _with(chunks, 0, digest=DIGEST),
    "it says how many samples": lambda chunks: [
        c._replace(meta=metadata(NOON, sample_count=len(chunks)).decode()) for c in chunks
    ],
    "one record time is plausible": lambda chunks: [
        chunks[0],
        *(c._replace(timestamp_ms=EpochMs(NOON + 99 * DAY_MS)) for c in chunks[1:]),
    ],
}


def whole(name: str, count: int) -> list[ChunkFacts]:
    return [make_chunk(name, n, bytes([n, 0]), count=count, meta=META) for n in range(count)]


def decided(world: World, *, order: Callable[[list[ChunkFacts]], list[ChunkFacts]] = list, **changes: Any) -> Decision:
    chunks = [
        c._replace(partition=Partition(n % 2), offset=Offset(n), row=n, file=0)
        for n, c in enumerate(order(world.chunks))
    ]
    chunks.sort(key=lambda c: c.coordinate)
    names = {c.waveform_id or "" for c in (*chunks, *(h.chunk for h in world.held))}
    stitched = {**dict.fromkeys(names, Stitched(None, "")), **world.stitched}
    evidence = Evidence(chunks=ChunkTable.of(chunks), seen_ms={}, stitched=stitched, failed=world.failed)
    park = changes.pop("park", False)
    counts: dict[str, int] = {}
    for h in world.held:
        counts[h.reason.value] = counts.get(h.reason.value, 0) + 1
    plan = make_plan(
        stream=make_stream(limits=LIMITS),
        ends={0: Position(Offset(100)), 1: Position(Offset(100))},
        clock_ms=NOON + DAY_MS,
        **changes,
    )
    head = make_head(watermark_ms=NOON, held=HeldMark(1, len(world.held), 0, "", counts, 1 << 20))
    return decide(plan, replace(evidence, park=park), head=head, held=world.held, published=world.published)


def plain_ids(decision: Decision) -> set[str]:
    return set(decision.fates.plain.ids.to_pylist())


@pytest.mark.parametrize("how", HARMLESS)
def test_what_is_normal_is_decided_at_once(how: str) -> None:
    decision = decided(World(HARMLESS[how](whole("w", 3))))
    assert plain_ids(decision) == {"w"}
    assert decision.publish == ("w",)
    assert [f.fate.value for f in decision.fates] == ["published"] * 3


@pytest.mark.parametrize("how", ODD)
def test_what_is_odd_becomes_objects_and_its_neighbours_do_not(how: str) -> None:
    world = World(whole("before", 2))
    world.chunks += ODD[how](world, "odd", whole("odd", 3))
    world.chunks += whole("behind", 4)
    decision = decided(world)
    assert plain_ids(decision) == {"before", "behind"}
    plain = decision.fates.plain
    assert dict(zip(plain.ids.to_pylist(), np.diff(plain.first).tolist(), strict=True)) == {"before": 2, "behind": 4}
    assert len(plain.sources) == len(plain.start_ns) == 2


@pytest.mark.parametrize(("beyond_ms", "expected"), [(0, {"w"}), (1, set())])
@pytest.mark.parametrize("sign", [1, -1])
def test_up_to_the_clock_skew_that_is_allowed_from_its_record_times_it_is_normal(
    sign: int, beyond_ms: int, expected: set[str]
) -> None:
    at = NOON + sign * (milliseconds(LIMITS.max_clock_skew) + beyond_ms)
    chunks = [c._replace(timestamp_ms=EpochMs(at)) for c in whole("w", 2)]
    assert plain_ids(decided(World(chunks))) == expected


def test_a_record_that_names_a_waveform_and_is_no_chunk_leaves_it_normal() -> None:
    chunks = whole("w", 2)
    bad = chunks[1]._replace(reason=Reason.CORRUPT, evidence="flipped", meta=None, count=None)
    assert plain_ids(decided(World([*chunks, bad]))) == {"w"}


def test_metadata_that_no_reader_lets_through_are_never_normal() -> None:
    with pytest.raises(ValueError, match="was taken for valid, but ws-meta is not JSON"):
        decided(World([c._replace(meta="{", timestamp_ms=EpochMs(0)) for c in whole("w", 2)]))


def test_where_nothing_is_normal_every_column_is_empty_and_all_chunks_are_others() -> None:
    chunks = [c._replace(offset=Offset(n)) for n, c in enumerate(whole("w", 2))]
    nothing = no_plain(ChunkTable.of(chunks))
    assert (len(nothing), nothing.ids.to_pylist(), nothing.first.tolist()) == (0, [], [0])
    assert len(nothing.waveform) == len(nothing.rows) == len(nothing.start_ns) == len(nothing.sources) == 0
    assert nothing.others() == chunks
    assert nothing.is_plain.tolist() == [False, False]


def test_a_parked_batch_has_nothing_normal() -> None:
    assert plain_ids(decided(World(whole("w", 2)), park=True)) == set()


@pytest.mark.parametrize(("owned", "expected"), [(True, {"w"}), (False, set())])
def test_of_a_backfill_only_what_it_owns_is_normal(owned: bool, expected: set[str]) -> None:
    start = NOON * 1_000_000 + (0 if owned else 1)
    decision = decided(World(whole("w", 2)), kind=PlanKind.BACKFILL, scope=Scope(start, start + 10))
    assert plain_ids(decision) == expected


def test_of_rows_that_are_not_in_order_of_places_none_is_normal() -> None:
    chunks = [c._replace(offset=Offset(5 - n)) for n, c in enumerate(whole("w", 2))]
    plan = make_plan(stream=make_stream(limits=LIMITS), clock_ms=NOON + DAY_MS)
    evidence = Evidence(chunks=chunks, seen_ms={}, stitched={"w": Stitched(None, "")})
    decision = decide(plan, evidence, head=make_head(), held=[], published={})
    assert (plain_ids(decision), decision.publish) == (set(), ("w",))


@given(st.data())
@effort(100)
def test_whatever_is_mixed_both_ways_decide_alike_and_all_that_is_normal_is_decided_at_once(
    data: st.DataObject,
) -> None:
    world, normal = World(), set()
    for n in range(data.draw(st.integers(1, 8))):
        name, chunks = f"w{n}", whole(f"w{n}", data.draw(st.integers(2, 4)))
        how = data.draw(st.sampled_from([*HARMLESS, *ODD, "rejected"]))
        if how == "rejected":
            # It names a waveform that is whole without it.
            bad = chunks[0]._replace(reason=Reason.CORRUPT, evidence="flipped", meta=None, count=None)
            chunks, how = [*chunks, bad], "as it is"
        if how in HARMLESS:
            chunks = HARMLESS[how](chunks)
            normal.add(name)
        else:
            chunks = ODD[how](world, name, chunks)
        world.chunks += chunks
    kind = data.draw(st.sampled_from([PlanKind.INGEST, PlanKind.BACKFILL, PlanKind.MANUAL]))
    order: Mapping[int, int] = dict(enumerate(data.draw(st.permutations(range(len(world.chunks))))))
    decision = decided(world, order=lambda chunks: [chunks[order[n]] for n in range(len(chunks))], kind=kind)
    assert plain_ids(decision) == normal
