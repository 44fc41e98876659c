"""A stranger without the key sends sealed chunks again, with whatever the seal does not bind: nothing comes of it."""

from __future__ import annotations

import pytest

from tests.builders.records import Letter, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.chunk_header import chunk_crc, encode_headers
from wavestitch.contracts.chunk_proof import Bound, ChunkProof
from wavestitch.contracts.quantities import Partition
from wavestitch.producers.chunking import cut_recording
from wavestitch.producers.recording import Recording

NOW = 1_767_614_400_000
META = metadata(NOW).decode()
PROOF = ChunkProof("mac", b"k" * 32, "waves")
STREAM = make_stream(proof="mac", proof_key="env:WAVESTITCH_PROOF_ECG")
SAMPLES = b"\1\0" * 100 + b"\2\0" * 100


def sealed(*, digest: bool) -> list[Letter]:
    cut = cut_recording(Recording("w", META, SAMPLES), 200, proof=PROOF)
    if digest:
        return [Letter(r.key, r.headers, bytes(r.value)) for r in cut]
    said = [
        encode_headers(
            waveform_id="w", seq=n, count=len(cut), meta=META, value=bytes(r.value), digest=None, proof=PROOF
        )
        for n, r in enumerate(cut)
    ]
    return [Letter(r.key, tuple(h), bytes(r.value)) for r, h in zip(cut, said, strict=True)]


def with_digest(one: Letter, *, crc: bool) -> Letter:
    """A made-up digest is put in, and where asked the CRC, which needs no key."""
    h = {**dict(one.headers), "ws-digest": b"0" * 32}
    if crc:
        bound = Bound(one.key or b"", *(h[n] or b"" for n in ("ws-seq", "ws-count", "ws-meta", "ws-digest")))
        h["ws-crc"] = b"%08x" % chunk_crc(bound, one.value or b"")
    return one._replace(headers=tuple(h.items()))


def stranger(true: list[Letter]) -> list[tuple[str, int, Letter]]:
    """What he sends: a name, the record time, the record."""
    return [
        ("the same", NOW, true[0]),
        ("from 1970", 1, true[0]),
        ("all from 1970", 1, true[-1]),
        ("far in the future", NOW + 10**12, true[0]),
        ("another digest", NOW, with_digest(true[0], crc=False)),
        ("another digest and its CRC", NOW, with_digest(true[0], crc=True)),
        ("another digest in the last", NOW, with_digest(true[-1], crc=True)),
    ]


@pytest.mark.parametrize("digest", [True, False])
@pytest.mark.parametrize("partition", [0, 1])
@pytest.mark.parametrize("which", range(len(stranger(sealed(digest=True)))))
def test_what_a_stranger_sends_again_blocks_nothing(digest: bool, partition: int, which: int) -> None:
    true = sealed(digest=digest)
    log = FakeLog("waves", 2)
    bench = Bench(log, proof=PROOF)
    for one in true[:1]:
        log.append(Partition(1), NOW, *one)
    _, at, again = stranger(true)[which]
    log.append(Partition(partition), at, *again)
    for one in true[1:]:
        log.append(Partition(1), NOW, *one)
    run_batch(bench, STREAM, PlanRequest(), clock_ms=NOW + 1000)
    assert [row.samples for _, row in bench.tables.rows] == [SAMPLES]
    assert {h.held.reason.value for h in bench.tables.held_rows()} <= {"corrupt", "forged"}


@pytest.mark.parametrize("at", [1, NOW + 10**12])
def test_a_repeat_does_not_change_how_long_an_open_waveform_waits(at: int) -> None:
    true = sealed(digest=True)
    log = FakeLog("waves", 2)
    bench = Bench(log, proof=PROOF)
    log.append(Partition(1), NOW, *true[0])
    log.append(Partition(0), at, *true[0])
    run_batch(bench, STREAM, PlanRequest(), clock_ms=NOW + 1000)
    assert [h.held.chunk.timestamp_ms for h in bench.tables.held_rows()] == [NOW]
    assert [h.held.reason.value for h in bench.tables.held_rows()] == ["open"]
