"""What an operator reads when a stream's definition is wrong, and what a right one means."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import MIB, parse_stream

ROOT = Path(__file__).parents[2]
GOOD = "topic: t\ngroup: g\n"


def test_sizes_and_durations_are_written_for_people() -> None:
    found = parse_stream(GOOD + "allowed_lateness: 2 h\nlimits: {max_waveform_bytes: 64 MiB}\n", name="x")
    assert found.allowed_lateness == 7200
    assert found.limits.max_waveform_bytes == 64 * MIB


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (GOOD + "topik: x", r"streams/x\.yaml: unknown key 'topik'; remove it"),
        ("topic: t", r"'group' is missing; a stream needs it"),
        ("- a", r"holds a list; it must hold a mapping"),
        ("topic: [", r"is not YAML at line"),
        (GOOD + "allowed_lateness: 3 weeks", r"'allowed_lateness' is not valid: '3 weeks' is not a duration"),
        (GOOD + "limits: {max_waveform_bytes: 1 GiB}", r"at most 536870912 \(512 MiB\)"),
        (GOOD + "limits: {max_batch_bytes: 1 MiB}", r"a batch must have room for one waveform"),
        (GOOD + "limits: {max_bytes: 1 MiB}", r"unknown key 'limits\.max_bytes'"),
        (GOOD + "schedule: hourly", r"is not a cron expression of five fields"),
        (GOOD + "schedule: R(0-59) * * * *", r"numbers, names of months and days"),
        (GOOD + "schedule: r * * * *", r"numbers, names of months and days"),
        (GOOD + "schedule: 0 H * * *", r"numbers, names of months and days"),
        (GOOD + "name: y", r"names the stream 'y'; file and name must agree"),
        ("topic: a/b\ngroup: g", r"'topic' is not valid: 'a/b'; allowed are letters"),
        (GOOD + "expectations: [{type: drop_table}]", r"expectations\.0\.type"),
        (GOOD + "x: !!python/object/apply:os.system [ls]", r"is not YAML"),
    ],
)
def test_a_wrong_definition_gets_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse_stream(text, name="x")


def test_a_name_is_not_a_path() -> None:
    with pytest.raises(BadInput, match="a stream's name has a-z"):
        parse_stream(GOOD, name="../x")


@pytest.mark.parametrize("path", sorted((ROOT / "streams").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_streams_that_ship_are_right(path: Path) -> None:
    assert parse_stream(path.read_text(), name=path.stem).name == path.stem


def test_the_digest_sees_the_meaning_not_the_layout() -> None:
    assert parse_stream(GOOD, name="x").digest() == parse_stream("group: g\n\ntopic: t # c\n", name="x").digest()
    assert parse_stream(GOOD, name="x").digest() != parse_stream(GOOD + "idle: 11 m", name="x").digest()
