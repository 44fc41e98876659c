"""What becomes of a waveform of which something is held: what blocks it, what a run leaves that holds nothing, and what
an operator's decision makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.builders.chunks import make_chunk, make_held
from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from tests.builders.streams import make_stream
from tests.unit.test_decide_examples import (
    CONFLICT,
    DISCARDED,
    LATENESS_S,
    OPEN,
    PARKED,
    T,
    chunk,
    fates,
    held,
    published,
)
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.copies import Copy
from wavestitch.contracts.decision import Decision, Evidence, Stitched, decide
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.held_choice import HeldAction, HeldChoice, digest_of
from wavestitch.contracts.held_mark import HeldMark, held_bytes
from wavestitch.contracts.pending_decision import held_back
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.reasons import Reason

CLOCK = T + 3_600_000
STREAM = make_stream(allowed_lateness=LATENESS_S)
DEADLINE = T + LATENESS_S * 1000


def decided(read: Sequence[ChunkFacts | str], was: Sequence[HeldChunk] = (), **said: Any) -> Decision:
    """`said`: of the plan, of the evidence (`stitched`, `failed`, `park`, `elsewhere`), what is `published`, and the
    `watermark`."""
    counts: dict[str, int] = {}
    for h in was:
        counts[h.counted_as] = counts.get(h.counted_as, 0) + 1
    size = sum(held_bytes(h.chunk, h.counted_as) for h in was)
    watermark, known = said.pop("watermark", T), said.pop("published", {})
    chunks = [chunk(c) if isinstance(c, str) else c for c in read]
    ids = {c.waveform_id or "" for c in (*chunks, *(h.chunk for h in was))}
    evidence: dict[str, Any] = {"stitched": {i: Stitched(None, "") for i in ids}, "seen_ms": {}}
    evidence |= {k: said.pop(k) for k in ("stitched", "failed", "park", "note", "elsewhere") if k in said}
    sealed = said.pop("sealed", True)
    if "choice" in said:
        said["kind"] = PlanKind.HELD
    plan = make_plan(
        **{"stream": STREAM, "ends": {0: Position(Offset(100))}, "watermark_ms": watermark, "clock_ms": CLOCK, **said}
    )
    head = make_head(watermark_ms=watermark, held=HeldMark(1, len(was), 0, "", counts, size) if was else None)
    found = Evidence(chunks=chunks, **evidence)
    return decide(plan, found, head=head, held=was, published=known, sealed=sealed)


def chooses(action: HeldAction, pick: str = "", among: Sequence[ChunkFacts] | None = None) -> HeldChoice:
    shown = () if among is None else (digest_of(c.in_topic("topic") for c in among),)
    return HeldChoice(action, ("w",), "ops", "looked", pick, shown)


def bare(name: str, reason: Reason) -> HeldChunk:
    return replace(held(name, reason), stored=False)


@pytest.mark.parametrize(
    ("was", "read", "becomes"),
    [
        ((held("w/0@1", PARKED),), "w/0@1", ["w/0@1 replay"]),
        ((held("w/0@1", PARKED),), "w/0@7", ["w/0@7 duplicate"]),
        ((held("w/0@1", PARKED),), "w/0!@7", ["w/0@7 quarantined parked"]),
        ((bare("w/0@1", PARKED),), "w/0@7", ["w/0@7 quarantined parked"]),
        ((bare("w/0@1", PARKED),), "w/0@1", ["w/0@1 quarantined parked"]),
        ((bare("w/0@1", PARKED), held("w/0@2", PARKED)), "w/0@7", ["w/0@7 duplicate"]),
        # Of a conflict one copy will be picked: each is kept.
        ((held("w/0@1", CONFLICT),), "w/0@7", ["w/0@7 quarantined conflict"]),
        ((held("w/0@1", CONFLICT),), "w/0@1", ["w/0@1 replay"]),
        # What waited beside it waits for the same decision now.
        (
            (held("w/0@1", CONFLICT), held("w/1@2", OPEN)),
            "w/1@7",
            ["w/1@7 quarantined conflict", "w/1@2 quarantined conflict"],
        ),
    ],
)
def test_what_waits_for_a_decision_takes_in_what_says_more_or_brings_lost_bytes(
    was: tuple[HeldChunk, ...], read: str, becomes: list[str]
) -> None:
    assert fates(decided([read], was)) == becomes


def test_a_copy_of_what_is_parked_that_says_more_of_the_whole_is_parked_with_it() -> None:
    says_more = chunk("w/0@7")._replace(digest="d" * 32)
    assert fates(decided([says_more], [held("w/0@1", PARKED)])) == ["w/0@7 quarantined parked"]


def test_lost_bytes_that_came_again_are_kept_once() -> None:
    found = decided(["w/0@7", "w/0@8"], [bare("w/0@1", PARKED)])
    assert fates(found) == ["w/0@7 quarantined parked", "w/0@8 duplicate"]


@pytest.mark.parametrize("kind", [PlanKind.MANUAL, PlanKind.BACKFILL])
@pytest.mark.parametrize(
    ("watermark", "waits"), [(DEADLINE, "carried_out open"), (DEADLINE + 1, "quarantined incomplete")]
)
def test_a_run_that_holds_nothing_leaves_what_is_held_as_it_was_and_reports_what_it_read(
    kind: PlanKind, watermark: int, waits: str
) -> None:
    scope = Scope(T * 1_000_000, T * 1_000_000 + 1) if kind is PlanKind.BACKFILL else None

    def made(read: Sequence[ChunkFacts | str], was: Sequence[HeldChunk]) -> list[str]:
        found = decided(read, was, kind=kind, scope=scope, watermark=watermark)
        assert found.holds == ()
        counts = {"open": len(was)} if was and not found.publish else {}
        assert found.held_counts == counts
        return fates(found)

    of_three = [make_chunk("w", n, b"\1\0", count=3, at=(0, n + 1)) for n in range(3)]
    assert made(of_three[1:2], [make_held(of_three[0])]) == ["w/1@2 reported open", f"w/0@1 {waits}"]
    assert made(of_three[:2], []) == ["w/0@1 reported open", "w/1@2 reported open"]
    assert made(["w/0!@5", "w/1@6"], [held("w/0@1", OPEN)]) == [
        *("w/0@5 reported conflict", "w/1@6 reported conflict"),
        f"w/0@1 {waits}",
    ]
    assert made(["w/1@5"], [held("w/0@1", OPEN)]) == ["w/1@5 published", "w/0@1 published"]
    assert made(["w/0@1", "w/1@5"], [bare("w/0@1", OPEN)]) == [
        *("w/0@1 published", "w/1@5 published"),
        f"w/0@1 {waits}",
    ]


def test_a_run_that_holds_takes_bytes_that_were_lost_in_the_place_of_what_is_held_without() -> None:
    found = decided(["w/0@1", "w/1@5"], [bare("w/0@1", OPEN)])
    assert fates(found) == ["w/0@1 published", "w/1@5 published", "w/0@1 replay"]
    # Of two that are held, the one that has its bytes is published.
    found = decided(["w/1@5"], [bare("w/0@1", OPEN), held("w/0@2", OPEN)])
    assert fates(found) == ["w/1@5 published", "w/0@1 duplicate", "w/0@2 published"]


def test_a_backfill_leaves_what_starts_elsewhere_to_its_owner() -> None:
    elsewhere = Scope(T * 1_000_000 + 1, T * 1_000_000 + 2)
    found = decided(["w/0@1", "w/1@2"], [held("w/0@7", OPEN)], kind=PlanKind.BACKFILL, scope=elsewhere)
    assert fates(found) == ["w/0@1 out_of_scope", "w/1@2 out_of_scope"]
    assert found.carried_in == {}


@pytest.mark.parametrize(("beyond_ms", "fate"), [(0, "carried_out open"), (1, "quarantined implausible_time")])
def test_what_would_wait_longer_than_any_clock_may_be_ahead_does_not_wait(beyond_ms: int, fate: str) -> None:
    latest = CLOCK + STREAM.limits.max_clock_skew * 1000 + beyond_ms
    read = [make_chunk("w", n, count=3, at=(0, n), time_ms=at) for n, at in enumerate((T, latest))]
    assert fates(decided(read)) == [f"w/0@0 {fate}", f"w/1@1 {fate}"]


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        ({}, "published"),
        ({"failed": {"w": ("too short",)}}, "quarantined failed_expectation"),
        ({"failed": {"w": ()}}, "published"),
        ({"park": True, "note": "to see"}, "quarantined parked"),
        ({"stitched": {"w": Stitched(Reason.DIGEST_MISMATCH, "another")}}, "quarantined digest_mismatch"),
    ],
)
def test_what_is_whole_is_published_unless_something_is_wrong_with_its_row(said: dict[str, Any], becomes: str) -> None:
    found = decided(["w/0@1", "w/1@2"], **said)
    assert fates(found) == [f"w/0@1 {becomes}", f"w/1@2 {becomes}"]
    assert found.publish == (("w",) if becomes == "published" else ())


def test_what_is_whole_and_was_not_stitched_ends_the_batch() -> None:
    with pytest.raises(Terminal, match=r"waveform 'w' is whole but was not stitched: .* plan again"):
        decided(["w/0@1"], [held("w/1@2", OPEN)], stitched={})


def test_an_operator_who_accepts_answers_for_expectations_and_for_the_time() -> None:
    late = T + STREAM.limits.max_clock_skew * 1000 + 1
    was = [held(f"w/{n}@{n}", Reason.IMPLAUSIBLE_TIME, at=late) for n in range(2)]
    failed = {"w": ("too short",)}
    found = decided([], was, choice=chooses(HeldAction.ACCEPT), failed=failed)
    assert (fates(found), found.publish, found.held_counts) == (["w/0@0 published", "w/1@1 published"], ("w",), {})
    found = decided([], was, choice=chooses(HeldAction.REDRIVE), failed=failed)
    assert fates(found) == ["w/0@0 quarantined implausible_time", "w/1@1 quarantined implausible_time"]


@pytest.mark.parametrize(
    ("action", "pick", "since"),
    [
        (HeldAction.REDRIVE, "", "this redrive was planned"),
        (HeldAction.ACCEPT, "", "this accept was planned"),
        (HeldAction.DISCARD, "", "this discard was planned"),
        (HeldAction.RESTORE, "", "this restore was planned"),
        (HeldAction.PICK, "first", "first was picked"),
    ],
)
def test_a_decision_is_about_the_chunks_that_were_shown_and_about_no_others(
    action: HeldAction, pick: str, since: str
) -> None:
    standing, gone = held("w/0@1", CONFLICT), held("w/1@2", DISCARDED)
    meant, other = (gone, standing) if action is HeldAction.RESTORE else (standing, gone)
    decided([], [standing, gone], choice=chooses(action, pick, [meant.chunk]))
    for among in ([other.chunk], [meant.chunk, other.chunk], []):
        with pytest.raises(Terminal, match=f"'w': what is held of it changed since {since}; nothing was published"):
            decided([], [standing, gone], choice=chooses(action, pick, among))


def test_of_what_was_published_meanwhile_what_is_left_stays_held_whatever_was_decided() -> None:
    was = [held("w/0!@1", CONFLICT)]
    for action, pick in ((HeldAction.REDRIVE, ""), (HeldAction.ACCEPT, ""), (HeldAction.PICK, "first")):
        found = decided([], was, choice=chooses(action, pick), published=published("w"))
        assert (fates(found), found.holds) == (["w/0@1 quarantined conflict"], ())
    stale = chooses(HeldAction.PICK, "first", [])
    with pytest.raises(Terminal, match="changed since first was picked"):
        decided([], was, choice=stale, published=published("w"))
    # Any other decision does not depend on what was shown, since nothing becomes of it.
    assert fates(decided([], was, choice=chooses(HeldAction.REDRIVE, "", []), published=published("w")))
    found = decided([], was, choice=chooses(HeldAction.DISCARD), published=published("w"))
    assert fates(found) == ["w/0@1 quarantined discarded"]


def discarded(name: str, before: Reason | None) -> HeldChunk:
    return replace(held(name, DISCARDED), before=before)


@pytest.mark.parametrize(
    ("before", "reasons"),
    [
        ((OPEN, OPEN), [OPEN, OPEN]),
        ((PARKED, None), [PARKED, PARKED]),
        ((None, None), [CONFLICT, CONFLICT]),
        ((PARKED, OPEN, None), [PARKED, OPEN, CONFLICT]),
    ],
)
def test_what_is_restored_is_held_as_it_was_and_what_came_since_as_its_neighbours_were(
    before: tuple[Reason | None, ...], reasons: list[Reason]
) -> None:
    was = [discarded(f"w/{n}@{n}", reason) for n, reason in enumerate(before)]
    found = decided([], [*was, held("w/9@9", PARKED)], choice=chooses(HeldAction.RESTORE))
    assert [(h.reason, h.evidence) for h in found.holds] == [(reason, "restore by ops: looked") for reason in reasons]
    counts = {r.value: reasons.count(r) for r in reasons}
    counts["parked"] = counts.get("parked", 0) + 1
    assert found.held_counts == counts


@pytest.mark.parametrize(
    ("watermark", "fate"), [(DEADLINE, "carried_out open"), (DEADLINE + 1, "quarantined incomplete")]
)
def test_what_is_restored_waits_again_until_its_deadline_has_passed(watermark: int, fate: str) -> None:
    found = decided([], [discarded("w/0@1", OPEN)], choice=chooses(HeldAction.RESTORE), watermark=watermark)
    assert fates(found) == [f"w/0@1 {fate}"]
    assert [h.reason for h in found.holds] == [OPEN]


def test_a_decision_says_what_is_held_behind_it_and_what_that_counts_for() -> None:
    was = [held("u/0@6", OPEN), discarded("t/0@7", OPEN), held("s/0@8", PARKED)]
    each = held_bytes(chunk("u/0@6"), "open")
    found = decided(["v/0@1", "u/1@2", "s/1@3"], was)
    assert fates(found)[0] == "v/0@1 carried_out open"
    assert (found.publish, found.held_counts) == (("u",), {"discarded": 1, "open": 1, "parked": 2})
    assert found.held_bytes == 3 * each, "what was discarded counts for nothing"
    assert found.carried_in == {0: 1}
    assert found.head.decision == found.digest != ""
    assert decided(["v/0@1"], was, sealed=False).digest == ""
    assert list(found.held_counts) == sorted(found.held_counts)
    assert decided(["v/0@1"]).held_bytes == each
    # Released by what is published, and held for another reason: neither is counted twice.
    found = decided(["u/0!@1"], was[:1])
    assert (found.held_counts, found.held_bytes) == ({"conflict": 2}, 2 * each)


def test_what_stays_held_for_the_same_reason_is_written_once_and_for_another_one_again() -> None:
    redrive = chooses(HeldAction.REDRIVE)
    again = decided([], [held("w/0@1", CONFLICT), held("w/0!@2", CONFLICT)], choice=redrive)
    assert (fates(again), again.holds) == (["w/0@1 quarantined conflict", "w/0@2 quarantined conflict"], ())
    waits = decided([], [held("w/0@1", PARKED)], choice=redrive)
    assert (fates(waits), [h.reason for h in waits.holds]) == (["w/0@1 carried_out open"], [OPEN])
    both = decided([], [held("w/0@1", PARKED), held("w/0!@2", CONFLICT)], choice=redrive)
    assert [(h.chunk.offset, h.reason) for h in both.holds] == [(1, CONFLICT)]


@pytest.mark.parametrize(
    ("was", "elsewhere", "left"),
    [
        ([held("w/0@1", OPEN)], "w/0@3", False),
        ([held("w/0@1", OPEN)], "w/0!@3", True),
        ([held("w/0@1", OPEN)], "w/1@3", False),
        ([held("w/0@1", OPEN), held("w/0!@2", DISCARDED)], "w/0!@3", True),
    ],
)
def test_where_an_earlier_batch_has_read_what_is_not_here_the_waveform_is_left_to_whoever_has_all(
    was: list[HeldChunk], elsewhere: str, *, left: bool
) -> None:
    found = decided(["w/1@5"], was, elsewhere={"w": [Copy.made(chunk(elsewhere))]})
    becomes = ["w/1@5 reported open", "w/0@1 carried_out open"] if left else ["w/1@5 published", "w/0@1 published"]
    assert fates(found) == becomes


def test_what_is_published_is_named_in_order() -> None:
    read = [f"{i}/{n}@{k * 2 + n}" for k, i in enumerate("cab") for n in range(2)]
    was = [held("d/0@90", OPEN), held("0/0@91", OPEN)]
    found = decided([*read, "d/1@20", "0/1@21"], was)
    assert found.publish == ("0", "a", "b", "c", "d")


@pytest.mark.parametrize(
    ("was", "reason"),
    [
        ([held("w/0!@1", CONFLICT)], CONFLICT),
        ([held("w/0!@1", CONFLICT), held("w/1@2", PARKED)], CONFLICT),
        ([held("w/0!@1", PARKED)], PARKED),
        ([held("w/0!@1", OPEN)], None),
        ([held("w/0!@1", DISCARDED)], DISCARDED),
        ([held("w/0!@1", DISCARDED), held("w/1!@2", OPEN)], None),
        ([held("w/0!@1", Reason.FAILED_EXPECTATION)], None),
    ],
)
def test_what_an_operator_has_to_decide_about_holds_a_promotion_back(
    was: list[HeldChunk], reason: Reason | None
) -> None:
    assert held_back(was, {}) == ({} if reason is None else {"w": reason})
    # What was discarded beside a row contradicts it, and stays discarded without it.
    kept = None if reason is DISCARDED else reason
    assert held_back(was, published("w")) == ({} if kept is None else {"w": kept})


def test_what_a_row_has_released_and_what_is_no_chunk_hold_no_promotion_back() -> None:
    released = held("w/0@1", CONFLICT)
    assert held_back([released], published("w")) == {}
    assert held_back([released], {}) == {"w": CONFLICT}
    junk = replace(released, chunk=chunk("w/0@1", reason=Reason.CORRUPT))
    nameless = replace(released, chunk=released.chunk._replace(waveform_id=None))
    assert held_back([junk, nameless], {}) == {}
