"""Python's looking for garbage stops for a while, and always goes on."""

from __future__ import annotations

import gc

import pytest

from tests.fakes.faults import Steps
from wavestitch.garbage_collection import collection_paused, imports_that_stay


def test_it_stops_within_and_goes_on_behind_also_after_an_error() -> None:
    with collection_paused():
        with pytest.raises(KeyError), collection_paused():
            raise KeyError
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_loaded_in_the_beginning_is_not_looked_through_again() -> None:
    try:
        with imports_that_stay():
            assert not gc.isenabled()
            kept: list[list[object]] = [[]]
        assert gc.isenabled()
        assert not any(one is kept for one in gc.get_objects())
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_run_that_stands_still_within_stops_it_for_nobody_else() -> None:
    def work() -> None:
        with collection_paused():
            run.pause("within")

    run = Steps(work)
    assert run.advance()
    assert gc.isenabled()
