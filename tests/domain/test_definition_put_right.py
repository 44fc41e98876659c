"""A stream's definition was wrong for a while, and records were refused for it: once it is put right, a backfill finds
them, since no note of a batch says more than that batch could know.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.records import letter, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.backfill import run_backfill, step_plan_backfill
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.contracts import start_times
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import Partition

HOUR = 3_600_000
NOW_MS = 1_767_614_400_000
THE_HOUR = Scope((NOW_MS - HOUR) * 1_000_000, (NOW_MS + HOUR) * 1_000_000)
MAC = ChunkProof("mac", b"the key of the producers", "waves")
WRONG = ChunkProof("mac", b"another one, by mistake", "waves")
KEYED = {"proof": "mac", "proof_key": "env:WAVESTITCH_PROOF_WAVES"}
PLAIN: dict[str, Any] = {"proof": "none", "id_partitions": None}
RIGHT: dict[str, tuple[dict[str, Any], ChunkProof]] = {"proof": (PLAIN, NO_PROOF), "key": (KEYED, MAC)}
CASES: dict[str, tuple[dict[str, Any], ChunkProof, str]] = {
    "a proof that nobody sends": ({"proof": "sha256"}, ChunkProof("sha256", topic="waves"), "proof"),
    "another key": (KEYED, WRONG, "key"),
    "other partitions": ({"id_partitions": {"prefixes": {"w": [1]}}}, NO_PROOF, "proof"),
}


def archive(sealed: ChunkProof) -> Bench:
    """Three waveforms, and what is no chunk for whoever reads it."""
    bench = Bench(FakeLog("waves", 2))
    for n in range(3):
        meta = metadata(NOW_MS).decode()
        said = encode_headers(waveform_id=f"w{n}", seq=0, count=1, meta=meta, value=b"\1\0", digest=None, proof=sealed)
        bench.log.append(Partition(0), NOW_MS, f"w{n}".encode(), said, b"\1\0")
    return bench


def published_after(bench: Bench, case: str, *, limits: dict[str, Any]) -> list[str]:
    """What is published once the definition is put right and the hour is backfilled."""
    wrong, key, right = CASES[case]
    bench.proof = key
    run_batch(FakeEdges(bench, make_stream(limits=limits, **wrong), NOW_MS, Carrying()), RunOptions(), watcher=Silent())
    assert bench.tables.rows == []
    known, bench.proof = RIGHT[right]
    edges = FakeEdges(bench, make_stream(limits=limits, **known), NOW_MS, Carrying())
    run_backfill(edges, THE_HOUR, RunOptions(), watcher=Silent())
    return sorted(row.waveform_id for _, row in bench.tables.rows)


@pytest.mark.parametrize("limits", [{}, {"max_junk_bytes": 1}], ids=["held", "held without bytes"])
@pytest.mark.parametrize("case", CASES)
def test_what_was_refused_by_a_wrong_definition_is_found_by_a_backfill(case: str, limits: dict[str, Any]) -> None:
    assert published_after(archive(RIGHT[CASES[case][2]][1]), case, limits=limits) == ["w0", "w1", "w2"]


@pytest.mark.parametrize("case", CASES)
def test_a_note_that_believes_what_was_refused_then_hides_it(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_times, "MAY_BE_CHUNKS", frozenset())
    assert published_after(archive(RIGHT[CASES[case][2]][1]), case, limits={}) == []


def test_what_is_no_chunk_under_any_definition_makes_nobody_read_its_block_again() -> None:
    bench = archive(NO_PROOF)
    bench.log.append(Partition(1), NOW_MS, None, [("somebody", b"else")], b"something")
    bench.log.append(Partition(1), NOW_MS, *letter("x", 0, b"\1\0", meta=metadata(NOW_MS), count=1)[:2], b"\7\7")
    edges = FakeEdges(bench, make_stream(), NOW_MS, Carrying())
    run_batch(edges, RunOptions(), watcher=Silent())
    later = Scope(THE_HOUR.end_ns, THE_HOUR.end_ns + HOUR * 1_000_000)
    assert step_plan_backfill(edges, later, apply=False).offsets == 0
