"""What maintenance lets go of, by example: at each boundary, and for each reason to keep. No I/O, no table, no disk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from wavestitch.contracts.held_mark import HeldFile
from wavestitch.contracts.maintenance import (
    BatchFolder,
    BatchState,
    DataFileFacts,
    SnapshotFacts,
    StoredFile,
    TableState,
)
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import EpochMs, Milliseconds
from wavestitch.contracts.reasons import Reason
from wavestitch.maintain.what_goes import (
    SUPERSEDED,
    FolderLimits,
    SnapshotLimits,
    files_to_compact,
    folders_to_clear,
    junk_to_expire,
    long_unreferenced,
    smallest_good,
    snapshots_to_expire,
    unlisted,
    unreferenced,
)

NOW = EpochMs(1_000_000)
STRICT = SnapshotLimits(age=Milliseconds(100), most=1, least=1, pinned=Milliseconds(500))
"""Of snapshots the newest alone."""


def table_of(*heads: int | None, ages: tuple[int, ...] = (), protected: tuple[int, ...] = ()) -> TableState:
    """Newest first: the number of each snapshot's head, which snapshot 100 and that number is; None: maintenance's."""
    main = tuple(
        SnapshotFacts(
            100 + (n if head is None else head),
            EpochMs(NOW - (ages[n] if ages else 1000 * (n + 1))),
            "append",
            None if head is None else make_head(sequence=head, decision=f"d{head}", snapshot_id=100 + head),
        )
        for n, head in enumerate(heads)
    )
    return TableState("s.waveforms", main, frozenset(protected), 0, (), 0)


ALL = {(n, f"d{n}") for n in range(10)}


def test_without_a_reason_to_keep_more_the_newest_alone_stays() -> None:
    assert snapshots_to_expire(table_of(4, 3, 2, 1), limits=STRICT, now=NOW, recorded=ALL) == ([103, 102, 101], [])
    kept = snapshots_to_expire(table_of(4, 3, 2, 1, protected=(102,)), limits=STRICT, now=NOW, recorded=ALL)
    assert kept == ([103, 101], []), "a tagged one stays for its tag"


def test_a_table_that_has_no_head_keeps_as_many_as_it_is_told() -> None:
    assert snapshots_to_expire(table_of(None, None, None), limits=STRICT, now=NOW) == ([101, 102], [])


def test_all_down_to_the_newest_head_stay() -> None:
    going, kept = snapshots_to_expire(table_of(None, None, 7, 6), limits=STRICT, now=NOW, recorded=ALL)
    assert (going, kept) == ([106], [])


@pytest.mark.parametrize(("retired", "stays"), [(99, True), (100, False), (101, False)])
def test_a_snapshot_ages_from_when_its_successor_came(retired: int, stays: bool) -> None:
    limits = replace(STRICT, most=5)
    table = table_of(2, 1, ages=(retired, 9999))
    assert (snapshots_to_expire(table, limits=limits, now=NOW, recorded=ALL)[0] == []) is stays


def test_so_many_stay_at_least_and_at_most_whatever_their_age() -> None:
    old = table_of(4, 3, 2, 1)
    assert snapshots_to_expire(old, limits=replace(STRICT, most=9, least=3), now=NOW, recorded=ALL)[0] == [101]
    young = table_of(4, 3, 2, 1, ages=(1, 2, 3, 4))
    assert snapshots_to_expire(young, limits=replace(STRICT, most=2), now=NOW, recorded=ALL)[0] == [102, 101]


def test_a_head_that_the_history_lacks_stays_with_all_after_it() -> None:
    going, kept = snapshots_to_expire(table_of(4, 3, 2, 1), limits=STRICT, now=NOW, recorded=ALL - {(2, "d2")})
    assert going == [101]
    assert kept == ["head 2 does not stand in the history yet"]
    assert snapshots_to_expire(table_of(2, 1), limits=STRICT, now=NOW, recorded={(2, "d2"), (1, "other")})[0] == []


@pytest.mark.parametrize(
    ("age", "closed", "base", "going"),
    [
        (499, False, 102, [101]),
        (500, False, 102, [103, 102, 101]),
        (9000, True, 102, [101]),
        (10, False, 999, [103, 102, 101]),
    ],
    ids=["under way", "too old", "too old, and at a closed gate", "on another snapshot of that number"],
)
def test_the_head_that_a_batch_under_way_stands_on_stays(age: int, closed: bool, base: int, going: list[int]) -> None:
    plan = make_plan(base_sequence=2, base_snapshot=base, clock_ms=EpochMs(NOW - age))
    found, kept = snapshots_to_expire(
        table_of(4, 3, 2, 1),
        limits=STRICT,
        now=NOW,
        recorded=ALL,
        under_way=[plan],
        closed=[plan.plan_id] if closed else [],
    )
    assert found == going
    assert kept == ([f"batch {plan.plan_id[:16]}, under way, stands on head 2"] if len(going) == 1 else [])


def test_no_sentence_says_why_a_head_stays_that_stays_anyway() -> None:
    plan = make_plan(base_sequence=4, base_snapshot=104, clock_ms=NOW)
    going, kept = snapshots_to_expire(table_of(4, 3), limits=STRICT, now=NOW, recorded=ALL, under_way=[plan])
    assert (going, kept) == ([103], [])


@pytest.mark.parametrize(
    ("reason", "held_ms", "goes"),
    [
        (Reason.BAD_HEADER, 99, True),
        (Reason.BAD_HEADER, 100, False),
        (Reason.BAD_HEADER, None, False),
        (Reason.OPEN, 1, False),
        (Reason.DISCARDED, 1, False),
    ],
)
def test_what_is_no_chunk_goes_once_all_of_its_file_is_held_long_enough(
    reason: Reason, held_ms: int | None, goes: bool
) -> None:
    file = HeldFile("f", 1, 9, reason.value)
    since = None if held_ms is None else EpochMs(held_ms)
    assert junk_to_expire({"f": (file, since)}, held_before=EpochMs(100)) == ({"f": file} if goes else {})


LIMITS = FolderLimits(finished=Milliseconds(50), given_up=Milliseconds(70))


@pytest.mark.parametrize(
    ("state", "age", "payload_bytes", "known", "expected"),
    [
        (BatchState.COMMITTED, 50, 0, "projected, recorded", "whole"),
        (BatchState.COMMITTED, 49, 9, "projected, recorded", "payload"),
        (BatchState.COMMITTED, 49, 0, "projected, recorded", ""),
        (BatchState.COMMITTED, 50, 9, "projected", "payload"),
        (BatchState.COMMITTED, 50, 9, "recorded", ""),
        (BatchState.ABANDONED, 70, 9, "", "whole"),
        (BatchState.ABANDONED, 69, 9, "", ""),
        (BatchState.FENCED, 70, 9, "", "whole"),
        (BatchState.FENCED, 69, 9, "", ""),
        (BatchState.UNDER_WAY, 10**12, 9, "", ""),
        (BatchState.UNREADABLE, 10**12, 9, "", ""),
    ],
)
def test_what_goes_of_a_batch_s_folder(
    state: BatchState, age: int, payload_bytes: int, known: str, expected: str
) -> None:
    folder = BatchFolder("p", None, "", False, EpochMs(NOW - age), 5, 100, payload_bytes)
    payload, whole = folders_to_clear(
        [(folder, state)],
        limits=LIMITS,
        now=NOW,
        in_history=["p"] if "recorded" in known else [],
        projected=["p"] if "projected" in known else [],
    )
    assert (payload, whole) == ([folder] * (expected == "payload"), [folder] * (expected == "whole"))


@pytest.mark.parametrize(
    ("age", "payload_bytes", "kind", "other", "goes"),
    [
        (SUPERSEDED, 1, PlanKind.INGEST, BatchState.UNDER_WAY, True),
        (SUPERSEDED - 1, 9, PlanKind.INGEST, BatchState.UNDER_WAY, False),
        (SUPERSEDED, 0, PlanKind.INGEST, BatchState.UNDER_WAY, False),
        (SUPERSEDED, 9, PlanKind.BACKFILL, BatchState.UNDER_WAY, False),
        (SUPERSEDED, 9, PlanKind.INGEST, BatchState.FENCED, False),
    ],
    ids=["long ago", "not so long", "no payload", "moves no position", "the other can commit no more"],
)
def test_payload_goes_that_a_later_try_on_the_same_head_has_landed_again(
    age: int, payload_bytes: int, kind: PlanKind, other: BatchState, goes: bool
) -> None:
    first, later = make_plan(kind=kind, clock_ms=EpochMs(1)), make_plan(clock_ms=EpochMs(2))
    when = EpochMs(2 * SUPERSEDED)
    tried = BatchFolder(first.plan_id, first, "", False, EpochMs(when - age), 5, 100, payload_bytes)
    again = BatchFolder(later.plan_id, later, "", False, when, 5, 100, 9)
    payload, whole = folders_to_clear(
        [(tried, BatchState.UNDER_WAY), (again, other)], limits=LIMITS, now=when, in_history=(), projected=()
    )
    assert (payload, whole) == ([tried] * goes, [])


def test_a_try_is_superseded_after_two_days() -> None:
    assert SUPERSEDED == 172_800_000, "docs/operations.md says so"


@pytest.mark.parametrize(
    ("file", "goes"),
    [
        (StoredFile("/t/a.parquet", 1, EpochMs(100)), True),
        (StoredFile("/t/a.parquet", 1, EpochMs(101)), False),
        (StoredFile("/t/notes.txt", 1, EpochMs(1)), False),
        (StoredFile("/t/named.parquet", 1, EpochMs(1)), False),
        (StoredFile("/t/b.parquet", 1, EpochMs(1), frozenset({"mark"})), False),
        (StoredFile(f"/t/{'ab' * 8}-1.parquet", 1, EpochMs(1)), False),
        (StoredFile(f"/t/.{'ab' * 8}-1.tmp", 1, EpochMs(1)), False),
        (StoredFile(f"/t/{'cd' * 8}-1.parquet", 1, EpochMs(1)), True),
        (StoredFile(f"/t/{'ab' * 7}ac-1.parquet", 1, EpochMs(1)), True),
    ],
)
def test_a_file_is_an_orphan_where_nobody_names_it_nor_is_making_it(file: StoredFile, goes: bool) -> None:
    named = {"/t/named.parquet", "mark"}
    found = unreferenced([file], named=named, under_way=["ab" * 16], modified_before=EpochMs(100))
    assert found == [file] * goes
    after = StoredFile("/t/z.avro", 1, EpochMs(1))
    assert unreferenced([file, after], named=named, under_way=["ab" * 16], modified_before=EpochMs(100))[-1] == after


def test_an_orphan_goes_when_it_was_one_for_the_whole_age_and_a_clock_that_went_back_begins_anew() -> None:
    files = [StoredFile(name, 1, EpochMs(0)) for name in ("just", "not yet", "new", "from the future")]
    seen = {"just": EpochMs(NOW - 60), "not yet": EpochMs(NOW - 59), "from the future": EpochMs(NOW + 5)}
    going, waiting = long_unreferenced(files, first_seen=seen, now=NOW, age=Milliseconds(60))
    assert going == files[:1]
    assert waiting == {"not yet": NOW - 59, "new": NOW, "from the future": NOW}


def test_live_files_that_no_listing_has_are_named() -> None:
    files = [StoredFile("/t/a", 1, EpochMs(0), frozenset({"mark"})), StoredFile("/t/b", 1, EpochMs(0))]
    live = {"by path": ["/t/b"], "by mark": ["mark", "x"], "z gone": ["/t/z"], "a gone": []}
    assert unlisted(live, files) == ["a gone", "z gone"]


def test_a_file_is_small_below_three_quarters_of_the_target() -> None:
    assert smallest_good(100) == 75
    small, good = DataFileFacts("a", 74, 1, "day"), DataFileFacts("b", 75, 1, "day")
    assert files_to_compact([small, good], target_bytes=100, at_least=1) == {"day": [small]}
    assert files_to_compact([small, good], target_bytes=100, at_least=2) == {}
    days = [DataFileFacts(day, 1, 1, day) for day in ("b", "c", "a")]
    assert list(files_to_compact(days, target_bytes=100, at_least=1)) == ["a", "b", "c"]
