"""What a promotion shows is what its batch makes of it: what it would make otherwise is passed over, by name, and what
stands beside it is done. The way out that is named is gone, and leads there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders.ranges import span
from tests.builders.records import metadata
from tests.builders.streams import make_stream
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.domain.test_promote import ids, preview, promote, redefined
from tests.domain.test_verify_skipped import rewound
from tests.fakes.batch import Carrying
from wavestitch.batch.promote import PromotionPreview
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits

FIRST, SECOND = (ChunkProof("mac", key * 32, "waves") for key in (b"1", b"2"))
BOTH = Carrying(failing={"g", "w"})


@pytest.fixture
def world() -> World:
    return World()


def by(world: World, proof: ChunkProof) -> None:
    said = {"proof": "none"} if proof is NO_PROOF else {"proof": "mac", "proof_key": "env:WAVESTITCH_PROOF_K"}
    world.stream, world.bench.proof = make_stream(**said), proof


def put(world: World, wid: str, seq: int, value: bytes, proof: ChunkProof = NO_PROOF, *, count: int = 2) -> None:
    meta = metadata(T).decode()
    headers = encode_headers(waveform_id=wid, seq=seq, value=value, proof=proof, count=count, meta=meta, digest=None)
    world.bench.log.append(Partition(0), T, wid.encode(), tuple(headers), value)


def published(world: World, proof: ChunkProof = NO_PROOF) -> None:
    by(world, proof)
    for wid in "gw":
        for seq, value in enumerate((ONE, TWO)):
            put(world, wid, seq, value, proof)
    world.ingest()
    assert ids(world) == ["g", "w"]


def skipped(world: World) -> None:
    """A copy that contradicts the row lies where no ingest is to read."""
    published(world)
    put(world, "w", 1, OTHER)
    rewound(world, "latest")
    for seq in range(2):
        put(world, "z", seq, ONE)
    world.ingest()


def junk_then(world: World) -> None:
    """It was no chunk when it was read, and is one by the definition of now."""
    published(world, FIRST)
    put(world, "w", 1, OTHER, SECOND)
    world.ingest()
    assert world.junk_counts() == {"forged": 1}
    by(world, NO_PROOF)


def to_be_read(world: World) -> None:
    published(world)
    put(world, "w", 1, OTHER)


def passed_over(shown: PromotionPreview) -> tuple[list[str], dict[str, str]]:
    return [i for i, *_ in shown.changes], dict(shown.passed_over)


def gone_back(world: World, to: int) -> None:
    log, tables = world.bench.log, world.bench.tables
    target = Target(offsets={Partition(0): Offset(to)})
    back = plan_rewind(world.stream, target, log=log, tables=tables, who="eve", why="to see")
    apply_rewind(world.stream, back, accept_skip=False, log=log, tables=tables)


@pytest.mark.parametrize("made", [skipped, junk_then])
def test_a_copy_that_no_ingest_comes_to_is_gone_back_to_and_decided_about(
    made: Callable[[World], None], world: World
) -> None:
    made(world)
    shown = preview(world, how=BOTH)
    why = (
        "a copy in partition 0 offset 4 contradicts its row, and is not held as a chunk: no ingest comes to it again; "
        "go back there with `wavestitch rewind ecg --to 0:4`, let an ingest read it, and decide about it first"
    )
    assert passed_over(shown) == (["g"], {"w": why})
    promote(world, shown, BOTH)
    assert world.held() == {"g": {"failed_expectation"}}
    gone_back(world, 4)
    world.ingest()
    assert world.held()["w"] == {"conflict"}
    with pytest.raises(Refused, match=r"nothing to promote; 'w': chunks of it are held as conflict; decide about"):
        preview(world, how=BOTH)
    world.decide(HeldAction.DISCARD, "w")
    promote(world, preview(world, how=BOTH), BOTH)
    assert world.held()["w"] == {"discarded", "failed_expectation"}


def test_one_that_an_ingest_is_still_to_read_is_left_to_it(world: World) -> None:
    to_be_read(world)
    end = world.bench.log.partitions[Partition(0)].end
    shown = preview(world, span(0, 0, end), how=BOTH)
    why = "a copy in partition 0 offset 4 contradicts its row; let an ingest read that, and decide about it first"
    assert passed_over(shown) == (["g"], {"w": why})
    promote(world, shown, BOTH)
    assert ids(world) == ["w"]


def test_what_is_held_from_a_record_that_is_no_chunk_any_more_may_contradict_what_is_read(world: World) -> None:
    by(world, FIRST)
    put(world, "w", 0, ONE, FIRST)
    for wid, first in (("w", OTHER), ("g", ONE)):
        for seq, value in enumerate((first, TWO)):
            put(world, wid, seq, value, SECOND)
    world.ingest()
    assert (world.held(), world.junk_counts()) == ({"w": {"open"}}, {"forged": 4})
    by(world, SECOND)
    shown = preview(world)
    assert passed_over(shown)[0] == ["g"]
    assert passed_over(shown)[1]["w"].startswith("a copy in partition 0 offset 1 contradicts what is held of it, and ")
    promote(world, shown)
    assert ids(world) == ["g"]
    gone_back(world, 1)
    world.ingest()
    assert (ids(world), world.held()) == (["g"], {"w": {"conflict"}})
    world.decide(HeldAction.PICK, "w", pick="last")
    assert world.published()["w"] == OTHER + TWO


def test_what_is_held_from_such_a_record_and_was_sent_again_as_it_was_is_promoted(world: World) -> None:
    by(world, FIRST)
    put(world, "w", 0, ONE, FIRST)
    for seq, value in enumerate((ONE, TWO)):
        put(world, "w", seq, value, SECOND)
    world.ingest()
    by(world, SECOND)
    promote(world, preview(world))
    assert (world.published(), world.held()) == ({"w": ONE + TWO}, {})


def test_what_says_another_count_than_the_one_that_is_held_is_passed_over_too(world: World) -> None:
    by(world, FIRST)
    put(world, "w", 0, ONE, FIRST, count=3)
    for wid in "wg":
        for seq, value in enumerate((ONE, TWO)):
            put(world, wid, seq, value, SECOND)
    world.ingest()
    by(world, SECOND)
    shown = preview(world)
    assert passed_over(shown)[0] == ["g"]
    assert passed_over(shown)[1]["w"].startswith("a copy in partition 0 offset 1 contradicts what is held of it, and ")
    promote(world, shown)


def test_nothing_is_kept_of_more_than_a_batch_may_read(world: World) -> None:
    published(world)
    redefined(world, limits=Limits(max_batch_records=2))
    with pytest.raises(Refused, match=r"the promote covers 4 offsets .* a batch may have 2 "):
        preview(world, how=BOTH)


@pytest.mark.parametrize("held", [True, False])
def test_what_a_copy_that_is_held_beyond_the_range_makes_plausible_is_not_taken_out(world: World, held: bool) -> None:
    """Nor is it offered: its batch would publish it again. A copy that is not held says nothing there."""
    for seq, value in enumerate((ONE, TWO)):
        world.send("w", seq, value, at=T + 10 * 86_400_000)
    world.ingest()
    assert world.held() == {"w": {"implausible_time"}}
    if held:
        world.decide(HeldAction.DISCARD, "w")
    world.send("w", 1, TWO)
    world.ingest()
    if held:
        world.decide(HeldAction.RESTORE, "w")
        world.decide(HeldAction.REDRIVE, "w")
    world.send("x", 0, ONE, count=1)
    world.ingest()
    assert ids(world) == ["w", "x"]
    if not held:
        shown = preview(world, span(0, 0, 2))
        assert passed_over(shown)[0] == ["w"]
        promote(world, shown)
        assert ids(world) == ["x"]
        return
    with pytest.raises(Refused, match=r"nothing to promote; 'w': .* \(nothing refuses it then\)"):
        preview(world, span(0, 0, 2))
