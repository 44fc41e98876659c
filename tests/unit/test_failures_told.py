"""A failure that comes again with every run is told once a day: by what failed and what it said, numbers aside."""

from __future__ import annotations

import pytest

from wavestitch.contracts.failures_told import FailuresTold, without_numbers
from wavestitch.contracts.quantities import EpochMs

DAY = 86_400_000


@pytest.mark.parametrize(("later", "told"), [(0, False), (1, False), (DAY - 1, False), (DAY, True), (DAY + 1, True)])
def test_the_same_failure_is_told_again_when_a_day_has_passed(later: int, *, told: bool) -> None:
    once = FailuresTold().telling("plan", "no", now=EpochMs(7))
    assert once is not None
    assert (once.telling("plan", "no", now=EpochMs(7 + later)) is not None) is told


def test_what_was_told_longer_ago_is_forgotten_with_the_next_failure_and_what_was_not_is_kept() -> None:
    first = FailuresTold().telling("plan", "no", now=EpochMs(0))
    assert first is not None
    second = first.telling("read", "no", now=EpochMs(DAY - 1))
    assert second is not None
    assert sorted(second.last_ms.values()) == [0, DAY - 1]
    third = second.telling("read", "else", now=EpochMs(DAY))
    assert third is not None
    assert sorted(third.last_ms.values()) == [DAY - 1, DAY]


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        ("offsets [120, 300) are gone", "offsets [#, #) are gone"),
        ("batch 0123456789abcdef failed", "batch # failed"),
        ("batch 0123456789ab failed", "batch # failed"),
        ("batch deadbeefdeadbeef failed", "batch # failed"),
        ("batch deadbeefdea failed", "batch deadbeefdea failed"),
        ("in feedback", "in feedback"),
    ],
)
def test_numbers_and_ids_make_no_other_sentence(sentence: str, what: str) -> None:
    assert without_numbers(sentence) == what
