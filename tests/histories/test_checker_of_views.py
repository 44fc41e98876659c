"""What the checker makes of what somebody was not shown: partitions that a broker has not heard of, records behind a
transaction that has not ended, decisions that were made while a chain ran."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.records import cut, metadata
from tests.histories.anomaly import Kind
from tests.histories.by_hand import (
    NEW,
    NOW,
    VERIFIED,
    T,
    a_skip_and_a_backfill,
    before_quiet,
    head,
    held,
    kinds,
    planned,
    produced,
    projected,
    proof_of,
)
from tests.histories.checker import analyse
from tests.histories.events import (
    Committed,
    Ended,
    Event,
    Looked,
    Planned,
    Published,
    Read,
    Reset,
    Rewound,
    Shared,
    Started,
    Truncated,
)
from tests.histories.history import History
from tests.histories.interval_events import Backfilled
from tests.histories.promotion_events import Replaced
from tests.histories.table_events import CatalogSetBack
from tests.histories.tracing import OffTrack, follow


@pytest.mark.parametrize(
    ("word", "kind", "hidden", "meant"),
    [
        ("start-over", "rewind", (0,), True),
        ("rebuilt", "rebuilt", (0,), True),
        ("start-over", "rewind", (), False),
        ("rebuilt", "rebuilt", (), False),
        ("new-topic", "rewind", (0,), False),
        ("offsets", "rewind", (0,), False),
    ],
)
def test_a_partition_is_forgotten_by_who_begins_anew_and_was_not_shown_it(
    word: str, kind: str, hidden: tuple[int, ...], meant: bool
) -> None:
    made = replace(head(3, 0), run="run-2", kind=kind, generation=2, positions={})
    asked = Rewound("run-2", word, True), Started("run-2", "rewind", 100), Looked("run-2", "topic", hidden)
    found = analyse(History(before_quiet(*asked, made, Ended("run-2", "done", 9))))
    forgets = [a for a in found if a.kind is Kind.STALE_WRITER and "knows nothing of partitions [0]" in a.what]
    assert bool(forgets) is not meant


def test_what_was_given_up_of_a_partition_that_is_forgotten_is_owed_again() -> None:
    over = replace(head(3, 7), run="run-2", kind="rewind", generation=2, skipped=((0, 6, 7),))
    anew = replace(head(4, 0), run="run-3", kind="rewind", generation=3, positions={})
    skips: list[Event] = [produced(6, NEW), Rewound("run-2", "offsets", True), Started("run-2", "rewind", 9), over]
    begins: list[Event] = [Rewound("run-3", "start-over", True), Started("run-3", "rewind", 9)]
    events = before_quiet(*skips, *begins, Looked("run-3", "topic", (0,)), anew)
    assert Kind.LOST not in kinds(before_quiet(*skips))
    assert [a.what for a in analyse(History(events)) if a.kind is Kind.LOST] == ["never seen, though quiet runs ended"]


def test_a_head_names_nothing_as_given_up_of_a_partition_that_it_does_not_know() -> None:
    anew = replace(head(3, 0), run="run-2", kind="rewind", generation=2, positions={}, skipped=((0, 6, 7),))
    begins = Rewound("run-2", "start-over", True), Started("run-2", "rewind", 9), Looked("run-2", "topic", (0,))
    found = analyse(History(before_quiet(produced(6, NEW), *begins, anew)))
    assert any("has not gone past that" in a.what for a in found)


# an open transaction


@pytest.mark.parametrize("beginning", ["open", "committed"])
def test_a_place_behind_the_first_open_transaction_is_not_found(beginning: str) -> None:
    """Whoever published it had read it: the log was cut since."""
    again = produced(0, NEW, beginning), produced(1, NEW), produced(2, NEW)
    found = (("w1", "not found in Kafka"), ("w2", "not found in Kafka"))
    looked = replace(VERIFIED, asked=((0, 1, 6),), read=((0, 1, 1),), found=found)
    said = [a for a in analyse(History(before_quiet(Truncated(T, 0, 0), *again, looked))) if a.kind is Kind.UNTRUE]
    assert any("w1" in a.ids for a in said) is (beginning == "committed")


# decisions


def test_a_chain_that_ended_owes_nothing_that_had_been_let_go_when_it_passed() -> None:
    """It is restored behind that, and the next ingest publishes it with the rest."""
    row = Published("run-3", "p3", 4, "w3", b"\x05\x00", ((T, 0, 6, 2, proof_of(NEW)),))
    chain, ended = a_skip_and_a_backfill(), Backfilled("run-5", "p3", (NOW * 10**6, (NOW + 1) * 10**6))
    at = next(n for n, e in enumerate(chain) if isinstance(e, Planned))
    discarded: list[Event] = [replace(held(6, NEW, "d2", "discarded"), sequence=4), decided(4, "d2")]
    restored: list[Event] = [replace(held(6, NEW, "d4"), sequence=6), decided(6, "d4")]
    cases: list[tuple[int, list[Event], bool]] = [
        (at, [], False),
        (at, [row], True),
        (at, discarded, True),
        (at + 2, discarded, True),
    ]
    for n, publishes, lets_go in cases:
        told: list[Event] = [*chain[:n], *publishes, *chain[n:]]
        assert owes(told) is not lets_go
        assert owes([*told, *restored, ended]) is not lets_go
    taken_back: list[Event] = [Replaced("run-4", 6, ("w3",)), decided(6, "d4")]
    assert not owes([*chain[:at], row, *chain[at:], *taken_back, ended]), "published, and taken out again since"
    assert owes([*chain[:at], *chain[at:], ended]), "never published"
    assert owes([*chain[:at], *discarded, *restored, *chain[at:]]), "restored before it was planned"


def decided(sequence: int, decision: str) -> Committed:
    made = replace(head(sequence, 7), run="run-4", generation=2, kind="held", decision=decision)
    return replace(made, skipped=((0, 6, 7),))


def owes(told: list[Event]) -> bool:
    return any("whose backfill ended well" in a.what for a in analyse(History(before_quiet(*told))))


@pytest.mark.parametrize(("of_the_other", "contradicts"), [("discarded", False), ("conflict", True)])
def test_of_copies_with_the_same_bytes_one_is_picked_and_the_other_s_words_go_with_it(
    of_the_other: str, contradicts: bool
) -> None:
    """Picked first, accepted later, when both have come again."""
    one = cut("w9", [b"\x09\x00"], meta=metadata(NOW))[0]
    other = cut("w9", [b"\x09\x00", b"\x01\x00"], meta=metadata(NOW))[0]
    sent: list[Event] = [produced(n, letter) for n, letter in enumerate((one, other, one, other), 6)]
    picked: list[Event] = [held(6, one, "d2", "implausible_time"), held(7, other, "d2", of_the_other), decided(3, "d2")]
    row = Published("run-5", "p5", 4, "w9", b"\x09\x00", ((T, 0, 6, 2, proof_of(one)),))
    accepts = planned("p5", run="run-5", kind="held", action="accept", ids=("w9",))
    read = replace(decided(4, "d3"), run="run-5", plan_id="p5")
    told = before_quiet(*sent, *picked, accepts, Read("run-5", "p5", T, 0, 8, 10, (8, 9)), row, read)
    assert any("contradict each other" in a.what for a in analyse(History(told))) is contradicts


# a group that another table writes to


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        (Shared(T, 0, 6, False, 1, 2), False),
        (Shared(T, 0, 5, False, 1, 2), True),
        (Shared(T, 0, 6, False, 1, 3), True),
        (Shared(T, 0, 6, True, 1, 2), True),
    ],
    ids=["as the head", "of another position", "of another head", "of another table"],
)
def test_what_a_copy_of_the_table_shows_as_the_head_does_is_left_by_quiet_runs(shown: Shared, left: bool) -> None:
    assert any("quiet runs left" in a.what for a in analyse(History(before_quiet(shown)))) is left


@pytest.mark.parametrize("between", [(), (Reset(T, 0, None),)])
@pytest.mark.parametrize("again", [Shared(T, 0, 5, True, 9, 9), Shared(T, 0, 5, True, 9, 8), Reset(T, 0, 4)])
def test_what_another_table_writes_to_the_group_once_more_is_taken_over_as_it_was(
    between: tuple[Event, ...], again: Event
) -> None:
    """By whoever has looked at it before, and moves the stream on purpose; and nothing else is."""
    shown = Shared(T, 0, 5, True, 9, 9)
    made = replace(head(3, 6), run="run-2", kind="rewind", generation=2)
    begins = Rewound("run-2", "head", True), Started("run-2", "rewind", 9), Looked("run-2", "topic")
    looks = Looked("run-2", "group")
    events = before_quiet(shown, *begins, looks, *between, made, again, looks, projected(6, 3, 2, "run-2"))
    assert (Kind.STALE_WRITER in kinds(events)) is (again != shown)
    if again != shown:
        with pytest.raises(OffTrack, match="nobody has taken over"):
            follow(events)
    else:
        follow(events)


@pytest.mark.parametrize("once_more", [True, False])
@pytest.mark.parametrize("of_a_copy", [True, False])
def test_so_is_what_a_copy_of_a_lost_table_writes_once_more(of_a_copy: bool, once_more: bool) -> None:
    """As it did while the table was there, or as that did itself."""
    made = replace(head(1, 0), run="run-2", generation=2)
    begins = Rewound("run-2", "start-over", True), Started("run-2", "rewind", 9), Looked("run-2", "topic")
    again = Shared(T, 0, 6, True, 1, 2 if once_more else 3)
    looks = Looked("run-2", "group")
    told: list[Event] = [CatalogSetBack(0), *begins, looks, made, again, looks, projected(0, 1, 2, "run-2")]
    events = before_quiet(*([Shared(T, 0, 6, False, 1, 2)] if of_a_copy else []), *told)
    assert any("written over" in a.what for a in analyse(History(events))) is not once_more
    if once_more:
        follow(events)
    else:
        with pytest.raises(OffTrack, match="nobody has taken over"):
            follow(events)


@pytest.mark.parametrize("between", [Reset(T, 0, None), Reset(T, 0, 1)])
def test_a_reset_that_had_stood_before_and_did_not_when_a_run_looked_is_one_that_it_cannot_know(between: Event) -> None:
    begins = Started("run-2", "ingest", 100), Looked("run-2", "topic")
    looked, reset, writes = Looked("run-2", "group"), Reset(T, 0, 2), projected(6, 2, run="run-2")

    def says(*events: Event) -> bool:
        found = analyse(History(before_quiet(*begins, *events, writes)))
        return any("a reset of the group" in a.what for a in found)

    assert says(reset, looked)
    assert says(reset, between, reset, looked)
    assert not says(reset, between, looked, reset)
    assert not says(looked, reset)
