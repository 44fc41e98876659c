"""The corpus itself: large enough, each kind another one, and every reason that input can cause is caused."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.hostile.corpus import record_kinds
from tests.hostile.file_kinds import file_kinds
from tests.hostile.kind import DUPLICATE, PUBLISHED, Kind
from tests.hostile.yaml_kinds import yaml_kinds
from wavestitch.contracts.reasons import Reason

BY_OPERATORS = {Reason.PARKED, Reason.DISCARDED}
"""Only an operator causes these, never what was sent."""
ELSEWHERE = {Reason.UNPROVEN, Reason.FORGED, Reason.WRONG_PARTITION, Reason.UNREADABLE}
"""They need a stream that demands a proof (`tests/unit/test_chunk_proof.py`) or binds ids to partitions
(`tests/domain/test_bound_ids.py`), or a compressed batch that a broker took (`tests/broker/test_bombs.py`): no single
record of the corpus causes them."""


def test_there_are_at_least_150_distinct_kinds_of_records_and_200_of_all() -> None:
    assert len({k.records for k in record_kinds()}) == len(record_kinds()) >= 150
    names = [k.name for k in (*record_kinds(), *file_kinds(), *yaml_kinds())]  # type: ignore[attr-defined]
    assert [n for n, count in Counter(names).items() if count > 1] == []
    assert len(names) >= 200


@pytest.mark.parametrize("level", ["header", "id", "metadata", "payload", "waveform"])
def test_each_level_has_dozens_of_kinds_with_both_good_and_bad_ends(level: str) -> None:
    mine = [k for k in record_kinds() if k.level == level]
    assert len(mine) >= 24
    assert {b == PUBLISHED for k in mine for b in k.becomes} == {True, False}


@pytest.mark.parametrize("reason", [r for r in Reason if r not in BY_OPERATORS | ELSEWHERE])
def test_every_reason_that_input_can_cause_is_caused_by_a_kind(reason: Reason) -> None:
    assert any(reason in k.becomes for k in record_kinds()), f"no kind ends as {reason}"


def test_what_a_kind_says_of_itself_fits_together() -> None:
    allowed = {PUBLISHED, DUPLICATE, *(r.value for r in Reason)} - {r.value for r in BY_OPERATORS}
    for kind in record_kinds():
        assert kind.name, kind
        assert kind.wrong, kind.name
        assert len(kind.records) == len(kind.becomes) > 0, kind.name
        assert set(kind.becomes) <= allowed, kind.name
        assert bool(kind.samples) == (PUBLISHED in kind.becomes), kind.name


def test_no_two_kinds_speak_of_the_same_waveform() -> None:
    """Else one kind's end would depend on another's. Records that the parser rejects take no part."""
    owners: dict[bytes, set[str]] = {}
    for kind in record_kinds():
        for waveform_id in _valid_ids(kind):
            owners.setdefault(waveform_id, set()).add(kind.name)
    assert {i: names for i, names in owners.items() if len(names) > 1} == {}


def _valid_ids(kind: Kind) -> set[bytes]:
    found = set()
    for record, rejected in zip(kind.records, kind.parsed(), strict=True):
        raw = record.key if record.key is not None else dict(record.headers).get("ws-id")
        if rejected is None and raw is not None:
            found.add(raw)
    return found
