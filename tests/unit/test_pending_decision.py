"""What becomes of chunks that were discarded, or picked among, and come again: nothing is lost, and nothing revived."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.test_decide_examples import CONFLICT, DISCARDED, OPEN, PARKED, fates, held, made, published
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.held_choice import HeldAction, HeldChoice


def bare(name: str) -> HeldChunk:
    """Discarded, and nobody has its bytes any more."""
    return replace(held(name, DISCARDED), stored=False)


@pytest.mark.parametrize(
    ("was", "read", "becomes"),
    [
        ((held("w/0!@1", DISCARDED),), "w/0!@7", "w/0@7 replay"),
        # Its bytes come again: of this very chunk, or of its piece from elsewhere.
        ((bare("w/0!@1"),), "w/0!@1", "w/0@1 quarantined discarded"),
        ((bare("w/0!@1"),), "w/0!@7", "w/0@7 quarantined discarded"),
        # Another copy of the piece has them; this very chunk lacks them nevertheless.
        ((bare("w/0!@1"), held("w/0!@2", DISCARDED)), "w/0!@7", "w/0@7 replay"),
        ((bare("w/0!@1"), held("w/0!@2", DISCARDED)), "w/0!@1", "w/0@1 quarantined discarded"),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["beside a published one", "beside what waits"])
def test_a_repeat_of_what_was_discarded_is_kept_only_where_it_brings_bytes_that_are_lost(
    was: tuple[HeldChunk, ...], read: str, becomes: str, *, known: bool
) -> None:
    waits = () if known else (held("w/1@5", OPEN),)
    found = made((read,), (*was, *waits), known=published("w") if known else None)
    assert fates(found)[0] == becomes
    kept = "quarantined" in becomes
    assert [(h.chunk.carried, h.reason) for h in found.holds] == ([(False, DISCARDED)] if kept else [])


def says(name: str, digest: str) -> HeldChunk:
    """Held as a conflict, with what it says of the whole."""
    found = held(name, CONFLICT)
    return replace(found, chunk=found.chunk._replace(digest=digest * 32))


def test_a_copy_that_was_not_picked_is_discarded_unless_its_very_bytes_are_published() -> None:
    was = (says("w/0@1", "a"), says("w/1@2", "a"), says("w/0@3", "b"), says("w/1!@4", "b"))
    found = made((), was, choice=HeldChoice(HeldAction.PICK, ("w",), "ops", "looked", "first"))
    assert fates(found) == ["w/0@1 published", "w/1@2 published", "w/0@3 replay", "w/1@4 quarantined discarded"]
    assert found.held_counts == {"discarded": 1}
    # The copy that was picked is not whole: nothing is published, and the others are let go.
    found = made((), was[2:0:-1], choice=HeldChoice(HeldAction.PICK, ("w",), "ops", "looked", "0:3"))
    assert fates(found) == ["w/1@2 quarantined discarded", "w/0@3 carried_out open"]


@pytest.mark.parametrize("pick", ["0:99", "other:0:1"])
def test_where_no_copy_is_at_the_place_that_was_picked_all_stay_held_as_they_were(pick: str) -> None:
    was = (held("w/0@1", CONFLICT), held("w/0!@2", CONFLICT), held("w/1@3", PARKED))
    found = made((), was, choice=HeldChoice(HeldAction.PICK, ("w",), "ops", "looked", pick))
    assert fates(found) == ["w/0@1 quarantined conflict", "w/0@2 quarantined conflict", "w/1@3 quarantined parked"]
    assert (found.publish, found.holds) == ((), ())
    assert found.held_counts == {"conflict": 2, "parked": 1}
