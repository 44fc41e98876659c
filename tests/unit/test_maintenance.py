"""What maintenance looks at: a checksum belongs to the file that it is named after, and everything else to itself."""

from __future__ import annotations

import pytest

from wavestitch.contracts.maintenance import Footprint, StoredFile
from wavestitch.contracts.quantities import EpochMs


@pytest.mark.parametrize(
    ("path", "covers"),
    [
        ("data/.part-0.parquet.crc", "data/part-0.parquet"),
        ("data/part-0.parquet", "data/part-0.parquet"),
        ("data/part-0.parquet.crc", "data/part-0.parquet.crc"),
        ("data/.part-0.parquet", "data/.part-0.parquet"),
        ("a/.b/c.crc", "a/.b/c.crc"),
        ("s3://w/t/metadata/.v1.metadata.json.crc", "s3://w/t/metadata/v1.metadata.json"),
    ],
)
def test_a_checksum_covers_the_file_it_is_named_after_and_any_other_file_itself(path: str, covers: str) -> None:
    assert StoredFile(path, 1, EpochMs(0)).covers == covers


def test_a_stream_that_has_nothing_takes_up_nothing() -> None:
    assert Footprint() == Footprint(0, 0, 0, 0, 0, 0, {}, {})
