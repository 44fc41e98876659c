"""What may go, as decided: properties that hold for every table, every file and every clock. No disk, no table."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.plans import make_plan
from tests.builders.table_rows import facts, first_head
from wavestitch.contracts.held import HeldChunk, PublishedChunk, PublishedWaveform
from wavestitch.contracts.maintenance import (
    BatchFolder,
    BatchState,
    DataFileFacts,
    HeldPlace,
    SnapshotFacts,
    StoredFile,
    TableState,
)
from wavestitch.contracts.quantities import EpochMs, Milliseconds, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.maintain.what_goes import (
    SUPERSEDED,
    FolderLimits,
    SnapshotLimits,
    files_to_compact,
    folders_to_clear,
    held_to_delete,
    long_unreferenced,
    snapshots_to_expire,
    unreferenced,
)

NOW = 1_000_000
ages = st.integers(0, 2000)


@st.composite
def tables(draw: st.DrawFn) -> TableState:
    """Up to twelve snapshots, newest first, some of them maintenance's own; the oldest is a head."""
    times = sorted(draw(st.lists(st.integers(NOW - 1500, NOW), min_size=1, max_size=12)))
    is_head = [True, *draw(st.lists(st.booleans(), min_size=len(times) - 1, max_size=len(times) - 1))]
    heads = [
        first_head(sequence=n + 1, decision=f"d{n}", snapshot_id=100 + n) if h else None for n, h in enumerate(is_head)
    ]
    main = [
        SnapshotFacts(100 + n, EpochMs(t), "append" if h else "replace", h)
        for n, (t, h) in enumerate(zip(times, heads, strict=True))
    ]
    tagged = draw(st.sets(st.sampled_from([s.snapshot_id for s in main])))
    return TableState("s.waveforms", tuple(reversed(main)), frozenset(tagged), 0, (), 0)


limits = st.builds(SnapshotLimits, age=ages, most=st.integers(1, 9), least=st.integers(1, 9), pinned=ages)


@given(table=tables(), limits=limits, recorded=st.sets(st.integers(0, 11)))
def test_what_stays_is_an_unbroken_beginning_of_main_with_the_newest_head(table, limits, recorded):
    known = {(n + 1, f"d{n}") for n in recorded}
    going, _ = snapshots_to_expire(table, limits=limits, now=EpochMs(NOW), recorded=known)
    ids = [s.snapshot_id for s in table.main]
    stay = [i for i in ids if i not in going]
    untagged = [i for i in stay if i not in table.protected]
    last = max((ids.index(i) for i in untagged), default=0)
    assert all(i in stay for i in ids[: last + 1])
    newest = next(s.snapshot_id for s in table.main if s.head is not None)
    assert ids.index(newest) <= last or newest in table.protected
    assert newest in stay
    assert ids[0] in stay
    for s in table.main:
        if s.snapshot_id in going:
            assert s.head is None or (s.head.sequence, s.head.decision) in known
    assert len(stay) >= min(limits.least, len(ids))


@given(table=tables(), limits=limits)
def test_with_all_recorded_no_more_stays_than_was_asked_for_but_the_way_to_the_newest_head(table, limits):
    known = {(s.head.sequence, s.head.decision) for s in table.main if s.head}
    going, kept = snapshots_to_expire(table, limits=limits, now=EpochMs(NOW), recorded=known)
    newest = next(n for n, s in enumerate(table.main) if s.head is not None)
    stay = [s for s in table.main if s.snapshot_id not in going and s.snapshot_id not in table.protected]
    assert len(stay) <= max(limits.most, limits.least, newest + 1)
    assert kept == []


states = st.sampled_from(BatchState)


@given(
    found=st.lists(st.tuples(states, ages, st.booleans(), st.booleans(), st.integers(0, 3)), max_size=8),
    finished=ages,
    given_up=ages,
)
def test_of_a_batch_that_may_still_commit_nothing_goes(found, finished, given_up):
    folders, history, projected = [], set(), set()
    for n, (state, age, recorded, stands, payload) in enumerate(found):
        plan_id = f"{n:032x}"
        folders.append((BatchFolder(plan_id, None, "", False, NOW - age, 5, 100, payload), state))
        history |= {plan_id} if recorded else set()
        projected |= {plan_id} if stands else set()
    payload_goes, all_goes = folders_to_clear(
        folders, limits=FolderLimits(finished, given_up), now=EpochMs(NOW), in_history=history, projected=projected
    )
    state_of = {f.plan_id: state for f, state in folders}
    for f in payload_goes:
        assert state_of[f.plan_id] is BatchState.COMMITTED
        assert f.plan_id in projected
    for f in all_goes:
        state, age = state_of[f.plan_id], NOW - f.newest_ms
        assert state not in (BatchState.UNDER_WAY, BatchState.UNREADABLE)
        if state is BatchState.COMMITTED:
            assert f.plan_id in projected & history
            assert age >= finished
        else:
            assert age >= given_up


PLAN = "ab" * 16
names = st.sampled_from(
    [
        "a.parquet",
        f"{PLAN[:16]}-1-2.parquet",
        f".{PLAN[:16]}x.tmp",
        ".a.parquet.crc",
        "snap-1.avro",
        "notes.txt",
        "0.metadata.json",
    ]
)


@given(names=st.sets(names), named=st.sets(names), age=st.dictionaries(names, st.integers(0, 100)))
def test_a_named_staged_foreign_or_young_file_is_never_taken_for_an_orphan(names, named, age):
    files = [StoredFile(f"/t/{n}", 1, NOW - age.get(n, 50)) for n in names]
    found = unreferenced(files, named={f"/t/{n}" for n in named}, under_way=[PLAN], modified_before=EpochMs(NOW - 50))
    gone = {f.path.removeprefix("/t/") for f in found}
    assert not gone & named
    assert not gone & {"notes.txt", f"{PLAN[:16]}-1-2.parquet", f".{PLAN[:16]}x.tmp"}
    assert all(age.get(n, 50) >= 50 for n in gone)
    assert ".a.parquet.crc" not in gone or "a.parquet" not in named
    without = unreferenced(files, named={f"/t/{n}" for n in named}, under_way=[], modified_before=EpochMs(NOW - 50))
    assert {f.path for f in found} <= {f.path for f in without}


@given(seen=st.dictionaries(st.sampled_from("abcd"), ages), age=ages)
def test_a_file_goes_only_after_it_was_known_to_be_unreferenced_for_the_whole_age(seen, age):
    files = [StoredFile(p, 1, EpochMs(0)) for p in "abc"]
    first = {p: NOW - a for p, a in seen.items()}
    going, waiting = long_unreferenced(files, first_seen=first, now=EpochMs(NOW), age=age)
    assert {f.path for f in going} | set(waiting) == set("abc")
    for f in going:
        assert NOW - first.get(f.path, NOW) >= age
    for path, since in waiting.items():
        assert since == first.get(path, NOW)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["w", "x", None]), st.booleans(), st.booleans()), max_size=8
    ),
    everywhere=st.sampled_from([("w",), ("w", "x"), (), None]),
)
def test_held_rows_of_a_place_and_piece_go_together_and_only_where_all_are_published_everywhere(rows, everywhere):
    places = []
    for n, (offset, wid, valid, busy) in enumerate(rows):
        chunk = facts(0, offset, b"xx", reason=None if valid else Reason.CORRUPT)._replace(
            waveform_id=wid, seq=0, piece=b"7"
        )
        held = HeldChunk(chunk, Reason.OPEN, "", f"d{n}", n)
        places.append(HeldPlace(f"f{n % 2}", n, held, "busy" if busy else "done"))
    both = {i: PublishedWaveform(i, (PublishedChunk(Partition(9), Offset(9), 2, b"7"),)) for i in ("w", "x")}
    published = [] if everywhere is None else [both, {i: both[i] for i in everywhere}]
    going = held_to_delete(places, published=published, under_way={"busy"})
    gone = {(f, r) for f, numbers in going.items() for r in numbers}
    for place in places:
        mates = [p for p in places if p.held.key == place.held.key]
        free = all(
            p.plan_id != "busy" and p.held.chunk.reason is None and p.held.chunk.waveform_id in (everywhere or ())
            for p in mates
        )
        assert ((place.file, place.row) in gone) == free


def test_a_held_row_with_other_bytes_than_the_published_piece_stays():
    published = [{"w": PublishedWaveform("w", (PublishedChunk(Partition(9), Offset(9), 2, b"7"),))}]
    chunk = facts(0, 1, b"xx")._replace(waveform_id="w", seq=0, piece=b"7")
    place = HeldPlace("f", 0, HeldChunk(chunk, Reason.OPEN, "", "d", 1), "p")
    assert held_to_delete([place], published=published, under_way=()) == {"f": {0}}
    for changes in ({"piece": b"8"}, {"count": 2}, {"seq": 1}, {"seq": None}):
        other = place._replace(held=dataclasses.replace(place.held, chunk=chunk._replace(**changes)))
        assert held_to_delete([other], published=published, under_way=()) == {}


@given(sizes=st.lists(st.tuples(st.integers(1, 200), st.sampled_from("ab")), max_size=30), at_least=st.integers(2, 6))
def test_only_small_files_of_one_day_are_put_together_and_only_if_they_are_many(sizes, at_least):
    files = [DataFileFacts(str(n), size, 1, day) for n, (size, day) in enumerate(sizes)]
    found = files_to_compact(files, target_bytes=100, at_least=at_least)
    for day, chosen in found.items():
        assert len(chosen) >= at_least
        assert all(f.bytes < 75 and f.partition == day for f in chosen)
    small = [f for f in files if f.bytes < 75]
    for day in {f.partition for f in small} - found.keys():
        assert sum(f.partition == day for f in small) < at_least


def test_of_tries_on_the_same_head_the_newest_keeps_what_it_landed_and_so_does_one_at_its_gate():
    """Each landed the same offsets once more."""
    now = EpochMs(NOW + SUPERSEDED)
    tries = [make_plan(base_sequence=3, clock_ms=clock, nonce=f"{clock}") for clock in (1, 2, 3)]
    elsewhere = make_plan(base_sequence=2, clock_ms=1)
    folders = [
        (BatchFolder(p.plan_id, p, "", False, EpochMs(NOW), 5, 100, 90), BatchState.UNDER_WAY)
        for p in (*tries, elsewhere)
    ]
    young = [(dataclasses.replace(f, newest_ms=EpochMs(NOW + 1)), state) for f, state in folders]

    def payload_of(found, *closed):
        limits = FolderLimits(Milliseconds(0), Milliseconds(0))
        payload, whole = folders_to_clear(found, limits=limits, now=now, in_history=(), projected=(), closed=closed)
        assert whole == []
        return [f.plan_id for f in payload]

    assert payload_of(folders) == [p.plan_id for p in tries[:2]]
    assert payload_of(folders, tries[0].plan_id) == [tries[1].plan_id]
    assert payload_of(young) == []
