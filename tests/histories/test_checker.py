"""The checker by itself: a sound history written by hand has no anomaly, and each wrong one has exactly its own."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.domain import oracle
from tests.histories import anomaly, case, checker, events, history, ledger
from tests.histories.anomaly import Kind
from tests.histories.checker import analyse
from tests.histories.events import (
    Abandoned,
    CatalogSetBack,
    Committed,
    Ended,
    Event,
    GateClosed,
    GateSays,
    Held,
    JunkLimit,
    Loaded,
    Looked,
    LostOffset,
    Planned,
    Produced,
    Projected,
    Published,
    Quiet,
    Read,
    ReadBack,
    Recorded,
    Reset,
    Rewound,
    Settled,
    Shared,
    Started,
    TopicMade,
    Truncated,
)
from tests.histories.history import History, load_history

T = "topic-1"
NOW = 1_700_000_000_000
WAVE = cut("w1", [b"\x01\x00", b"\x02\x00", b"\x03\x00"], meta=metadata(NOW))
OPEN = cut("w2", [b"\x07\x00", b"\x08\x00"], meta=metadata(NOW))[:1]
AUDIT = dict.fromkeys(
    ("published", "duplicate", "replay", "quarantined", "carried_out", "reported", "out_of_scope", "carried_in"), 0
)


def produced(offset: int, letter: Any, seen: str = "committed") -> Produced:
    return Produced(T, 0, offset, NOW, *letter, seen)  # type: ignore[call-arg]


def proof_of(letter: Any) -> str:
    meta = dict(letter.headers)["ws-meta"]
    return hashlib.sha256(hashlib.sha256(meta).digest() + letter.value).hexdigest()


def held(offset: int, letter: Any, decision: str, reason: str = "open") -> Held:
    seq = int(dict(letter.headers)["ws-seq"])
    what = (letter.key.decode(), seq, len(letter.value), proof_of(letter), True)
    return Held("run-1", T, 0, offset, *what, reason, decision, letter.value)


def head(sequence: int, position: int, **more: Any) -> Committed:
    made = Committed("run-1", sequence, 1, "first", T, "", "", {0: position}, ())
    return replace(made, **more)


def projected(offset: int, sequence: int, generation: int = 1, run: str = "run-1") -> Projected:
    return Projected(run, T, {0: offset}, generation, sequence)


CHUNKS = tuple((T, 0, n, 2, proof_of(one)) for n, one in enumerate(WAVE))
ROW = Published("run-1", "p1", 2, "w1", b"\x01\x00\x02\x00\x03\x00", CHUNKS)


def sound() -> list[Event]:
    """A whole waveform, an aborted record, its marker, and a chunk that waits: offsets 0 to 6 of one partition."""
    return [
        TopicMade(T),
        *(produced(n, one) for n, one in enumerate(WAVE)),
        produced(3, WAVE[0], "open"),
        Settled(T, 0, (3,), "aborted"),
        Produced(T, 0, 4, NOW, None, (), None, "marker"),
        produced(5, OPEN[0]),
        Started("run-1", "ingest", 100),
        Looked("run-1", "topic"),
        Looked("run-1", "group"),
        head(1, 0),
        projected(0, 1),
        Planned("run-1", "p1", "ingest", 1, 1, T, {0: 0}, ((0, 0, 6),)),
        Read("run-1", "p1", T, 0, 0, 6, (0, 1, 2, 5)),
        held(5, OPEN[0], "d1"),
        ROW,
        head(2, 6, kind="ingest", plan_id="p1", decision="d1"),
        Recorded(
            "run-1", 2, "d1", {0: {**AUDIT, "published": 3, "carried_out": 1, "read": 4, "planned": 6, "holes": 2}}
        ),
        Looked("run-1", "group"),
        projected(6, 2),
        Ended("run-1", "done", 40),
        Quiet(),
    ]


def kinds(events: list[Event]) -> list[Kind]:
    return [a.kind for a in analyse(History(events))]


def swap(old: Event, *new: Event) -> list[Event]:
    events = sound()
    at = events.index(old)
    return [*events[:at], *new, *events[at + 1 :]]


def swap_type(kind: type, change: Callable[[Any], Any], nth: int = 0) -> list[Event]:
    found = [e for e in sound() if isinstance(e, kind)][nth]
    return swap(found, change(found))


def after(kind: type, *new: Event, nth: int = 0) -> list[Event]:
    found = [e for e in sound() if isinstance(e, kind)][nth]
    return swap(found, found, *new)


def late(what: Event, kind: type) -> list[Event]:
    """The event only after the first one of that kind."""
    events = swap(what)
    at = next(n for n, e in enumerate(events) if isinstance(e, kind)) + 1
    return [*events[:at], what, *events[at:]]


def before_quiet(*new: Event) -> list[Event]:
    return swap(Quiet(), *new, Quiet())


def a_rewind(to: int, *, skipped: Any = (), accepted: bool = True, generation: int = 2) -> list[Event]:
    made = replace(head(3, to), run="run-2", kind="rewind", generation=generation, skipped=skipped)
    return [
        *(produced(n, one) for n, one in zip(range(6, to), WAVE, strict=False)),
        Rewound("run-2", "offsets", accepted),
        Started("run-2", "rewind", 100),
        Looked("run-2", "topic"),
        Looked("run-2", "group"),
        made,
        projected(to, 3, generation, "run-2"),
        Ended("run-2", "done", 9),
    ]


def a_decision(action: str, *events: Event, ids: tuple[str, ...] = ("w1",)) -> list[Event]:
    """An operator's, made on head 2 and committed as head 3."""
    return [
        Started("run-2", "held", 100),
        Planned("run-2", "p2", "held", 1, 2, T, {0: 6}, (), action, ids),
        *events,
        replace(head(3, 6), run="run-2", kind="held", plan_id="p2", decision="d2"),
        projected(6, 3, run="run-2"),
        Ended("run-2", "done", 9),
    ]


def parked(reason: str = "parked") -> list[Event]:
    """The whole waveform is held, and waits for somebody."""
    return swap(ROW, *(held(n, one, "d1", reason) for n, one in enumerate(WAVE)))


def then(events: list[Event], *more: Event) -> list[Event]:
    return [*events[:-1], *more, events[-1]]


LATER = replace(ROW, run="run-2", plan_id="p2", sequence=3)
CUT: list[Event] = [Truncated(T, 0, 5), produced(5, WAVE[0])]
"""Offset 5, which was read, comes again."""


def test_a_sound_history_has_no_anomaly() -> None:
    assert analyse(History(sound())) == []


def test_a_history_is_the_same_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    kept = History(path=path)
    for event in sound():
        kept.append(event)
    again = load_history(path)
    assert list(again) == sound()
    with path.open("a") as file:
        file.write('{"event": "Quiet"')  # the machine died here
    assert list(load_history(path)) == sound()


def test_a_skip_that_was_accepted_by_name_is_no_loss() -> None:
    assert kinds(before_quiet(*a_rewind(9, skipped=((0, 6, 9),)))) == []


def test_what_waits_for_a_decision_is_published_by_one() -> None:
    assert kinds(parked()) == []
    assert kinds(then(parked(), *a_decision("redrive", LATER))) == []
    assert kinds(then(parked("conflict"), *a_decision("pick", LATER))) == []


def test_what_was_let_go_is_not_missed_and_not_held_for_ever() -> None:
    gone = [replace(held(n, one, "d2", "discarded"), sequence=3) for n, one in enumerate(WAVE)]
    late_ones = [replace(held(5, OPEN[0], "d2", "discarded"), sequence=3)]
    events = then(parked(), *a_decision("discard", *gone, *late_ones, ids=("w1", "w2")))
    assert kinds([*events[:-1], Quiet(True)]) == []


def test_what_was_cut_off_after_it_was_read_is_owed_still_and_what_came_in_its_place_is_read_anew() -> None:
    back = replace(head(3, 5), run="run-2", kind="rewind", generation=2)
    again = Planned("run-3", "p3", "ingest", 2, 3, T, {0: 5}, ((0, 5, 6),))
    read = Read("run-3", "p3", T, 0, 5, 6, (5,))
    done = replace(head(4, 6), run="run-3", kind="ingest", generation=2, plan_id="p3")
    moved: list[Event] = [Rewound("run-2", "offsets", True), back, again, read, done, projected(6, 4, 2)]
    assert kinds(before_quiet(*CUT, *moved)) == []


def test_a_lost_offset_that_was_read_before_is_nobodys_loss() -> None:
    assert kinds(before_quiet(LostOffset(T, 0, 5))) == []


def test_what_is_no_chunk_may_be_held_by_what_it_was_beyond_the_limit_of_its_bytes() -> None:
    junk = produced(5, OPEN[0]._replace(headers=()))
    what = (None, None, len(OPEN[0].value or b""), oracle.digest_of(junk).hex(), False, "not_a_chunk", "d1", None)
    row = Held("run-1", T, 0, 5, *what, stored=False)
    others: list[tuple[Event, Event]] = [(produced(5, OPEN[0]), junk), (held(5, OPEN[0], "d1"), row)]
    events = [next((new for old, new in others if old == e), e) for e in sound()]
    assert kinds([JunkLimit(1), *events]) == []
    assert kinds([JunkLimit(1000), *events]) == [Kind.LOST]


WRONG: dict[str, tuple[Kind, list[Event]]] = {
    "a chunk that waits is not held": (Kind.LOST, swap(held(5, OPEN[0], "d1"))),
    "a chunk is held without its bytes": (Kind.LOST, swap_type(Held, lambda e: replace(e, payload=None))),
    "a chunk is held by a decision nobody committed": (Kind.LOST, swap_type(Held, lambda e: replace(e, decision="d9"))),
    "a waveform that was read is not published": (Kind.LOST, swap(ROW)),
    "a whole waveform is held for ever": (Kind.LOST, swap(ROW, *(held(n, one, "d1") for n, one in enumerate(WAVE)))),
    "a record that no run saw": (Kind.LOST, before_quiet(produced(6, WAVE[0]))),
    "published again": (Kind.DUPLICATE, after(Published, ROW)),
    "a byte is another": (Kind.ALTERED, swap(ROW, replace(ROW, samples=b"\x01\x00\x02\x00\x04\x00"))),
    "the last chunk is missing": (
        Kind.ALTERED,
        swap(ROW, held(2, WAVE[2], "d1"), replace(ROW, samples=b"\x01\x00\x02\x00", chunks=CHUNKS[:2])),
    ),
    "a held byte is another": (Kind.ALTERED, swap_type(Held, lambda e: replace(e, payload=b"\x09\x00"))),
    "published from an aborted record": (
        Kind.INVENTED,
        swap(ROW, replace(ROW, chunks=((T, 0, 3, 2, proof_of(WAVE[0])), *CHUNKS[1:]))),
    ),
    "published from an offset that never was": (
        Kind.INVENTED,
        swap(ROW, replace(ROW, chunks=((T, 0, 99, 2, proof_of(WAVE[0])), *CHUNKS[1:]))),
    ),
    "held where nothing was produced": (Kind.INVENTED, after(Held, replace(held(5, OPEN[0], "d1"), offset=77))),
    "the gate was not heard": (Kind.INVENTED, after(TopicMade, GateSays("w1"))),
    "chunks in another order": (
        Kind.ORDER,
        swap(ROW, replace(ROW, samples=b"\x02\x00\x01\x00\x03\x00", chunks=(CHUNKS[1], CHUNKS[0], CHUNKS[2]))),
    ),
    "samples in another order": (Kind.ORDER, swap(ROW, replace(ROW, samples=b"\x02\x00\x01\x00\x03\x00"))),
    "a record that the reader left out": (
        Kind.UNEXPLAINED_GAP,
        swap_type(Read, lambda e: replace(e, offsets=(0, 1, 2))),
    ),
    "a head beyond the log's end": (
        Kind.UNEXPLAINED_GAP,
        [
            projected(7, 2) if e == projected(6, 2) else e
            for e in swap_type(Committed, lambda e: replace(e, positions={0: 7}), 1)
        ],
    ),
    "a skip that the head does not name": (Kind.UNEXPLAINED_GAP, before_quiet(*a_rewind(9))),
    "a skip that nobody accepted": (
        Kind.UNEXPLAINED_GAP,
        before_quiet(*a_rewind(9, skipped=((0, 6, 9),), accepted=False)),
    ),
    "an audit that does not balance": (
        Kind.UNEXPLAINED_GAP,
        swap_type(Recorded, lambda e: replace(e, partitions={0: {**e.partitions[0], "read": 3}})),
    ),
    "the group before the head": (
        Kind.COMMIT_AHEAD,
        after(Planned, projected(6, 1)),
    ),
    "held only after the commit": (Kind.COMMIT_AHEAD, late(held(5, OPEN[0], "d1"), Recorded)),
    "a plan from before a rewind": (
        Kind.STALE_WRITER,
        before_quiet(
            *a_rewind(6),
            replace(head(4, 6), generation=2, kind="backfill", plan_id="p1", decision="d4"),
            projected(6, 4, 2),
        ),
    ),
    "an older generation": (Kind.STALE_WRITER, before_quiet(*a_rewind(6, generation=1))),
    "a reset that was written over": (
        Kind.STALE_WRITER,
        after(Committed, Reset(T, 0, 0), nth=1),
    ),
    "quiet runs that leave the group where it was": (Kind.STALE_WRITER, swap(projected(6, 2))),
    "a tag of another table that was written over": (
        Kind.STALE_WRITER,
        after(Committed, Shared(T, 0, 3, True), nth=1),
    ),
    "parking was undone by nobody": (
        Kind.INVENTED,
        then(
            parked(),
            Planned("run-2", "p2", "backfill", 1, 2, T, {0: 6}, ()),
            LATER,
            replace(head(3, 6), kind="backfill", plan_id="p2"),
            projected(6, 3),
        ),
    ),
    "accepted, though its end is missing": (
        Kind.ALTERED,
        then(parked(), *a_decision("accept", replace(LATER, samples=b"\x01\x00\x02\x00", chunks=CHUNKS[:2]))),
    ),
    "a redrive passed the gate": (
        Kind.INVENTED,
        [GateSays("w1"), *then(parked("failed_expectation"), *a_decision("redrive", LATER))],
    ),
    "held although all was let go": (Kind.HELD_FOR_EVER, [*sound()[:-1], Quiet(True)]),
    "what came in place of what was cut off": (Kind.LOST, before_quiet(*CUT)),
    "a published row that readers do not find": (Kind.LOST, before_quiet(ReadBack(()))),
    "a published row that readers find altered": (Kind.ALTERED, before_quiet(ReadBack((("w1", b"other"),)))),
    "junk that is loaded again and again": (Kind.UNBOUNDED_COST, before_quiet(Loaded("run-2", ((T, 0, 5),)))),
    "a run that never ends": (Kind.UNBOUNDED_END, swap_type(Ended, lambda _: Looked("run-1", "group"))),
    "a run past its deadline": (Kind.UNBOUNDED_END, swap_type(Ended, lambda e: replace(e, at=101))),
    "a run that ends by no known reason": (
        Kind.UNBOUNDED_END,
        swap_type(Ended, lambda e: replace(e, reason="KeyError")),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_as_exactly_that(name: str) -> None:
    kind, events = WRONG[name]
    found = analyse(History(events))
    assert {a.kind for a in found} == {kind}, [str(a) for a in found]


def test_every_kind_is_shown_by_hand() -> None:
    assert {kind for kind, _ in WRONG.values()} == set(Kind)


def test_an_anomaly_names_ids_and_offsets() -> None:
    (found,) = analyse(History(WRONG["a chunk that waits is not held"][1]))
    assert (found.ids, found.coordinates) == (("w2",), ((T, 0, 5),))
    assert str(found) == "lost at event 16: passed by a head, and neither published nor held (w2, topic-1/0@5)"


def test_what_was_not_seen_yet_is_not_lost() -> None:
    """Before the last quiet run is through, a record that no head has passed is only waiting."""
    events = before_quiet(produced(6, WAVE[0]))
    assert kinds(events[:-1]) == []
    assert kinds(events) == [Kind.LOST]


def test_a_reset_after_the_last_look_can_be_fenced_by_nobody() -> None:
    events = after(Looked, Reset(T, 0, 0), nth=2)
    assert kinds(events) == []


def test_who_committed_since_its_last_look_at_the_group_has_no_excuse_for_writing_over_a_reset() -> None:
    """As a rewind that looks, commits, and writes without looking again."""
    seen: list[Event] = [Started("run-2", "rewind", 100), Looked("run-2", "topic"), Looked("run-2", "group")]
    rewind = replace(head(3, 0), run="run-2", generation=2, kind="rewind")
    told: list[Event] = [projected(0, 3, 2, run="run-2"), Ended("run-2", "done", 30)]
    written_over = before_quiet(*seen, rewind, Reset(T, 0, 2), *told)
    assert [a.what for a in analyse(History(written_over)) if a.kind is Kind.STALE_WRITER] == [
        "a reset of the group on partition 0 was written over and never taken over"
    ]
    at_the_last_moment = before_quiet(*seen, rewind, Looked("run-2", "group"), Reset(T, 0, 2), *told)
    assert not [a for a in analyse(History(at_the_last_moment)) if a.kind is Kind.STALE_WRITER]


def test_a_reset_to_where_somebody_had_reset_the_group_before_is_seen_by_nobody() -> None:
    seen: list[Event] = [Started("run-2", "rewind", 100), Looked("run-2", "topic"), Looked("run-2", "group")]
    rewind = replace(head(3, 0), run="run-2", generation=2, kind="rewind")
    again: list[Event] = [Looked("run-2", "group"), projected(0, 3, 2, run="run-2"), Ended("run-2", "done", 30)]
    events = before_quiet(Reset(T, 0, 2), *seen, rewind, Reset(T, 0, 2), *again)
    assert not [a for a in analyse(History(events)) if a.kind is Kind.STALE_WRITER]


def test_a_waveform_that_came_late_is_not_lost_when_a_later_head_has_it() -> None:
    rest = cut("w2", [b"\x07\x00", b"\x08\x00"], meta=metadata(NOW))[1]
    row = Published(
        "run-2", "p2", 3, "w2", b"\x07\x00\x08\x00", ((T, 0, 5, 2, proof_of(OPEN[0])), (T, 0, 6, 2, proof_of(rest)))
    )
    events = before_quiet(
        produced(6, rest),
        Started("run-2", "ingest", 100),
        Looked("run-2", "topic"),
        Planned("run-2", "p2", "ingest", 1, 2, T, {0: 6}, ((0, 6, 7),)),
        Read("run-2", "p2", T, 0, 6, 7, (6,)),
        row,
        replace(head(3, 7), run="run-2", kind="ingest", plan_id="p2", decision="d2"),
        Looked("run-2", "group"),
        projected(7, 3, run="run-2"),
        Ended("run-2", "done", 30),
    )
    assert kinds(events) == []


@pytest.mark.parametrize(
    "module",
    [
        oracle,
        anomaly,
        case,
        checker,
        events,
        history,
        ledger,
        *(sys.modules[rule.__module__] for rule in checker.RULES),
    ],
)
def test_the_checker_shares_no_code_with_the_product(module: Any) -> None:
    """Else a mistake of the product's would be one of the checker's, too."""
    tree = ast.parse(Path(module.__file__).read_text())
    found = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    found += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    assert not {name.split(".")[0] for name in found} & {"wavestitch", "consumers", "spark_apps"}


def test_a_first_head_after_a_lost_catalog_that_skips_the_log_is_an_unexplained_gap() -> None:
    fresh = replace(head(1, 6), run="run-2")
    assert Kind.UNEXPLAINED_GAP in kinds(before_quiet(CatalogSetBack(0), fresh, projected(6, 1, run="run-2")))


def test_a_catalog_that_was_set_back_owes_again_what_it_has_not_seen() -> None:
    """Whatever was passed and published since is not passed any more; what nobody reads again is lost."""
    assert Kind.LOST in kinds(before_quiet(CatalogSetBack(1), projected(0, 1)))


def test_an_older_head_that_is_shown_over_a_newer_one_is_a_stale_writer() -> None:
    """As by a plan on a catalog that was set back, which takes the newer tag for an old one."""
    over: list[Event] = [CatalogSetBack(1), Looked("run-2", "group"), projected(0, 1, run="run-2")]
    assert Kind.STALE_WRITER in kinds(before_quiet(*over))
    events = before_quiet(over[0], over[2])
    events.insert(events.index(projected(6, 2)), over[1])
    zombie = analyse(History(events))
    assert not [a for a in zombie if "was shown over" in a.what], "who looked before cannot know"


def test_an_ingest_past_a_closed_gate_is_invented() -> None:
    stopped, backfill = planned("p2"), planned("p2", kind="backfill")
    closed, looked, mine = GateClosed("p2"), Looked("run-2", "gates"), planned("p3", run="run-2")
    done = committed_by("p3", "ingest")
    assert kinds(before_quiet(stopped, closed, mine, looked, *done)) == [Kind.INVENTED]
    assert kinds(before_quiet(stopped, closed, mine, *done)) == [Kind.INVENTED], "who never looks has no excuse"
    assert kinds(before_quiet(stopped, looked, mine, closed, *done)) == [Kind.INVENTED], "nor who looked only before"
    assert kinds(before_quiet(stopped, mine, looked, closed, *done)) == [], "who looked right before cannot know"
    assert kinds(before_quiet(stopped, closed, Abandoned("p2"), mine, looked, *done)) == []
    assert kinds(before_quiet(backfill, closed, mine, looked, *done)) == [], "it stands in nobody's way"


@pytest.mark.parametrize(
    ("action", "bars"), [("redrive", True), ("pick", True), ("", True), ("accept", False), ("discard", False)]
)
def test_what_a_gate_stopped_is_published_by_nobody_else_but_who_accepts_it(action: str, bars: bool) -> None:
    """By no other decision, and by no backfill, wherever it has it from."""
    one = cut("w5", [b"\x05\x00"], meta=metadata(NOW))[0]
    row = Published("run-2", "p3", 3, "w5", b"\x05\x00", ((T, 0, 6, 2, proof_of(one)),))
    kind = "held" if action else "backfill"
    mine = planned("p3", run="run-2", kind=kind, action=action, ids=("w5",) if action else ())
    rows = [] if action == "discard" else [row]
    for stopped, found in (("w5", [Kind.INVENTED] if bars else []), ("w7", [])):
        at_gate: list[Event] = [planned("p2"), GateClosed("p2", (stopped,))]
        events = before_quiet(produced(6, one), *at_gate, mine, *rows, *committed_by("p3", kind))
        assert kinds(events[:-1]) == found


def planned(plan_id: str, *, run: str = "run-1", kind: str = "ingest", **more: Any) -> Planned:
    """On head 2 of the sound history."""
    return replace(Planned(run, plan_id, kind, 1, 2, T, {0: 6}, ()), **more)


def committed_by(plan_id: str, kind: str) -> list[Event]:
    return [replace(head(3, 6), run="run-2", kind=kind, plan_id=plan_id), projected(6, 3, run="run-2")]


def test_a_rewind_that_moves_a_partition_that_was_not_named_is_a_stale_writer() -> None:
    events = [replace(e, only=(1,)) if isinstance(e, Rewound) else e for e in a_rewind(3)]
    assert Kind.STALE_WRITER in kinds(before_quiet(*events))
