"""A sentence is for guests where whoever raised it said so, and never because of how it looks."""

from __future__ import annotations

import json

import pytest

from wavestitch.contracts import errors
from wavestitch.contracts.errors import BadInput, DataLost, Refused, Transient, WavestitchError, error_from_json
from wavestitch.ui.guest_sentence import said_to_guests

PLACE = "'/srv/hidden/streams/other.yaml' is in the way"
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WavestitchError)]


@pytest.mark.parametrize("kind", [k for k in KINDS if not k.FOR_GUESTS])
def test_of_an_unmarked_error_its_kind_alone_is_told(kind: type[WavestitchError]) -> None:
    assert "hidden" not in said_to_guests(kind(PLACE, file="streams/ecg.yaml"))
    assert said_to_guests(kind("of its own words", for_guests=True)) == "of its own words"


@pytest.mark.parametrize("kind", [Refused, DataLost])
def test_what_was_decided_about_the_stream_s_own_offsets_and_waveforms_is_told(kind: type[WavestitchError]) -> None:
    assert said_to_guests(kind("partition 3 ends at 7")) == "partition 3 ends at 7"
    assert "hidden" not in said_to_guests(kind(PLACE, for_guests=False))


def test_of_an_error_that_is_not_ours_its_name_alone_is_told() -> None:
    assert said_to_guests(OSError(PLACE)) == "cannot be looked at (OSError)"


def test_what_another_process_or_a_file_says_of_an_error_marks_none() -> None:
    said = BadInput(PLACE, for_guests=True).to_json()
    assert json.loads(json.dumps(said)) == {"error": "BadInput", "message": PLACE, "facts": {}}
    forged = error_from_json({**said, "error": "Transient", "facts": {"for_guests": True}})
    assert isinstance(forged, Transient)
    assert "hidden" not in said_to_guests(forged)
