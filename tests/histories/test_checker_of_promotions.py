"""What the checker says of promotions: nothing of a sound one that is undone, and of each wrong one what is wrong."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
import xxhash

from tests.builders.records import cut, letter, metadata
from tests.histories.anomaly import Kind
from tests.histories.approval_events import Approved, Declared
from tests.histories.by_hand import (
    CHUNKS,
    LATER,
    NOW,
    ROW,
    WAVE,
    T,
    a_decision,
    before_quiet,
    head,
    held,
    kinds,
    parked,
    planned,
    produced,
    projected,
    proof_of,
    then,
)
from tests.histories.checker import analyse
from tests.histories.events import (
    Answered,
    Ended,
    Event,
    Held,
    Produced,
    Quiet,
    Read,
    ReadBack,
    Started,
    TopicMade,
    Undone,
)
from tests.histories.history import History
from tests.histories.ledger import Ledger
from tests.histories.promotion_events import GateSays, Offered, Replaced

WAS = hashlib.sha256(b"".join(bytes.fromhex(proof) for *_, proof in CHUNKS)).hexdigest()
OFFERED = Offered("s", (("w1", WAS, ""),))
CONTRADICTS = replace(held(1, WAVE[1], "d1", "conflict"), piece="0" * 64)
REFUSED = "1 of these 1 waveforms are not what was shown any more"
BACK = replace(ROW, run="run-3", plan_id="", sequence=4)


def promoted(
    *,
    offered: Offered = OFFERED,
    between: tuple[Event, ...] = (),
    holds: str = "failed_expectation",
    out: tuple[str, ...] = ("w1",),
    back: tuple[Event, ...] = (BACK,),
    to: int = 6,
) -> list[Event]:
    """What was published is refused from now on, promoted away, and put back."""
    made = head(3, to, run="run-2", kind="promote", plan_id="p2", decision="d2")
    undone: list[Any] = [
        Undone("run-3", 0, "p2", False),
        Started("run-3", "undo", 100),
        *back,
        head(4, to, run="run-3", kind="promote"),
        projected(to, 4, run="run-3"),
        Ended("run-3", "done", 9),
    ]
    return before_quiet(
        GateSays("w1"),
        offered,
        *between,
        Approved("run-2", "s"),
        Started("run-2", "promote", 100),
        planned("p2", run="run-2", kind="promote", ranges=((0, 0, 6),)),
        *(replace(held(n, one, "d2", holds), sequence=3) for n, one in enumerate(WAVE) if holds),
        *([Replaced("run-2", 3, out)] if out else []),
        made,
        projected(to, 3, run="run-2"),
        Ended("run-2", "done", 9),
        *undone,
        ReadBack(((ROW.id, ROW.samples),)),
    )


def test_a_promotion_that_is_taken_back_has_no_anomaly() -> None:
    assert kinds(promoted()) == []


def test_nor_one_that_was_done_by_somebody_else_while_it_was_asked_for() -> None:
    events = promoted()
    at = next(n for n, e in enumerate(events) if isinstance(e, Replaced))
    also = Approved("run-4", "s"), Started("run-4", "promote", 100)
    assert kinds(then([*events[:at], *also, *events[at:]], Ended("run-4", "done", 9))) == []


def test_nor_one_that_is_refused_after_something_came_between() -> None:
    asked = Approved("run-2", "s"), Started("run-2", "promote", 100)
    assert kinds(before_quiet(GateSays("w1"), OFFERED, GateSays("w2"), *asked, ended("run-2", REFUSED))) == []


def test_what_was_parked_and_decided_about_is_replaced_by_the_same_and_by_nothing_else() -> None:
    """After a redrive had published it."""
    decided = then(parked(), *a_decision("redrive", LATER))[:-1]
    promotes = planned("p3", run="run-3", kind="promote", base_sequence=3)
    again = replace(LATER, run="run-3", plan_id="p3", sequence=4)
    made = head(4, 6, run="run-3", kind="promote", plan_id="p3", decision="d3")

    def invented(*events: Event) -> list[Kind]:
        return [k for k in kinds([*decided, *events, made]) if k is Kind.INVENTED]

    assert invented(promotes, Replaced("run-3", 4, ("w1",)), again) == []
    other = produced(6, cut("w1", [b"\x01\x00", b"\x02\x00", b"\x04\x00"], meta=metadata(NOW))[2])
    chunk = (T, 0, 6, 2, proof_of(other))
    with_other = replace(again, samples=b"\x01\x00\x02\x00\x04\x00", chunks=(*again.chunks[:2], chunk))
    assert Kind.INVENTED in invented(other, promotes, Replaced("run-3", 4, ("w1",)), with_other)


@pytest.mark.parametrize(("at_ms", "read", "excused"), [(1, 6, True), (1, 7, False), (NOW, 6, False)])
def test_what_only_a_repeat_outside_of_the_range_makes_plausible_may_be_shown_to_go(
    at_ms: int, read: int, excused: bool
) -> None:
    """A range that has the repeat, or a start time that is plausible without it, leaves no excuse."""
    shown: list[Event] = [produced(6, WAVE[0]), Started("run-2", "promote: shown", 100)]
    shown += [Read("run-2", "p2", T, 0, 0, read, tuple(range(read))), OFFERED]
    events = before_quiet(*shown)
    early = [replace(e, timestamp_ms=at_ms) if isinstance(e, Produced) and e.offset < 6 else e for e in events]
    assert (Kind.UNTRUE in kinds(early)) is not excused


SILENT = letter("w1", 0, b"\x01\x00", meta=metadata(NOW), count=None)
"""The first chunk of what is published, and it says nothing of the whole."""


def read_at(sequence: int) -> list[Event]:
    """Offset 6 is read, and passed by a head of this number."""
    mine = planned("p3", run="run-3", base_sequence=sequence - 1, ranges=((0, 6, 7),))
    return [mine, Read("run-3", "p3", T, 0, 6, 7, (6,)), head(sequence, 7, run="run-3", kind="ingest", plan_id="p3")]


def promoted_at(sequence: int, to: int) -> list[Event]:
    """What is published is promoted away, by what was read without offset 6."""
    rows = (replace(held(n, one, "d2", "failed_expectation"), sequence=sequence) for n, one in enumerate(WAVE))
    made = head(sequence, to, run="run-2", kind="promote", plan_id="p2", decision="d2")
    return [
        planned("p2", run="run-2", kind="promote", ranges=((0, 0, 6),)),
        *rows,
        Replaced("run-2", sequence, ("w1",)),
        made,
    ]


def is_lost(repeat: Any, events: list[Event]) -> bool:
    found = analyse(History(before_quiet(produced(6, repeat), *events)[:-1]))
    return any(a.kind is Kind.LOST and (T, 0, 6) in a.coordinates for a in found)


@pytest.mark.parametrize(
    ("repeat", "lost"),
    [
        (WAVE[0], False),
        (SILENT, False),
        (letter("w1", 2, b"\x03\x00", meta=metadata(NOW), count=3), False),
        (letter("w1", 0, b"\x01\x00", meta=metadata(NOW), count=4), True),
        (cut("w1", [b"\x01\x00"], meta=metadata(NOW))[0], True),
        (letter("w1", 0, b"\x01\x00", meta=metadata(NOW), count=3, digest="0" * 32), True),
        (letter("w1", 0, b"\x09\x00", meta=metadata(NOW), count=None), True),
    ],
    ids=["the same", "nothing", "no digest", "another count", "that it is all", "a digest, too", "other bytes"],
)
def test_a_repeat_that_a_row_had_when_it_was_read_is_held_by_the_rows_own_chunk_if_that_says_as_much(
    repeat: Any, lost: bool
) -> None:
    assert is_lost(repeat, [*read_at(3), *promoted_at(4, 7)]) is lost


def test_and_by_nothing_else_that_says_more() -> None:
    """Not where it came when the row was gone, where no row ever had it, or where nothing of it is held."""
    read, out = read_at(3), promoted_at(4, 7)
    assert is_lost(SILENT, [*promoted_at(3, 6), *read_at(4)])
    assert is_lost(SILENT, [*read, *(e for e in out if not isinstance(e, Held))])
    assert is_lost(SILENT, [*read, *(replace(e, payload=b"other") if isinstance(e, Held) else e for e in out)])
    assert is_lost(letter("w2", 0, b"\x07\x00", meta=metadata(NOW), count=None), [*read, *out])


def ended(run: str, text: str) -> Event:
    return Ended(run, "Refused", 9, text)


WRONG: dict[str, tuple[Kind, list[Event]]] = {
    "what is taken out is not held": (Kind.LOST, promoted(holds="")),
    "another row was shown": (Kind.UNTRUE, promoted(offered=Offered("s", (("w1", "0" * 64, ""),)))),
    "what nothing refuses is to go": (Kind.UNTRUE, [e for e in promoted() if not isinstance(e, GateSays)]),
    "what the gate refuses is to come": (Kind.UNTRUE, promoted(offered=Offered("s", (("w1", WAS, WAS),)))),
    "by another definition than was shown": (Kind.STALE_WRITER, promoted(between=(Declared(),))),
    "what was to go stays": (Kind.STALE_WRITER, promoted(out=(), back=())),
    "nobody was shown it": (Kind.STALE_WRITER, [e for e in promoted() if not isinstance(e, Offered)]),
    "the positions move": (Kind.STALE_WRITER, promoted(to=5)),
    "other bytes are put back": (Kind.STALE_WRITER, promoted(back=(replace(BACK, samples=b"other"),))),
    "nothing is put back": (Kind.STALE_WRITER, promoted(back=())),
    "what waits for a decision goes": (Kind.STALE_WRITER, promoted(between=(CONTRADICTS,))),
    "what was discarded is put back": (Kind.INVENTED, promoted(holds="discarded")),
    "it is told as done, and was taken back": (
        Kind.UNTRUE,
        then(promoted(), Approved("run-4", "s"), Started("run-4", "promote", 100), Ended("run-4", "done", 9)),
    ),
    "it is refused at once": (
        Kind.UNTRUE,
        before_quiet(
            GateSays("w1"), OFFERED, Approved("run-2", "s"), Started("run-2", "promote", 100), ended("run-2", REFUSED)
        ),
    ),
    "it is put back twice": (Kind.DUPLICATE, promoted(back=(BACK, BACK))),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_promotion_is_named(name: str) -> None:
    kind, events = WRONG[name]
    assert kind in kinds(events)


@pytest.mark.parametrize(
    ("count", "digest", "passed", "durable"),
    [
        (3, "", True, True),
        (None, None, True, True),
        (4, "", True, False),
        (3, "0" * 32, True, False),
        (3, "", False, False),
    ],
    ids=["what the row was", "nothing", "of another number", "of other bytes", "not passed yet"],
)
def test_a_copy_that_was_passed_before_its_row_was_taken_out_is_held_with_it_whatever_it_said_that_the_row_was(
    count: int | None, digest: str | None, passed: bool, durable: bool
) -> None:
    """By chunks of which this one says nothing of the whole."""
    values = [one.value for one in WAVE]
    whole = xxhash.xxh3_128_hexdigest(b"".join(values))
    silent = letter("w1", 2, values[2], meta=metadata(NOW), count=None)
    copy = letter("w1", 2, values[2], meta=metadata(NOW), count=count, digest=whole if digest == "" else digest)
    row = replace(ROW, chunks=(*CHUNKS[:2], (T, 0, 2, 2, proof_of(silent))))
    kept = [replace(held(n, one, "d2"), sequence=3) for n, one in enumerate((*WAVE[:2], silent))]
    made = replace(head(3, 7), kind="promote", plan_id="p2", decision="d2")
    ledger = Ledger()
    events: list[Event] = [
        TopicMade(T),
        *(produced(n, one) for n, one in enumerate((*WAVE[:2], silent))),
        produced(6, copy),
        head(1, 0),
        row,
        head(2, 7 if passed else 6),
        *kept,
        Replaced("run-2", 3, ("w1",)),
        made,
    ]
    for event in events:
        ledger.take(event)
    assert ledger.durable((T, 0, 6)) is durable


# what is offered is all


SHOWN: list[Event] = [Started("run-2", "promote: shown", 100), Read("run-2", "p2", T, 0, 0, 6, (0, 1, 2, 5))]
ANOTHER = Offered("s", (("w9", "", WAS),))
"""Of another waveform, which nobody knows."""
NOTHING = "stream waves: … there is nothing to promote. A definition that is a draft yet counts for nothing"


def leaves_out(*events: Event) -> bool:
    return any("leaves out what would change" in a.what for a in analyse(History(before_quiet(*events))))


def test_a_row_that_the_gate_refuses_now_is_offered_or_passed_over() -> None:
    says, passed = GateSays("w1"), (("w1", "a copy in … contradicts its row, and is not held as a chunk"),)
    assert leaves_out(says, *SHOWN, ANOTHER)
    assert not leaves_out(says, *SHOWN, OFFERED)
    assert not leaves_out(says, *SHOWN, replace(ANOTHER, passed=passed))
    assert not leaves_out(*SHOWN, ANOTHER), "nothing refuses it"
    assert not leaves_out(says, Answered("p1"), *SHOWN, ANOTHER), "somebody has accepted it"
    assert not leaves_out(says, SHOWN[0], Read("run-2", "p2", T, 0, 0, 2, (0, 1)), ANOTHER), "not all was compared"


def test_a_refusal_that_there_is_nothing_leaves_out_the_same() -> None:
    assert leaves_out(GateSays("w1"), *SHOWN, ended("run-2", NOTHING))
    assert not leaves_out(*SHOWN, ended("run-2", NOTHING))


@pytest.mark.parametrize(
    ("reason", "refuses", "owed"),
    [("failed_expectation", False, True), ("failed_expectation", True, False), ("parked", False, False)],
)
def test_what_is_held_and_passes_now_is_offered(reason: str, refuses: bool, owed: bool) -> None:
    told = [*parked(reason)[:-1], *([GateSays("w1")] if refuses else []), *SHOWN, ANOTHER, Quiet()]
    assert any("leaves out what would change" in a.what for a in analyse(History(told))) is owed


@pytest.mark.parametrize(
    ("why", "right"),
    [
        ("its row has chunks outside of what was compared; take a larger range", False),
        ("a copy in partition 0 offset 7 contradicts its row; let an ingest read that", True),
        ("chunks of it are held as parked; decide about them first", False),
        ("is in the table several times", False),
        ("it pleases somebody", False),
    ],
)
def test_what_is_passed_over_is_for_a_reason_that_it_has(why: str, right: bool) -> None:
    def says(read: Event) -> bool:
        told = analyse(History(before_quiet(SHOWN[0], read, replace(ANOTHER, passed=(("w1", why),)))))
        return any("passes over what it says nothing true of" in a.what for a in told)

    assert says(SHOWN[1]) is not right
    if "outside" in why:
        assert not says(Read("run-2", "p2", T, 0, 0, 2, (0, 1)))
