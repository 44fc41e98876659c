"""Rows whose records are no chunks by the definition any more: a promotion leaves them, and verify knows them."""

from __future__ import annotations

import pytest

from tests.builders.records import metadata
from tests.builders.streams import make_stream
from tests.domain.held_world import ONE, TWO, T, World
from tests.domain.test_promote import edges, ids, preview, promote
from tests.domain.test_verify_range import found, verify
from tests.fakes.batch import Carrying
from wavestitch.batch.held_approval import begin_approved
from wavestitch.batch.promote import carry_promotion
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.verification import Agreement

FIRST, SECOND = (ChunkProof("mac", key * 32, "waves") for key in (b"1", b"2"))


@pytest.fixture
def world() -> World:
    world = World()
    world.stream = make_stream(proof="mac", proof_key="env:WAVESTITCH_PROOF_K")
    world.bench.proof = FIRST
    return world


def sealed(world: World, wid: str, key: ChunkProof, *, of: tuple[int, ...] = (0, 1)) -> None:
    for seq in of:
        value = (ONE, TWO)[seq]
        said = {"count": 2, "meta": metadata(T).decode(), "digest": None}
        headers = encode_headers(waveform_id=wid, seq=seq, value=value, proof=key, **said)  # type: ignore[arg-type]
        world.bench.log.append(Partition(0), T, wid.encode(), tuple(headers), value)


def test_what_would_be_held_as_no_chunk_is_not_taken_out(world: World) -> None:
    """Maintenance lets such records go, and no decision publishes them again."""
    for wid in ("v", "w"):
        sealed(world, wid, FIRST)
    world.ingest()
    world.bench.proof = SECOND
    with pytest.raises(Refused, match=r"nothing to promote; 'v': partition 0 offset 0 \(forged\) is no chunk by the"):
        preview(world)
    sealed(world, "v", SECOND)
    world.ingest()
    failing = Carrying(failing={"v", "w"})
    shown = preview(world, how=failing)
    assert ([i for i, *_ in shown.changes], [i for i, _ in shown.passed_over]) == (["v"], ["w"])
    promote(world, shown, failing)
    assert (ids(world), world.held()) == (["w"], {"v": {"failed_expectation"}})


def test_nor_where_the_log_was_written_anew_by_somebody_without_the_key_since_it_was_shown(world: World) -> None:
    sealed(world, "w", FIRST)
    world.ingest()
    failing = Carrying(failing={"w"})
    shown = preview(world, how=failing)
    world.bench.log.truncate(Partition(0), Offset(0))
    sealed(world, "w", SECOND)
    mine = edges(world, failing)
    with pytest.raises(Refused, match=r"1 of these 1 waveforms are not what was shown any more, first w "):
        carry_promotion(mine, begin_approved(mine, shown.plan.plan_id, by="bob"))
    assert ids(world) == ["w"]


def test_a_row_of_chunks_from_before_and_after_another_key_is_the_same(world: World) -> None:
    sealed(world, "w", FIRST, of=(0,))
    world.ingest()
    world.bench.proof = SECOND
    sealed(world, "w", SECOND)
    world.ingest()
    assert [[c.offset for c in row.chunks] for _, row in world.bench.tables.rows] == [[0, 2]]
    assert found(verify(world)) == {"w": Agreement.SAME}
    with pytest.raises(Refused, match="nothing to promote"):
        preview(world)


def test_what_lies_there_and_says_that_it_is_another_chunk_is_not_its_own(world: World) -> None:
    sealed(world, "w", FIRST, of=(0,))
    sealed(world, "x", FIRST)
    world.ingest()
    sealed(world, "w", FIRST)
    world.ingest()
    world.bench.log.truncate(Partition(0), Offset(0))
    sealed(world, "w", SECOND, of=(1,))
    for wid in ("x", "w"):
        sealed(world, wid, FIRST)
    assert found(verify(world))["w"] is Agreement.DIFFERS
