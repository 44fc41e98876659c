"""For every reason why something is held there is a decision that lets it out: enumerated, none is forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders.records import letter, metadata
from tests.conftest import ROOT
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.reasons import OF_RECORDS, Reason
from wavestitch.contracts.stream import Limits

OF_NO_WAVEFORM = OF_RECORDS | {Reason.UNREADABLE}
"""No waveform waits for these: they keep nothing back, and go with `maintain` (junk)."""


def whole(world: World, *, at: int = T, last: bytes = TWO, digest: str | None = None, **more: Any) -> None:
    meta = metadata(T, **more)
    world.bench.log.append(Partition(0), at, *letter("w", 0, ONE, meta=meta, count=2))
    world.bench.log.append(Partition(0), at, *letter("w", 1, last, meta=meta, count=2, digest=digest))


def make_open(world: World) -> None:
    world.send("w", 0, ONE)
    world.ingest()


def make_incomplete(world: World) -> None:
    make_open(world)
    world.send("v", 0, ONE, at=T + 10**7)
    world.now_ms = T + 10**7
    world.ingest()


def make_conflict(world: World) -> None:
    whole(world)
    world.send("w", 1, OTHER)
    world.ingest()


def make_too_large(world: World) -> None:
    world.stream = world.stream.model_copy(update={"limits": Limits(max_chunks=1)})
    whole(world)
    world.ingest()
    world.stream = world.stream.model_copy(update={"limits": Limits()})


def make_implausible(world: World) -> None:
    whole(world, at=T - 10**10)
    world.ingest()


def make_wrong_count(world: World) -> None:
    whole(world, sample_count=99)
    world.ingest()


def make_mismatch(world: World) -> None:
    whole(world, digest="0" * 32)
    world.ingest()


def make_misfit(world: World) -> None:
    world.bench.log.append(
        Partition(0), T, *letter("w", 0, ONE + TWO, meta=metadata(T, sample_format="f32le"), count=1)
    )
    world.ingest()
    world.stream = world.stream.model_copy(update={"samples": "float"})


def make_failed(world: World) -> None:
    whole(world)
    world.ingest(failing={"w"})


def make_parked(world: World) -> None:
    whole(world)
    world.ingest(park=True)


def make_discarded(world: World) -> None:
    make_parked(world)
    world.decide(HeldAction.DISCARD, "w")
    world.decide(HeldAction.RESTORE, "w")
    world.decide(HeldAction.DISCARD, "w")


Way = tuple[Callable[[World], None], HeldAction, str]
WAYS: dict[Reason, Way] = {
    Reason.OPEN: (make_open, HeldAction.DISCARD, ""),
    Reason.INCOMPLETE: (make_incomplete, HeldAction.DISCARD, ""),
    Reason.CONFLICT: (make_conflict, HeldAction.PICK, "first"),
    Reason.TOO_LARGE: (make_too_large, HeldAction.REDRIVE, ""),
    Reason.IMPLAUSIBLE_TIME: (make_implausible, HeldAction.ACCEPT, ""),
    Reason.WRONG_SAMPLE_COUNT: (make_wrong_count, HeldAction.ACCEPT, ""),
    Reason.DIGEST_MISMATCH: (make_mismatch, HeldAction.ACCEPT, ""),
    Reason.MISFIT: (make_misfit, HeldAction.REDRIVE, ""),
    Reason.FAILED_EXPECTATION: (make_failed, HeldAction.ACCEPT, ""),
    Reason.PARKED: (make_parked, HeldAction.REDRIVE, ""),
    Reason.DISCARDED: (make_discarded, HeldAction.RESTORE, ""),
}


def test_every_reason_has_a_way_out_here() -> None:
    assert set(WAYS) == set(Reason) - OF_NO_WAVEFORM


@pytest.mark.parametrize("reason", WAYS)
def test_operations_name_the_way_that_is_tried_here(reason: Reason) -> None:
    (row,) = re.findall(rf"^\| `{reason}` \|.*$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert f"`{WAYS[reason][1]}`" in row


def test_the_chunk_contract_names_every_reason() -> None:
    text = (ROOT / "docs" / "chunk-contract.md").read_text()
    assert [r for r in Reason if f"`{r}`" not in text] == []


@pytest.mark.parametrize("reason", WAYS)
def test_a_decision_lets_it_out(reason: Reason) -> None:
    world = World()
    make, action, pick = WAYS[reason]
    make(world)
    assert reason.value in world.held()["w"]
    world.decide(action, "w", pick=pick)
    if action is HeldAction.DISCARD:
        assert world.held()["w"] == {"discarded"}
    elif action is HeldAction.RESTORE:
        assert world.held()["w"] == {"parked"}
    else:
        assert world.published()["w"] == ONE + TWO


def test_nobody_accepts_samples_that_have_no_place_in_the_table() -> None:
    world = World()
    make_misfit(world)
    with pytest.raises(Refused, match="widen `samples`, and redrive it"):
        world.decide(HeldAction.ACCEPT, "w")
    assert world.held()["w"] == {"misfit"}


def test_no_redrive_is_offered_for_bytes_that_stay_other_than_their_digest() -> None:
    world = World()
    make_mismatch(world)
    with pytest.raises(Refused, match="accept publishes them"):
        world.decide(HeldAction.REDRIVE, "w")
    assert world.held()["w"] == {"digest_mismatch"}
