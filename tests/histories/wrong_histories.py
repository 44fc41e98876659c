"""Wrong histories, written by hand: what is wrong with each, and the one kind that it must be named as."""

from __future__ import annotations

from dataclasses import replace

from tests.histories.anomaly import Kind
from tests.histories.approval_events import Approved, Declared, Shown
from tests.histories.by_hand import (
    CHUNKS,
    CUT,
    LATER,
    OPEN,
    ROW,
    VERIFIED,
    WAVE,
    T,
    a_decision,
    a_rewind,
    a_skip_and_a_backfill,
    after,
    before_quiet,
    committed_by,
    head,
    held,
    late,
    parked,
    planned,
    produced,
    projected,
    proof_of,
    sound,
    swap,
    swap_type,
    then,
)
from tests.histories.events import (
    Advised,
    Committed,
    Ended,
    Event,
    Held,
    Looked,
    Planned,
    Published,
    Quiet,
    Read,
    ReadBack,
    Recorded,
    Reset,
    Shared,
    Started,
    TopicMade,
)
from tests.histories.promotion_events import GateSays
from tests.histories.reading_events import Loaded, Opened
from tests.histories.table_events import CatalogSetBack, HistoryLost

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
    "a head that forgets a partition": (
        Kind.STALE_WRITER,
        before_quiet(planned("p2"), replace(head(3, 6), kind="ingest", plan_id="p2", positions={})),
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
    "what nobody was shown was approved of": (
        Kind.STALE_WRITER,
        then(
            parked(),
            Shown("s", ("w2",)),
            Approved("run-2", "s"),
            *a_decision("redrive", LATER),
        ),
    ),
    "approved of by another definition": (
        Kind.STALE_WRITER,
        then(
            parked(),
            Shown("s", ("w1",)),
            Declared(),
            Approved("run-2", "s"),
            *a_decision("redrive", LATER),
        ),
    ),
    "a backfill that ended well left what is whole": (Kind.LOST, before_quiet(*a_skip_and_a_backfill())),
    "a batch without positions on a catalog that was set back": (
        Kind.STALE_WRITER,
        before_quiet(
            planned("p2", kind="backfill"),
            *committed_by("p2", "backfill"),
            CatalogSetBack(2),
            planned("p3", kind="backfill", run="run-3"),
            replace(head(3, 6), run="run-3", kind="backfill", plan_id="p3"),
            projected(6, 3, run="run-3"),
        ),
    ),
    "an altered row is told to be the same": (
        Kind.UNTRUE,
        before_quiet(replace(VERIFIED, altered=("w1",))),
    ),
    "a row that lacks a chunk is told to reach over the edges": (
        Kind.UNTRUE,
        before_quiet(replace(VERIFIED, found=(("w1", "outside"), ("w2", "held")), cut=("w1",))),
    ),
    "a waveform is left out by who verifies": (
        Kind.UNTRUE,
        before_quiet(replace(VERIFIED, found=(("w1", "same"),))),
    ),
    "a part of the range is left out by who verifies": (
        Kind.UNTRUE,
        before_quiet(replace(VERIFIED, read=((0, 0, 3),), found=(("w1", "same"),))),
    ),
    "who verifies writes into the history": (
        Kind.STALE_WRITER,
        before_quiet(Started("run-2", "verify", 9), Recorded("run-2", 2, "d1", {}), Ended("run-2", "done", 1)),
    ),
    "held although all was let go": (Kind.HELD_FOR_EVER, [*sound()[:-1], Quiet(True)]),
    "what came in place of what was cut off": (Kind.LOST, before_quiet(*CUT)),
    "a published row that readers do not find": (Kind.LOST, before_quiet(ReadBack(()))),
    "a published row that readers find altered": (Kind.ALTERED, before_quiet(ReadBack((("w1", b"other"),)))),
    "a published row that readers do not find for a while": (
        Kind.LOST,
        before_quiet(ReadBack(()), ReadBack(((ROW.id, ROW.samples),))),
    ),
    "a published row that readers find twice": (Kind.DUPLICATE, before_quiet(ReadBack(((ROW.id, ROW.samples),) * 2))),
    "a row that readers find before it is published": (
        Kind.INVENTED,
        swap(ROW, ReadBack(((ROW.id, ROW.samples),)), ROW),
    ),
    "files are opened for ids that are not in them": (
        Kind.UNBOUNDED_COST,
        before_quiet(Opened("run-2", ("data-1",))),
    ),
    "more is read than the batch may take": (
        Kind.UNBOUNDED_COST,
        swap_type(Planned, lambda e: replace(e, most_bytes=300)),
    ),
    "markers are named as lost": (
        Kind.UNTRUE,
        before_quiet(
            Started("run-2", "ingest", 9),
            Ended("run-2", "DataLost", 1, "topic waves partition 0 [0, 6): offsets [1, 2), [3, 4) hold no record, no"),
        ),
    ),
    "junk that is loaded again and again": (Kind.UNBOUNDED_COST, before_quiet(Loaded("run-2", ((T, 0, 5),)))),
    "a deleted row of the history that nobody writes again": (Kind.UNEXPLAINED_GAP, before_quiet(HistoryLost((2,)))),
    "a run that never ends": (Kind.UNBOUNDED_END, swap_type(Ended, lambda _: Looked("run-1", "group"))),
    "a run past its deadline": (Kind.UNBOUNDED_END, swap_type(Ended, lambda e: replace(e, at=101))),
    "a way out that is refused in the same words": (
        Kind.UNBOUNDED_END,
        before_quiet(
            Started("run-2", "ingest", 9),
            Ended("run-2", "DataLost", 1, "gone: read the others"),
            Advised("run-3", "run-2"),
            Started("run-3", "ingest", 9),
            Ended("run-3", "DataLost", 1, "gone: read the others"),
        ),
    ),
    "a run that ends by no known reason": (
        Kind.UNBOUNDED_END,
        swap_type(Ended, lambda e: replace(e, reason="KeyError")),
    ),
}
