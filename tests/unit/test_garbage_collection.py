"""Python's looking for garbage stops for a while, and always goes on."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from tests.fakes.faults import Steps
from wavestitch.garbage_collection import collection_paused, imports_that_stay, nothing_looked_through_at_the_end


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


def test_what_is_there_at_the_end_is_not_looked_through_whatever_it_ended_with() -> None:
    kept: list[list[object]] = [[]]
    try:
        with pytest.raises(KeyError), nothing_looked_through_at_the_end():
            raise KeyError
        assert not any(one is kept for one in gc.get_objects())
    finally:
        gc.unfreeze()


LEFT = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > len(gc.get_objects())))
sys.argv = ["wavestitch", "--help"]
from wavestitch.__main__ import main
main()
"""


def test_the_command_line_is_left_so_and_what_was_asked_for_at_its_end_is_done() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "True", done.stdout + done.stderr


def test_a_run_that_stands_still_within_stops_it_for_nobody_else() -> None:
    def work() -> None:
        with collection_paused():
            run.pause("within")

    run = Steps(work)
    assert run.advance()
    assert gc.isenabled()
