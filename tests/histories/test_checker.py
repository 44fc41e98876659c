"""The checker by itself: a sound history written by hand has no anomaly, and each wrong one has exactly its own."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.domain import oracle
from tests.histories import anomaly, case, checker, events, history, ledger
from tests.histories.anomaly import Kind
from tests.histories.by_hand import (
    CUT,
    LATER,
    NEW,
    NOW,
    OPEN,
    VERIFIED,
    WAVE,
    T,
    a_decision,
    a_rewind,
    a_skip_and_a_backfill,
    before_quiet,
    head,
    held,
    kinds,
    parked,
    planned,
    produced,
    projected,
    proof_of,
    sound,
    then,
)
from tests.histories.checker import analyse
from tests.histories.events import (
    Committed,
    Ended,
    Event,
    Held,
    JunkLimit,
    Looked,
    LostOffset,
    Planned,
    Published,
    Quiet,
    Read,
    Recorded,
    Rewound,
    Started,
    Truncated,
)
from tests.histories.history import History, load_history
from tests.histories.promotion_events import GateSays
from tests.histories.table_events import HistoryLost
from tests.histories.verify_events import Verified
from tests.histories.wrong_histories import WRONG


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


def test_what_a_verification_says_truly_is_no_anomaly() -> None:
    assert kinds(before_quiet(VERIFIED)) == []
    assert kinds(before_quiet(replace(VERIFIED, found=(("w1", "differs"), ("w2", "held")), altered=("w1",)))) == []
    assert kinds(before_quiet(replace(VERIFIED, found=(("w1", "differs"), ("w2", "held")), cut=("w1",)))) == []


def test_a_backfill_that_published_what_it_found_is_no_anomaly() -> None:
    row = Published("run-3", "p3", 4, "w3", b"\x05\x00", ((T, 0, 6, 2, proof_of(NEW)),))
    assert kinds(before_quiet(*a_skip_and_a_backfill(row))) == []


def test_a_partition_that_no_broker_may_have_heard_of_is_owed_by_no_backfill_unless_the_head_has_it() -> None:
    told = before_quiet(*a_skip_and_a_backfill())
    seen, lags = (Looked("run-3", "topic", hidden) for hidden in ((), (0,)))
    by_a_lagging_one = [lags if event == seen else event for event in told]
    assert kinds(told) == kinds(by_a_lagging_one) == [Kind.LOST]

    def said_where_nothing_is_known(*looks: Event) -> list[str]:
        events = [e for event in told for e in (looks if event == seen else (event,))]
        unknown = [replace(e, positions={}) if isinstance(e, Committed) and e.run == "run-2" else e for e in events]
        return [a.what for a in analyse(History(unknown)) if "interval" in a.what]

    assert said_where_nothing_is_known(lags) == []
    assert said_where_nothing_is_known(lags, seen) == [], "it is planned by any of them"
    assert len(said_where_nothing_is_known(seen, seen)) == 1


def test_what_waits_for_a_decision_is_published_by_one() -> None:
    assert kinds(parked()) == []
    assert kinds(then(parked(), *a_decision("redrive", LATER))) == []


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
    what = (None, None, oracle.size_of(junk), oracle.digest_of(junk).hex(), False, "not_a_chunk", "d1", None)
    row = Held("run-1", T, 0, 5, *what, stored=False)
    others: list[tuple[Event, Event]] = [(produced(5, OPEN[0]), junk), (held(5, OPEN[0], "d1"), row)]
    events = [next((new for old, new in others if old == e), e) for e in sound()]
    assert kinds([JunkLimit(1), *events]) == []
    assert kinds([JunkLimit(1000), *events]) == [Kind.LOST]


@pytest.mark.parametrize(
    ("junk_is_held", "said", "untrue"),
    [(True, "held", False), (True, "discarded", False), (True, "same", True), (False, "held", True)],
)
def test_a_verification_may_take_what_is_a_chunk_today_for_the_record_that_is_held_from_there(
    junk_is_held: bool, said: str, untrue: bool
) -> None:
    """Which was none, lies there no more, and is not discarded with the others."""
    junk = produced(6, OPEN[0]._replace(headers=()))
    what = (None, None, oracle.size_of(junk), oracle.digest_of(junk).hex(), False, "not_a_chunk", "d3", None)
    goes: list[Event] = [replace(held(5, OPEN[0], "d3", "discarded"), sequence=3)]
    rows = [*goes, *((Held("run-1", T, 0, 6, *what, stored=False),) if junk_is_held else ())]
    made = replace(head(3, 7), kind="ingest", plan_id="p3", decision="d3")
    anew = Truncated(T, 0, 6), produced(6, OPEN[0])
    says = Verified("run-9", ((0, 0, 7),), ((0, 0, 7),), (("w1", "same"), ("w2", said)))
    found = analyse(History(before_quiet(junk, planned("p3"), *rows, made, *anew, says)))
    assert any(a.kind is Kind.UNTRUE for a in found) is untrue


@pytest.mark.parametrize(
    ("junk_is_held", "said", "untrue"),
    [
        (True, "held", False),
        (True, "missing in the table", False),
        (True, "outside", True),
        (False, "missing in the table", False),
        (False, "held", True),
    ],
)
def test_so_it_may_a_row_that_somebody_deleted(junk_is_held: bool, said: str, untrue: bool) -> None:
    junk = produced(6, NEW._replace(headers=()))
    what = (None, None, oracle.size_of(junk), oracle.digest_of(junk).hex(), False, "not_a_chunk", "d3", None)
    rows = [held(5, OPEN[0], "d3"), *((Held("run-1", T, 0, 6, *what, stored=False),) if junk_is_held else ())]
    made = replace(head(3, 7), kind="ingest", plan_id="p3", decision="d3")
    plan, read = planned("p4", run="run-2", ranges=((0, 6, 7),)), Read("run-2", "p4", T, 0, 6, 7, (6,))
    row = Published("run-2", "p4", 4, "w3", b"\x05\x00", ((T, 0, 6, 2, proof_of(NEW)),))
    again: list[Event] = [plan, read, row, replace(head(4, 7), run="run-2", kind="ingest", plan_id="p4")]
    asked = ((0, 0, 7),)
    says = Verified("run-9", asked, asked, (("w1", "same"), ("w2", "held"), ("w3", said)), deleted=("w3",))
    told: list[Event] = [junk, planned("p3"), *rows, made, Truncated(T, 0, 6), produced(6, NEW), *again, says]
    found = analyse(History(before_quiet(*told)))
    assert any(a.kind is Kind.UNTRUE for a in found) is untrue


@pytest.mark.parametrize(
    ("since", "untrue"),
    [
        ([], True),
        ([HistoryLost((1,))], True),
        ([HistoryLost((2,))], False),
        ([HistoryLost((2,)), Recorded("run-2", 2, "d1", {})], True),
    ],
    ids=["it stands", "another row is lost", "its row is lost", "and written again"],
)
def test_what_a_head_has_read_is_missed_by_a_verification_while_its_row_stands(
    since: list[Event], untrue: bool
) -> None:
    says = Verified("run-9", ((0, 0, 6),), ((0, 0, 6),), (("w1", "outside"), ("w2", "held")), deleted=("w1",))
    found = analyse(History(before_quiet(*since, says)))
    assert any(a.kind is Kind.UNTRUE for a in found) is untrue


@pytest.mark.parametrize(
    ("anew", "said", "untrue"),
    [
        (WAVE[2]._replace(headers=()), "outside", False),
        (NEW, "outside", False),
        (NEW, "newly failing", False),
        (NEW, "missing in Kafka", True),
    ],
)
def test_of_what_is_refused_today_a_verification_may_say_what_became_of_its_row_s_chunks(
    anew: Any, said: str, untrue: bool
) -> None:
    """Whose place has another record since, which may be no chunk; it lies elsewhere once more, and whole."""
    copies = [replace(produced(n, one), partition=1) for n, one in enumerate(WAVE)]
    says = Verified("run-9", ((1, 0, 3),), ((1, 0, 3),), (("w1", said),))
    told: list[Event] = [*copies, Truncated(T, 0, 2), produced(2, anew), GateSays("w1", True), says]
    found = analyse(History(before_quiet(*told)))
    assert any(a.kind is Kind.UNTRUE for a in found) is untrue


@pytest.mark.parametrize(
    ("sent_ms", "said", "untrue"),
    [
        (NOW, "held", False),
        (NOW, "not found in Kafka", True),
        (NOW + 1, "not found in Kafka", False),
        (NOW + 1, "held", False),
        (NOW + 1, "missing in the table", True),
    ],
)
def test_what_is_held_may_be_of_a_record_whose_place_has_the_same_one_that_was_sent_at_another_time(
    sent_ms: int, said: str, untrue: bool
) -> None:
    anew = Truncated(T, 0, 5), replace(produced(5, OPEN[0]), timestamp_ms=sent_ms)
    says = Verified("run-9", ((0, 0, 6),), ((0, 0, 6),), (("w1", "same"), ("w2", said)))
    found = analyse(History(before_quiet(*anew, says)))
    assert any(a.kind is Kind.UNTRUE for a in found) is untrue


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


@pytest.mark.parametrize("rule", checker.RULES)
def test_a_rule_hears_whatever_it_speaks_of(rule: type[case.Rule]) -> None:
    named = [kind for kind in case.BY_THE_THOUSAND if f"case {kind.__name__}(" in inspect.getsource(rule)]
    assert set(named) <= set(rule.hears)
