"""What was held before a stream asked for a proof, or bound its ids, is not believed: it harms no owner, and waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.records import letter, metadata
from tests.builders.streams import make_stream
from tests.builders.table_rows import all_held, facts, held_row, hold
from tests.domain.held_world import T, World
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.guarantees import NoDuplicates
from tests.guarantees_of_runs import Fenced
from wavestitch.batch.held_decision import plan_held
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.chunk_proof import ChunkProof, meets
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.id_partitions import IdPartitions
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.stream_tables import StreamTables

PROOF = ChunkProof("mac", b"k" * 32, "waves")
MAC = make_stream(proof="mac", proof_key="env:WAVESTITCH_PROOF_K")
BOUND = make_stream(id_partitions=IdPartitions(prefixes={"w": (1,)}))
META = metadata(T)
OWN, EVIL = (b"\1\0" * 9, b"\2\0" * 9), b"\7\0" * 9


class Strengthened(World):
    """A stream of two partitions that asks for more than it did. The guarantees know no change of a definition: of them
    those are asked that do not look at what a record is. What is held is counted after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(FakeLog("waves", 2))
        self.guarantees: tuple[Any, ...] = (NoDuplicates(), Fenced())

    def strange(self, seq: int, value: bytes = EVIL) -> None:
        self.bench.log.append(Partition(0), T, *letter("w", seq, value, meta=META, count=2))

    def own(self, *seqs: int) -> None:
        for seq in seqs:
            self.sealed(seq, OWN[seq], count=2)

    def sealed(self, seq: int, value: bytes, *, count: int | None) -> None:
        said = {"count": count, "meta": META.decode(), "digest": None}
        headers = encode_headers(waveform_id="w", seq=seq, value=value, proof=self.bench.proof, **said)  # type: ignore[arg-type]
        self.bench.log.append(Partition(1), T, b"w", tuple(headers), value)

    def ask_for(self, stream: Stream) -> None:
        self.stream, self.bench.proof = stream, PROOF if stream.proof == "mac" else ChunkProof()


@pytest.fixture
def world() -> Strengthened:
    return Strengthened()


@pytest.mark.parametrize("stream", [MAC, BOUND], ids=["proof", "ids"])
@pytest.mark.parametrize("how", [{}, {"park": True}], ids=["open", "parked"])
def test_a_stranger_s_chunk_from_before_is_no_conflict_for_the_owner(
    world: Strengthened, stream: Stream, how: dict[str, bool]
) -> None:
    for seq in (0, 1) if how else (0,):
        world.strange(seq)
    world.ingest(**how)
    world.ask_for(stream)
    world.own(0)
    world.ingest()
    assert world.published() == {}
    world.own(1)
    world.ingest()
    assert world.published() == {"w": OWN[0] + OWN[1]}
    assert "conflict" not in world.held()["w"]


@pytest.mark.parametrize("stream", [MAC, BOUND], ids=["proof", "ids"])
@pytest.mark.parametrize("action", [HeldAction.REDRIVE, HeldAction.ACCEPT])
def test_no_decision_publishes_it_and_it_can_be_let_go_and_come_back(
    world: Strengthened, stream: Stream, action: HeldAction
) -> None:
    world.strange(0)
    world.strange(1)
    world.ingest(failing={"w"})
    world.ask_for(stream)
    with pytest.raises(Refused, match="'w' is not believed by the stream's present definition"):
        world.decide(action, "w")
    (one,) = select_held(world.bench.tables, stream, Selection())
    assert one.verdict(stream)[0] is Reason.UNPROVEN
    world.decide(HeldAction.DISCARD, "w")
    world.decide(HeldAction.RESTORE, "w")
    with pytest.raises(Refused, match="is not believed"):
        world.decide(action, "w")
    world.ask_for(make_stream())
    with pytest.raises(Refused, match="its definition says nothing any more of"):
        world.decide(action, "w")
    world.ask_for(make_stream(proof="none", id_partitions=None))
    world.decide(action, "w")
    assert world.published() == {"w": EVIL * 2}


def test_a_decision_that_was_planned_before_publishes_nothing_of_it(world: Strengthened) -> None:
    """The plan has the definition that it was made by: a later one is a later plan's."""
    world.strange(0)
    world.own(0)
    world.ingest()
    world.ask_for(MAC)
    edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
    with pytest.raises(Refused, match="is not believed"):
        plan_held(edges, HeldAction.PICK, Selection(ids=("w",)), who="ops", why="first come", pick="first")


def test_the_owner_s_own_chunks_count_again_once_they_are_read_with_their_proof(world: Strengthened) -> None:
    """They were sealed all along, and nobody had asked."""
    world.bench.proof = PROOF
    world.own(0)
    world.bench.proof = ChunkProof()
    world.ingest()
    world.ask_for(MAC)
    world.own(1)
    world.ingest()
    assert world.published() == {}
    read_again(world)
    assert world.published() == {"w": OWN[0] + OWN[1]}
    assert world.held() == {}


def read_again(world: Strengthened) -> None:
    log, tables = world.bench.log, world.bench.tables
    rewound = plan_rewind(MAC, Target("earliest"), log=log, tables=tables, who="ops", why="sealed all along")
    apply_rewind(MAC, rewound, accept_skip=False, log=log, tables=tables)
    world.ingest()


def test_one_that_is_read_again_where_its_bytes_were_discarded_meanwhile_is_counted_as_it_is_held(
    world: Strengthened,
) -> None:
    """It was held for another reason before, whether that is believed or not."""
    world.bench.proof = PROOF
    world.sealed(0, OWN[0], count=2)
    world.bench.proof = ChunkProof()
    world.ingest()
    world.ask_for(MAC)
    world.sealed(0, OWN[0], count=None)
    world.sealed(0, EVIL, count=None)
    world.ingest()
    world.decide(HeldAction.PICK, "w", pick="1:2")
    read_again(world)
    assert dict(world.mark().counts) == {"discarded": 2, "open": 1}


def test_the_same_bytes_sent_again_with_their_proof_release_those_from_before(world: Strengthened) -> None:
    world.strange(0, OWN[0])
    world.ingest()
    world.ask_for(MAC)
    world.own(0, 1)
    world.ingest()
    assert world.published() == {"w": OWN[0] + OWN[1]}
    assert world.held() == {}


def test_what_was_proven_once_stays_so_whatever_is_decided_of_it(world: Strengthened) -> None:
    world.ask_for(MAC)
    world.own(0)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    world.decide(HeldAction.RESTORE, "w")
    assert {r.held.proof for r in world.bench.tables.held_rows()} == {"mac"}
    world.own(1)
    world.ingest()
    assert world.published() == {"w": OWN[0] + OWN[1]}


def test_what_an_operator_discarded_before_stays_discarded(world: Strengthened) -> None:
    world.bench.proof = PROOF
    world.own(0, 1)
    world.bench.proof = ChunkProof()
    world.ingest(park=True)
    world.decide(HeldAction.DISCARD, "w")
    world.ask_for(MAC)
    world.own(0, 1)
    world.ingest()
    assert world.published() == {}
    assert world.held() == {"w": {"discarded"}}


def test_a_stronger_proof_is_as_good_as_a_weaker_one_and_not_the_other_way() -> None:
    kinds = ("none", "sha256", "mac")
    met = [(a, b) for a in kinds for b in kinds if meets(a, b)]  # type: ignore[arg-type]
    assert met == [(a, b) for i, a in enumerate(kinds) for b in kinds[: i + 1]]


def test_the_table_keeps_which_proof_it_was(tmp_path: Path) -> None:
    tables = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    row = held_row(facts(0, 0, b"?"), landing=None, row=0)
    object.__setattr__(row.held, "proof", "mac")
    hold(tables, [row])
    (found,) = all_held(tables)
    assert found.proof == "mac"
