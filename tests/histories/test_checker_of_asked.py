"""What the checker makes of an ingest of some partitions, or as far as a named offset."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import kinds, sound, swap
from tests.histories.events import Planned
from tests.histories.reading_events import Named

ASKED = Named("run-1", (), most=100)
(PLAN,) = (e for e in sound() if isinstance(e, Planned))
"""It reads partition 0 from 0 to 6."""


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        (replace(ASKED, only=(0,)), True),
        (replace(ASKED, only=(0, 1)), True),
        (replace(ASKED, only=(1,)), False),
        (replace(ASKED, until=((0, 6),)), True),
        (replace(ASKED, until=((0, 5),)), False),
        (replace(ASKED, until=((0, 7),)), False),
        (replace(ASKED, until=((0, 7),), most=7), False),
        (replace(ASKED, until=((0, 7),), most=6), True),
        (replace(ASKED, until=((0, 7),), most=None), True),
        (replace(ASKED, until=((0, 5),), most=None), False),
        (replace(ASKED, until=((1, 0),)), True),
        (replace(ASKED, until=((1, 3),)), False),
        (replace(ASKED, only=(0,), until=((1, 3),)), True),
    ],
)
def test_an_ingest_reads_of_what_was_named_all_and_nothing_else(asked: Named, right: bool) -> None:
    assert kinds(swap(PLAN, asked, PLAN)) == ([] if right else [Kind.UNTRUE])


def test_what_another_run_is_asked_is_no_matter() -> None:
    assert kinds(swap(PLAN, replace(ASKED, run="run-2", only=(1,)), PLAN)) == []
