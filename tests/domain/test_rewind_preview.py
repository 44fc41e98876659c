"""What was previewed is what is done: the same offsets, in the same generation, whatever an ingest did in between."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.preview_answer import reject_preview
from wavestitch.batch.rewind_preview import apply_preview, preview_rewind
from wavestitch.contracts.errors import BadInput, Refused, Transient
from wavestitch.contracts.position import GroupOffset
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.rewind_preview import PREVIEWS

START_MS = 1_767_614_400_000
STREAM = make_stream()


def bench_with(records: int, partitions: int = 1) -> Bench:
    bench = Bench(FakeLog("waves", partitions))
    send(bench, range(records), partitions)
    return bench


def send(bench: Bench, numbers: range, partitions: int = 1) -> None:
    for n in numbers:
        send_chunk(bench.log, f"w{n}", at_ms=START_MS + n * 1000, partition=n % partitions)


def edges(bench: Bench, stream=STREAM) -> FakeEdges:
    return FakeEdges(bench, stream, START_MS + 60_000, Carrying())


def ingest(bench: Bench) -> None:
    run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS)


def preview(bench: Bench, to: str, partitions: str | None = None):
    return preview_rewind(edges(bench), to, partitions, who="ann", why="to see")


def positions(bench: Bench) -> dict[int, int]:
    return {p: at.next_offset for p, at in bench.tables.head().positions.items()}


def rewind(bench: Bench, to: str, **accepted: bool) -> int:
    return apply_preview(edges(bench), preview(bench, to), by="bob", **accepted).sequence


def test_a_preview_moves_nothing_and_says_of_each_partition_what_would_happen() -> None:
    bench = bench_with(8, partitions=2)
    ingest(bench)
    before = bench.tables.head()
    found = preview(bench, "0:1", None)
    assert bench.tables.head() == before
    (row,) = found.rows
    assert (row.partition, row.current, row.target, row.log_start, row.log_end, row.again) == (0, 4, 1, 0, 4, 3)
    assert row.back_ms == 4000
    assert row.published == 3
    assert row.bytes is not None
    assert (found.waveforms, found.batches) == (8, 1)


def test_a_preview_is_written_once_and_its_id_is_its_content() -> None:
    bench = bench_with(3)
    ingest(bench)
    found = preview(bench, "earliest")
    assert edges(bench).preview(found.preview_id) == found
    assert PREVIEWS.read(PREVIEWS.text(found)) == found
    assert dataclasses.replace(found, targets={0: 2}).preview_id != found.preview_id
    with pytest.raises(BadInput, match="no preview"):
        edges(bench).preview("0" * 32)


def test_an_ingest_in_between_does_not_void_it_and_the_previewed_offsets_are_where_it_goes() -> None:
    bench = bench_with(4)
    ingest(bench)
    found = preview(bench, "shift:-2")
    assert found.targets == {0: 2}
    send(bench, range(4, 9))
    ingest(bench)
    assert positions(bench) == {0: 9}
    head = apply_preview(edges(bench), found, by="bob")
    assert positions(bench) == {0: 2}
    assert head.note == "rewind to shift:-2 by ann, approved by bob: to see"
    published = [row.waveform_id for _, row in bench.tables.rows]
    ingest(bench)
    assert [row.waveform_id for _, row in bench.tables.rows] == published, "what was published was published again"


def test_a_commit_at_the_very_moment_is_decided_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with(4)
    ingest(bench)
    found = preview(bench, "earliest")
    real, others = bench.tables.commit, [range(4, 6)]

    def commit(*given, **more):
        if others:
            send(bench, others.pop())
            ingest(bench)
        return real(*given, **more)

    monkeypatch.setattr(bench.tables, "commit", commit)
    apply_preview(edges(bench), found, by="bob")
    assert positions(bench) == {0: 0}


def test_another_rewind_makes_it_void() -> None:
    bench = bench_with(4)
    ingest(bench)
    found = preview(bench, "earliest")
    rewind(bench, "shift:-1")
    with pytest.raises(Refused, match="the preview is void: somebody rewound since: generation 1 is 2 now"):
        apply_preview(edges(bench), found, by="bob")
    assert positions(bench) == {0: 3}


def test_what_was_rejected_is_done_by_nobody_and_the_first_word_counts() -> None:
    bench = bench_with(4)
    ingest(bench)
    found = preview(bench, "earliest")
    assert reject_preview(edges(bench), found.preview_id, by="bob", why="not today").who == "bob"
    assert reject_preview(edges(bench), found.preview_id, by="eve").who == "bob"
    with pytest.raises(Refused, match=r"was rejected by bob \(not today\), which stands. Nothing was changed"):
        apply_preview(edges(bench), found, by="eve")
    assert positions(bench) == {0: 4}
    other = preview(bench, "shift:-1")
    apply_preview(edges(bench), other, by="eve")
    assert positions(bench) == {0: 3}, "of others nothing was said"


def test_a_preview_that_is_too_old_or_of_a_clock_far_ahead_is_done_by_nobody() -> None:
    bench = bench_with(4)
    ingest(bench)
    found = preview(bench, "earliest")
    week = 7 * 86_400_000
    late = FakeEdges(bench, STREAM, START_MS + 60_000 + week + 1, Carrying())
    with pytest.raises(Refused, match=r"older than 604800 s \(\[maintain\] previews\)"):
        apply_preview(late, found, by="bob")
    early = FakeEdges(bench, STREAM, START_MS + 60_000 - week - 1, Carrying())
    with pytest.raises(Refused, match=r"of 2026-01-05 12:01:00Z, which is ahead of this clock by more than 604800 s"):
        apply_preview(early, found, by="bob")
    assert positions(bench) == {0: 4}
    apply_preview(FakeEdges(bench, STREAM, START_MS + 60_000 + week, Carrying()), found, by="bob")
    assert positions(bench) == {0: 0}


def test_a_skip_is_done_only_as_it_was_shown_and_accepted() -> None:
    bench = bench_with(6)
    run_batch(bench, STREAM, PlanRequest(until={Partition(0): Offset(2)}), clock_ms=START_MS)
    found = preview(bench, "0:5")
    assert found.skipped == (span(0, 2, 5),)
    with pytest.raises(Refused, match="this would skip"):
        apply_preview(edges(bench), found, by="bob")
    # An ingest in between makes the skip smaller: that is no other one.
    run_batch(bench, STREAM, PlanRequest(until={Partition(0): Offset(3)}), clock_ms=START_MS)
    apply_preview(edges(bench), found, by="bob", accept_skip=True)
    assert bench.tables.head().skipped == (span(0, 3, 5),)


def test_a_target_that_retention_took_since_is_refused_and_nothing_moves() -> None:
    bench = bench_with(4)
    ingest(bench)
    found = preview(bench, "earliest")
    bench.log.retain_from(Partition(0), Offset(2))
    with pytest.raises(Refused, match="offset 0 of partition 0 is not in the log"):
        apply_preview(edges(bench), found, by="bob")
    assert positions(bench) == {0: 4}


def test_undo_goes_back_to_where_the_stream_stood_also_after_later_ingests() -> None:
    bench = bench_with(6, partitions=2)
    ingest(bench)
    done = rewind(bench, "0:1")
    run_batch(bench, STREAM, PlanRequest(until={Partition(0): Offset(2)}), clock_ms=START_MS)
    assert positions(bench)[0] == 2
    rewind(bench, f"undo:{done}", accept_skip=True)
    assert positions(bench) == {0: 3, 1: 3}
    # And an undo is undone as any rewind is.
    rewind(bench, f"undo:{bench.tables.head().sequence}")
    assert positions(bench) == {0: 2, 1: 3}


@pytest.mark.parametrize(
    ("to", "stands"),
    [
        *(("head", (3, 3)), ("undo:2", (0, 0)), ("1:earliest,0:1", (1, 0)), ("0:1", (1, 3))),
        *(("earliest", (0, 0)), ("shift:-1", (2, 2)), ("previous", (0, 0)), ("new-topic", (0, 0))),
        ("2026-01-01T00:00:00Z", (0, 0)),
    ],
)
def test_a_partition_that_a_broker_does_not_show_yet_is_waited_for(to: str, stands: tuple[int, int]) -> None:
    bench = bench_with(6, partitions=2)
    ingest(bench)
    bench.log.group[Partition(0)] = GroupOffset(Offset(1), "by another tool")
    bench.log.lag(9, shows=1)
    with pytest.raises(Transient, match="shows no partition 1 of topic waves, which the head has"):
        rewind(bench, to)
    bench.log.lag(0, shows=0)
    rewind(bench, to)
    assert positions(bench) == dict(enumerate(stands))


def test_to_begin_anew_waits_for_no_partition_which_the_topic_may_never_have_again() -> None:
    """Brokers were put back from a backup of before it was added."""
    bench = bench_with(6, partitions=2)
    ingest(bench)
    bench.log.lag(99, shows=1)
    assert ["the broker shows no partition 1" in said for said in preview(bench, "start-over").remarks] == [True]
    rewind(bench, "start-over", accept_skip=True)
    assert positions(bench) == {0: 0}
    ingest(bench)
    assert positions(bench) == {0: 3}


def test_a_topic_that_was_made_anew_with_fewer_partitions_forgets_none() -> None:
    bench = bench_with(6, partitions=2)
    ingest(bench)
    bench.log.recreate(1)
    assert not [said for said in preview(bench, "new-topic").remarks if "shows no partition" in said]


def test_what_was_given_up_of_a_partition_that_is_forgotten_is_given_up_no_more() -> None:
    """It is read from its beginning where it is shown again."""
    bench = bench_with(6, partitions=2)
    ingest(bench)
    send(bench, range(6, 12), 2)
    rewind(bench, "latest", accept_skip=True)
    assert {r.partition for r in bench.tables.head().skipped} == {0, 1}
    bench.log.lag(99, shows=1)
    rewind(bench, "start-over", accept_skip=True)
    bench.log.lag(0, shows=0)
    ingest(bench)
    assert bench.tables.head().skipped == ()
    assert set(bench.tables.published({f"w{n}" for n in range(12)})) == {f"w{n}" for n in range(12)}


def test_a_stream_is_rewound_to_where_a_batch_began() -> None:
    bench = bench_with(3)
    ingest(bench)
    send(bench, range(3, 5))
    ingest(bench)
    plan_id = bench.tables.head().plan_id
    send(bench, range(5, 7))
    ingest(bench)
    rewind(bench, f"before:{plan_id[:8]}")
    assert positions(bench) == {0: 3}


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("undo:99", "head 99, or the one before it, is not among those that are kept"),
        ("undo:1", "head 1, or the one before it"),
        ("before:abcd", "0 batches whose heads are kept begin with 'abcd'"),
        ("shift", "is not a place to go"),
    ],
)
def test_a_place_that_is_not_there_is_refused(to: str, words: str) -> None:
    bench = bench_with(2)
    ingest(bench)
    with pytest.raises((Refused, BadInput), match=words):
        preview(bench, to)


def test_a_shift_ends_where_the_log_does() -> None:
    bench = bench_with(5)
    ingest(bench)
    bench.log.retain_from(Partition(0), Offset(2))
    assert preview(bench, "shift:-100").targets == {0: 2}
    with pytest.raises(Refused, match="nothing would move: --to shift:100 names where it stands already"):
        preview(bench, "shift:100")
    assert preview(bench, "0:shift:-1").targets == {0: 4}


def test_where_the_stream_wants_another_person_the_one_who_asked_does_not_approve() -> None:
    bench = bench_with(2)
    ingest(bench)
    found = preview(bench, "earliest")
    strict = edges(bench, make_stream(rewind_approval="other"))
    before = bench.tables.head()
    for same in ("ann", ""):
        with pytest.raises(Refused, match="rewind_approval: other"):
            apply_preview(strict, found, by=same)
    assert bench.tables.head() == before
    assert apply_preview(strict, found, by="bob").generation == found.generation + 1
