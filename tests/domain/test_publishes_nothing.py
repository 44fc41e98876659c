"""Over the edges of whoever only compares nothing of the stream can be changed, whatever goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.domain.held_world import World, parked
from tests.fakes.fake_comparing import PinnedFakeTables
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.held import HeldLook

CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "commit": lambda tables, head: tables.commit(head, head.next(), []),
    "put rows back": lambda tables, head: tables.put_back(head, head.next(), of=1, ids=["w"], instead_of=[]),
    "commit a rebuilt head": lambda tables, head: tables.commit_rebuilt(None, head.next()),
    "hold chunks": lambda tables, head: tables.stage_held(head.held, [], staging=None),
    "settle what is held": lambda tables, head: tables.settle_held(),
    "write history": lambda tables, head: tables.append_batches([]),
}


@pytest.fixture
def pinned() -> PinnedFakeTables:
    """What is held there waits."""
    world = World()
    parked(world)
    return PinnedFakeTables(world.bench.tables, list(world.bench.tables.heads()))


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_would_change_the_stream_is_refused_and_changes_nothing(pinned: PinnedFakeTables, what: str) -> None:
    before = list(pinned.snapshots), list(pinned.history), list(pinned.held_rows())
    with pytest.raises(Terminal, match=f"^who verifies does not {what}; .* nothing was changed$"):
        CHANGES[what](pinned, pinned.head())
    assert (list(pinned.snapshots), list(pinned.history), list(pinned.held_rows())) == before


def test_the_head_stays_that_of_the_look_and_the_table_is_taken_for_empty(pinned: PinnedFakeTables) -> None:
    head = pinned.head()
    assert head is not None
    assert (head, pinned.heads()) == (pinned.pinned[0], list(pinned.pinned))
    assert head.held is not None
    assert (pinned.published(["w"]), pinned.held(head.held, HeldLook(chunks=True))) == ({}, [])
