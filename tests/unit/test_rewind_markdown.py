"""Who is asked to approve of a rewind sees all of it: a row a partition, what is lost first, and no hostile word."""

from __future__ import annotations

import dataclasses

from tests.builders.ranges import span
from wavestitch.contracts.quantities import EpochMs, Generation, Milliseconds, Offset, Partition
from wavestitch.contracts.rewind_preview import PartitionPreview, RewindPreview
from wavestitch.flows.rewind_markdown import describe_preview

HOUR = 3_600_000


def row(partition: int, *, expires_ms: int | None = 48 * HOUR) -> PartitionPreview:
    return PartitionPreview(
        partition=Partition(partition),
        current=900,
        target=100,
        log_start=Offset(50),
        log_end=1000,
        again=800,
        back_ms=Milliseconds(2 * HOUR),
        bytes=3 << 20,
        expires_ms=None if expires_ms is None else Milliseconds(expires_ms),
        published=790,
    )


PREVIEW = RewindPreview(
    stream="ecg",
    to="2026-01-31T12:00:00Z",
    partitions="",
    asked_by="ann",
    why="a bad day",
    made_ms=EpochMs(0),
    generation=Generation(3),
    sequence=7,
    targets={Partition(0): Offset(100)},
    whole=False,
    skipped=(),
    missing=(),
    settles="",
    remarks=(),
    rows=(row(0),),
    waveforms=12,
    batches=2,
    seconds=90.0,
)


def test_it_says_who_asks_what_it_takes_and_where_each_partition_goes() -> None:
    said = describe_preview(PREVIEW)
    assert said.startswith("**`ann`** asks to rewind **ecg** to `2026-01-31T12:00:00Z`: `a bad day`")
    assert (
        "1 of 1 partitions move; 800 offsets are read again, in 2 batches, about 1.5 min as past batches went" in said
    )
    assert "(about 12 waveforms)" in said
    assert "| 0 | 900 | 100 | 50 to 1000 | 800 | 2.0 h | 3.0 | 2.0 d | 790 |" in said
    assert f"Preview `{PREVIEW.preview_id}` of generation 3" in said


def test_what_is_about_to_be_lost_is_said_as_such() -> None:
    lost = dataclasses.replace(
        PREVIEW, rows=(row(0, expires_ms=-1), row(1, expires_ms=None)), skipped=(span(1, 900, 950),)
    )
    said = describe_preview(lost)
    assert "any moment" in said
    assert "not known" in said
    assert "**Skipped for good**" in said
    assert "(50 offsets)" in said


def test_of_very_many_partitions_and_ranges_it_says_how_many_are_not_shown() -> None:
    many = dataclasses.replace(
        PREVIEW, rows=tuple(map(row, range(60))), skipped=tuple(span(0, n * 10, n * 10 + 2) for n in range(55))
    )
    said = describe_preview(many)
    assert "| and 10 more |" in said
    assert "- and 5 ranges more, 10 offsets" in said


def test_what_somebody_typed_is_shown_as_code_and_ends_no_line() -> None:
    typed = "x`\n\n# Approve\n\n[here](javascript:1) {{ ti }}"
    said = describe_preview(dataclasses.replace(PREVIEW, to=typed, why=typed, asked_by=typed))
    assert not any(line.startswith("#") for line in said.splitlines())
    assert said.count("`x' # Approve [here](javascript:1) {{ ti }}`") == 3
