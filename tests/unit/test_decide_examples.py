"""`decide` by example: what was held, what a batch read, and what becomes of each chunk. Read it as the specification.

A chunk is written `id/seq@offset`, with `!` behind it where its bytes are others; `of 2` is how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.builders.chunks import NOON, make_chunk, make_held
from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from tests.builders.streams import make_stream
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.copies import Copy
from wavestitch.contracts.decided import seal_decision
from wavestitch.contracts.decision import Decision, Evidence, Stitched, decide
from wavestitch.contracts.held import HeldChunk, PublishedChunk, PublishedWaveform, open_deadlines
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Milliseconds, Offset, Partition
from wavestitch.contracts.reasons import Fate, Reason

T = NOON
LATENESS_S = 60


def chunk(name: str, *, at: int = T, carried: bool = False, reason: Reason | None = None) -> ChunkFacts:
    what, _, offset = name.partition("@")
    waveform_id, _, seq = what.partition("/")
    value = b"\xff\xff" if seq.endswith("!") else b"\1\0"
    made = make_chunk(waveform_id, int(seq.rstrip("!")), value, at=(0, int(offset)), time_ms=at, carried=carried)
    return made._replace(reason=reason, evidence="seen" if reason else None)


def held(name: str, reason: Reason, *, at: int = T) -> HeldChunk:
    return make_held(chunk(name, at=at), reason)


def published(waveform_id: str) -> Mapping[str, PublishedWaveform]:
    pieces = tuple(PublishedChunk(Partition(0), Offset(n), 4, chunk(f"{waveform_id}/{n}@{n}").piece) for n in range(2))
    return {waveform_id: PublishedWaveform(waveform_id, pieces)}


def made(
    read: Sequence[str],
    was: Sequence[HeldChunk] = (),
    *,
    known: Mapping[str, PublishedWaveform] | None = None,
    watermark: int = T,
    choice: HeldChoice | None = None,
    **evidence: Any,
) -> Decision:
    counts: dict[str, int] = {}
    for h in was:
        counts[h.reason.value] = counts.get(h.reason.value, 0) + 1
    mark = HeldMark(1, len(was), 0, "", counts)
    head = make_head(watermark_ms=watermark, held=mark)
    plan = make_plan(
        kind=PlanKind.INGEST if choice is None else PlanKind.HELD,
        stream=make_stream(allowed_lateness=LATENESS_S),
        ends={0: Position(Offset(100))},
        watermark_ms=watermark,
        clock_ms=T + 3_600_000,
        choice=choice,
    )
    chunks = [chunk(name) for name in read]
    ids = {c.waveform_id or "" for c in (*chunks, *(h.chunk for h in was))}
    values: dict[str, Any] = {"stitched": {i: Stitched(None, "") for i in ids}, "seen_ms": {}, **evidence}
    return decide(plan, Evidence(chunks=chunks, **values), head=head, held=was, published=known or {})


def fates(decision: Decision) -> list[str]:
    return [
        f"{f.chunk.waveform_id}/{f.chunk.seq}@{f.chunk.offset} {f.fate.value}{f' {f.reason.value}' if f.reason else ''}"
        for f in decision.fates
    ]


class Example(NamedTuple):
    says: str
    was: tuple[HeldChunk, ...]
    read: tuple[str, ...]
    becomes: list[str]
    known: Mapping[str, PublishedWaveform] = MappingProxyType({})
    counts: Mapping[str, int] = MappingProxyType({})


OPEN, CONFLICT, PARKED, DISCARDED = Reason.OPEN, Reason.CONFLICT, Reason.PARKED, Reason.DISCARDED
EXAMPLES = (
    Example("whole", (), ("w/0@1", "w/1@2"), ["w/0@1 published", "w/1@2 published"]),
    Example("half waits", (), ("w/0@1",), ["w/0@1 carried_out open"], counts={"open": 1}),
    Example("the rest comes", (held("w/0@1", OPEN),), ("w/1@2",), ["w/1@2 published", "w/0@1 published"]),
    Example(
        "a repeat counts once",
        (),
        ("w/0@1", "w/0@2", "w/1@3"),
        ["w/0@1 published", "w/0@2 duplicate", "w/1@3 published"],
    ),
    Example(
        "other bytes",
        (),
        ("w/0@1", "w/1@2", "w/1!@3"),
        ["w/0@1 quarantined conflict", "w/1@2 quarantined conflict", "w/1@3 quarantined conflict"],
        counts={"conflict": 3},
    ),
    Example(
        "read again", (held("w/0@1", OPEN),), ("w/0@1",), ["w/0@1 replay", "w/0@1 carried_out open"], counts={"open": 1}
    ),
    Example(
        "a place used again",
        (held("w/0@1", OPEN),),
        ("w/1@1",),
        ["w/1@1 published", "w/0@1 published"],
    ),
    Example("published before", (), ("w/0@7",), ["w/0@7 replay"], published("w")),
    Example(
        "contradicts what is published",
        (),
        ("w/0!@7",),
        ["w/0@7 quarantined conflict"],
        published("w"),
        {"conflict": 1},
    ),
    Example(
        "waits beside what is published",
        (held("w/0!@1", OPEN),),
        ("w/0@7",),
        ["w/0@7 replay", "w/0@1 quarantined conflict"],
        published("w"),
        {"conflict": 1},
    ),
    Example(
        "a conflict blocks",
        (held("w/0@1", CONFLICT),),
        ("w/1@2",),
        ["w/1@2 quarantined conflict"],
        counts={"conflict": 2},
    ),
    Example(
        "parked stays parked",
        (held("w/0@1", PARKED), held("w/1@2", PARKED)),
        ("w/1@5", "w/1!@6"),
        ["w/1@5 duplicate", "w/1@6 quarantined parked"],
        counts={"parked": 3},
    ),
    Example(
        "discarded stays away", (held("w/0@1", DISCARDED),), ("w/0@9",), ["w/0@9 duplicate"], counts={"discarded": 1}
    ),
)


@pytest.mark.parametrize("one", EXAMPLES, ids=[e.says for e in EXAMPLES])
def test_what_becomes_of_each_chunk(one: Example) -> None:
    found = made(one.read, one.was, known=one.known)
    assert fates(found) == one.becomes
    assert found.held_counts == dict(one.counts)


def test_the_digest_of_a_decision_is_over_all_that_it_says_and_the_same_in_every_version() -> None:
    """Two executions of a step agree by it, also where one of them is of another version."""
    was = (held("v/0@1", OPEN), held("u/0@2", DISCARDED))
    found = made(("w/0@3", "w/1@4", "v/1@5", "x/0@6", "u/0@7", "y/0@8", "y/0!@9"), was)
    head = make_head(sequence=5, generation=3)
    names = {
        "all": seal_decision("p", head, found.fates, found.holds),
        "another plan": seal_decision("q", head, found.fates, found.holds),
        "another head": seal_decision("p", head.next(), found.fates, found.holds),
        "another generation": seal_decision("p", make_head(sequence=5, generation=4), found.fates, found.holds),
        "nothing is held": seal_decision("p", head, found.fates, ()),
        "nothing": seal_decision("p", head, made(()).fates, ()),
    }
    assert len(set(names.values())) == len(names)
    assert names["all"] == "2c5bbb2f12d8ca928a10532b602d465f"
    assert names["nothing"] == "d6acb8de31888fd1272497d57baa9ec5"


def test_fates_are_the_same_one_by_one_in_parts_and_all_together() -> None:
    some = made(("w/0@1", "w/1@2", "v/0@3", "x/0@4", "x/0!@5"), (held("u/0@6", OPEN),)).fates
    every = list(some)
    assert len(every) == len(some) == 6
    assert [some[n] for n in range(-6, 6)] == every + every
    assert (some[1:4], some[::-2], some[6:]) == (every[1:4], every[::-2], [])
    with pytest.raises(IndexError):
        some[6]


def test_what_is_held_stands_in_order_of_places_and_what_was_held_before_behind_it() -> None:
    found = made(("w/0!@9", "v/0@8"), (held("w/0@1", OPEN),))
    assert [(h.chunk.carried, h.chunk.offset) for h in found.holds] == [(False, 8), (False, 9), (True, 1)]


def test_a_decision_names_the_waveforms_of_a_fate_and_counts_the_rows_that_it_holds() -> None:
    was = (held("u/0@6", OPEN), held("t/0@7", DISCARDED))
    found = made(("w/0@1", "w/1@2", "v/0@3", "x/0@4", "x/0!@5", "t/0@8"), was)
    assert found.publish == ("w",)
    assert found.waveforms(Fate.QUARANTINED) == {"x"}
    assert found.waveforms(Fate.CARRIED_OUT) == {"u", "v"}
    assert found.waveforms(Fate.DUPLICATE) == {"t"}
    assert found.reasons() == {OPEN: 2, CONFLICT: 2}
    assert found.held_counts == {"open": 2, "conflict": 2, "discarded": 1}
    assert found.waveform_rows == 4, "what was discarded takes no room"
    junk = made(("w/0@1",), (held("t/0@7", Reason.NULL_VALUE),))
    assert (junk.held_counts, junk.waveform_rows) == ({"open": 1, "null_value": 1}, 1)


@pytest.mark.parametrize(
    ("passed", "fate"),
    [(-1, "carried_out open"), (0, "carried_out open"), (1, None)],
    ids=["before its deadline", "at its deadline", "behind it"],
)
def test_an_open_waveform_is_taken_up_until_its_deadline_has_passed(passed: int, fate: str | None) -> None:
    found = made((), (held("w/0@1", OPEN),), watermark=T + LATENESS_S * 1000 + passed)
    assert fates(found) == ([f"w/0@1 {fate}"] if fate else [])


def test_the_deadline_is_that_of_the_newest_open_chunk() -> None:
    rows = [held("w/0@1", OPEN, at=T), held("w/1@2", OPEN, at=T + 5), held("w/1@3", CONFLICT, at=T + 9)]
    assert open_deadlines(rows, allowed_lateness=Milliseconds(100)) == {"w": T + 105}
    assert open_deadlines(rows[::-1], allowed_lateness=Milliseconds(100)) == {"w": T + 105}


def test_the_next_head_keeps_the_record_time_of_what_was_read_last() -> None:
    assert made(("w/0@1",), seen_ms={0: T + 77}).head.positions[Partition(0)].seen_ms == T + 77


def test_what_another_batch_of_a_backfill_has_read_more_of_is_left_and_what_was_discarded_is_not_asked() -> None:
    was = (held("w/0!@1", DISCARDED), held("w/0@2", OPEN))
    found = made(("w/1@5",), was, elsewhere={"w": [Copy.made(chunk("w/2@3"))]})
    assert fates(found) == ["w/1@5 reported open", "w/0@2 carried_out open"]
    assert found.publish == ()


DECISIONS = (
    ("redrive", (held("w/0@1", PARKED), held("w/1@2", PARKED)), "", ["w/0@1 published", "w/1@2 published"]),
    ("discard", (held("w/0@1", OPEN),), "", ["w/0@1 quarantined discarded"]),
    ("restore", (held("w/0@1", DISCARDED),), "", ["w/0@1 quarantined conflict"]),
    (
        "pick",
        (held("w/0@1", CONFLICT), held("w/1@2", CONFLICT), held("w/1!@3", CONFLICT)),
        "last",
        ["w/0@1 published", "w/1@2 quarantined discarded", "w/1@3 published"],
    ),
)


@pytest.mark.parametrize(("action", "was", "pick", "becomes"), DECISIONS, ids=[d[0] for d in DECISIONS])
def test_what_an_operator_decides(action: str, was: tuple[HeldChunk, ...], pick: str, becomes: list[str]) -> None:
    choice = HeldChoice(HeldAction(action), ("w",), "ops", "looked", pick)
    assert fates(made((), was, choice=choice)) == becomes
