"""What becomes of a batch at a closed gate where nobody answers: by what the stream says, the time and the headroom."""

from __future__ import annotations

from itertools import product

import pytest

from wavestitch.contracts.gate_wait import look_again_s, unanswered
from wavestitch.contracts.headroom import Alarm, PartitionRoom, Room
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import GateDefault

DEFAULTS: tuple[GateDefault, ...] = ("stop", "park", "park_if_red")


def room(alarm: Alarm, left_s: float | None = None) -> Room:
    return Room((PartitionRoom(Partition(0), 5, Offset(0), 9, 4, 0, 1.0, left_s, alarm),))


@pytest.mark.parametrize(
    ("default", "headroom", "meanwhile", "in_the_end"),
    [
        ("stop", Alarm.GREEN, None, "stop"),
        ("stop", Alarm.RED, None, "stop"),
        ("park", Alarm.GREEN, None, "park"),
        ("park", Alarm.AMBER, None, "park"),
        ("park", Alarm.RED, "park", "park"),
        ("park", None, None, "park"),
        ("park_if_red", Alarm.GREEN, None, "stop"),
        ("park_if_red", Alarm.AMBER, None, "stop"),
        ("park_if_red", Alarm.RED, "park", "park"),
        ("park_if_red", None, None, "stop"),
    ],
)
def test_it_is_parked_by_itself_only_where_the_stream_says_so(
    default: GateDefault, headroom: Alarm | None, meanwhile: str | None, in_the_end: str
) -> None:
    """`meanwhile`: as long as the stream waits; None: it waits on. `headroom` None: not known."""
    here = None if headroom is None else room(headroom)
    assert unanswered(default, here, left_s=1.0) == meanwhile
    assert unanswered(default, here, left_s=0.0) == unanswered(default, here, left_s=-5.0) == in_the_end


@pytest.mark.parametrize(
    ("default", "here", "left_s", "wanted"),
    [
        ("stop", room(Alarm.RED, 10.0), 40_000.0, 40_000.0),
        ("park", room(Alarm.GREEN, 40_000.0), 90_000.0, 20_000.0),
        ("park", room(Alarm.GREEN, 40_000.0), 500.0, 500.0),
        ("park", room(Alarm.RED, 30.0), 500.0, 60.0),
        ("park_if_red", room(Alarm.RED, -3.0), 20.0, 20.0),
        ("park_if_red", room(Alarm.GREEN), 40_000.0, 3600.0),
        ("park_if_red", None, 40_000.0, 300.0),
    ],
)
def test_headroom_is_looked_at_again_halfway_to_where_it_ends(
    default: GateDefault, here: Room | None, left_s: float, wanted: float
) -> None:
    assert look_again_s(default, here, left_s=left_s) == wanted


@pytest.mark.parametrize("default", DEFAULTS)
def test_no_question_waits_beyond_the_time_out_and_unread_data_are_never_taken_before_a_look(
    default: GateDefault,
) -> None:
    """Played through with a log that keeps so much, of which a quarter is where red begins."""
    for keeps_s, time_out_s in product((600, 3600, 86_400, 7 * 86_400), (30, 3600, 12 * 3600, 30 * 86_400)):
        now, looks, answer = 0.0, 0, None
        while answer is None:
            left = keeps_s / 2 - now
            here = room(Alarm.RED if left < keeps_s / 4 else Alarm.AMBER, left)
            now += look_again_s(default, here, left_s=time_out_s - now)
            looks += 1
            left = keeps_s / 2 - now
            here = room(Alarm.RED if left < keeps_s / 4 else Alarm.AMBER, left)
            answer = unanswered(default, here, left_s=time_out_s - now)
        assert now <= time_out_s
        assert looks <= 8
        if default != "stop" and time_out_s > keeps_s / 2:
            assert answer == "park"
            assert left > 0
