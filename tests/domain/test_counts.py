"""How many chunks a waveform has: bound by the CRC, taught by a repeat, never forgotten, never believed twice."""

from __future__ import annotations

import xxhash

from tests.builders.records import Letter, letter, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import BatchDone
from wavestitch.contracts.quantities import Partition

CLOCK_MS = 1_767_614_400_000
META = metadata(CLOCK_MS)
STREAM = make_stream()
VALUES = [bytes([n, 0]) * 4 for n in range(10)]
WHOLE = b"".join(VALUES[:3])


def one(seq: int, count: int | None = None, digest: str | None = None) -> Letter:
    return letter("w", seq, VALUES[seq], meta=META, count=count, digest=digest)


def carried(*batches: list[Letter]) -> tuple[Bench, list[dict[str, int]]]:
    """Each list is sent and then read by a batch of its own; the bench, and what the batches counted."""
    bench, counts = Bench(FakeLog("waves", 1)), []
    for number, letters in enumerate(batches):
        for sent in letters:
            bench.log.append(Partition(0), CLOCK_MS + number, *sent)
        done = run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS + number)
        row = bench.tables.history[-1]
        assert isinstance(done, BatchDone)
        assert row.identity_balances
        counts.append({name: n for name, n in row.counts.items() if n and name not in ("planned", "read")})
    return bench, counts


def published(bench: Bench) -> list[bytes]:
    return [row.samples for _, row in bench.tables.rows]


def test_a_wrong_count_on_the_way_is_corruption_and_no_short_waveform() -> None:
    first = one(0, 10)
    lied = Letter(first.key, tuple((n, b"1" if n == "ws-count" else v) for n, v in first.headers), first.value)
    bench, _ = carried([lied], [one(seq, 10) for seq in range(1, 10)])
    assert published(bench) == []
    assert bench.tables.held_rows()[0].held.reason.value == "corrupt"


def test_a_last_chunk_repeated_with_its_count_teaches_it_in_one_batch() -> None:
    bench, counts = carried([one(0), one(1), one(2), one(2, 3)])
    assert published(bench) == [WHOLE]
    assert counts == [{"published": 3, "duplicate": 1}]


def test_a_last_chunk_repeated_with_its_count_teaches_it_in_a_later_batch() -> None:
    bench, counts = carried([one(0), one(1), one(2)], [one(2, 3)])
    assert published(bench) == [WHOLE]
    assert counts[-1] == {"carried_in": 3, "published": 3, "duplicate": 1}


def test_a_count_that_only_a_repeat_brought_is_there_batches_later() -> None:
    bench, counts = carried([one(0), one(2)], [one(2, 3)], [one(0)], [one(1)])
    assert published(bench) == [WHOLE]
    assert counts[1] == {"carried_in": 2, "carried_out": 3}
    assert counts[2] == {"carried_in": 3, "carried_out": 3, "duplicate": 1}
    assert counts[3] == {"carried_in": 3, "published": 3, "duplicate": 1}


def test_a_digest_that_only_a_repeat_brought_is_compared_batches_later() -> None:
    right, wrong = xxhash.xxh3_128_hexdigest(WHOLE), "0" * 32
    for digest, samples in ((right, [WHOLE]), (wrong, [])):
        bench, _ = carried([one(0, 3), one(2, 3)], [one(2, 3, digest)], [one(1, 3)])
        assert published(bench) == samples


def test_the_same_count_again_is_a_plain_duplicate() -> None:
    _, counts = carried([one(0), one(2)], [one(2, 3)], [one(2, 3), one(2)])
    assert counts[2] == {"carried_in": 3, "carried_out": 3, "duplicate": 2}


def test_two_counts_are_a_conflict_and_both_are_kept() -> None:
    bench, counts = carried([one(0), one(2, 3)], [one(2, 4)])
    assert published(bench) == []
    assert counts[-1] == {"carried_in": 2, "quarantined": 3}
    assert sorted(str(h.held.chunk.count) for h in bench.tables.held_rows() if h.payload) == ["3", "4", "None"]


def test_a_published_chunk_that_comes_again_with_another_count_is_a_conflict() -> None:
    bench, counts = carried([one(0, 3), one(1, 3), one(2, 3)], [one(0, 3), one(1), one(2, 4)])
    assert published(bench) == [WHOLE]
    assert counts[-1] == {"replay": 2, "quarantined": 1}
