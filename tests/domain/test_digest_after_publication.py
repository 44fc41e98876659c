"""A `ws-digest` is about what is yet to be published: once it is, the bytes of each chunk are what counts."""

from __future__ import annotations

import pytest

from tests.builders.sending import send_chunk
from tests.domain.held_world import ONE, TWO, T, World
from wavestitch.contracts.held_choice import HeldAction

WRONG = "0" * 32


def send_last(world: World, digest: str | None) -> None:
    send_chunk(world.bench.log, "w", 1, TWO, at_ms=T, start_ms=T, count=2, digest=digest)


def replays(world: World) -> int:
    return max(world.bench.tables.batches(), key=lambda row: row.sequence).counts["replay"]


@pytest.mark.parametrize("first", [None, WRONG], ids=["none was sent", "an operator vouched for the bytes"])
def test_a_repeat_that_says_another_digest_of_a_published_waveform_is_a_replay(first: str | None) -> None:
    world = World()
    world.send("w", 0, ONE)
    send_last(world, first)
    world.ingest()
    if first is not None:
        assert world.held() == {"w": {"digest_mismatch"}}
        world.decide(HeldAction.ACCEPT, "w")
    assert sorted(world.published()) == ["w"]
    send_last(world, WRONG)
    world.ingest()
    assert (world.held(), replays(world)) == ({}, 1)


def test_before_it_is_published_the_same_word_is_a_conflict() -> None:
    world = World()
    send_last(world, "1" * 32)
    world.ingest()
    send_last(world, WRONG)
    world.send("w", 0, ONE)
    world.ingest()
    assert world.held() == {"w": {"conflict"}}
