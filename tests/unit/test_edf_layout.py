"""Data records of EDF: how long they are, by the very numbers."""

from __future__ import annotations

from wavestitch.reading.edf_layout import DataRecords, data_records


def test_where_a_second_has_many_samples_a_data_record_of_edf_lasts_one() -> None:
    assert data_records(480_000, 8000.0, beside=300) == DataRecords(8000, 1.0)


def test_the_shortest_and_the_longest_data_records_of_edf_are_the_very_ones_that_are_named() -> None:
    assert data_records(512, 256.0) == DataRecords(256, 1.0)
    assert data_records(510, 255.0) == DataRecords(510, 2.0)
    assert data_records(30_720, 1000.0) == DataRecords(30_720, 30.72)
    assert data_records(30_722, 1000.0) == DataRecords(15_361, 15.361)
