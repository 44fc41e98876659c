"""Rows of the history: which of them are behind a head, which balance, and what is wrong with others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders.heads import make_row
from tests.builders.ranges import span
from wavestitch.contracts.batch_row import BatchRow, batch_row_from_json, first_version, rows_behind, rows_of
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Generation


def rows_at(*versions: tuple[int, int]) -> list[BatchRow]:
    """By number and generation."""
    return [make_row(sequence=number, generation=generation) for number, generation in versions]


def versions(rows: list[BatchRow]) -> list[tuple[int, int]]:
    return [(row.sequence, row.generation) for row in rows]


@pytest.mark.parametrize(
    ("generation", "number", "kept", "behind"),
    [
        (1, 3, [(3, 1), (1, 1), (2, 1)], [(1, 1), (2, 1), (3, 1)]),
        (1, 2, [(1, 1), (2, 1), (3, 1)], [(1, 1), (2, 1)]),
        # A row beyond the head, though of no later generation; and one of a later generation, though not beyond it.
        (1, 2, [(1, 1), (3, 1)], [(1, 1)]),
        (1, 2, [(1, 1), (2, 2)], [(1, 1)]),
        # At or beyond a row of a later generation is what was behind a head that was set back.
        (2, 4, [(1, 1), (2, 1), (3, 1), (2, 2), (4, 2)], [(1, 1), (2, 2), (4, 2)]),
        (2, 4, [(1, 1), (2, 2), (3, 1), (4, 2)], [(1, 1), (2, 2), (4, 2)]),
        (2, 2, [], []),
    ],
)
def test_behind_a_head_is_what_it_follows(
    generation: int, number: int, kept: list[tuple[int, int]], behind: list[tuple[int, int]]
) -> None:
    assert versions(rows_behind((Generation(generation), number), rows_at(*kept))) == behind


def test_nothing_before_a_first_head_is_behind_what_follows_it() -> None:
    before = rows_at((1, 1), (2, 1))
    first = make_row(sequence=3, generation=2, kind=HeadKind.FIRST.value)
    assert rows_behind((Generation(2), 4), [*before, first, *rows_at((4, 2))]) == [first, *rows_at((4, 2))]


@pytest.mark.parametrize(("kept", "first"), [([], (1, 1)), ([(3, 1), (2, 2)], (4, 3)), ([(1, 1)], (2, 2))])
def test_a_first_head_begins_beyond_all_that_was_there_before(
    kept: list[tuple[int, int]], first: tuple[int, int]
) -> None:
    assert first_version(rows_at(*kept)) == first


def test_a_row_that_names_no_table_is_of_any_and_one_that_does_of_that_alone() -> None:
    rows = [make_row(table=table) for table in ("", "this", "that")]
    assert rows_of("this", rows) == rows[:2]
    assert rows_of(None, rows) == rows[:1]


@pytest.mark.parametrize(
    ("partitions", "balances"),
    [
        ({}, True),
        ({"0": {"planned": 3, "read": 2, "holes": 1, "carried_in": 1, "published": 2, "quarantined": 1}}, True),
        ({"0": {"planned": 3, "read": 2, "published": 2}}, False),
        ({"0": {"planned": 2, "read": 2, "carried_in": 1, "published": 2}}, False),
        ({"0": {"planned": 1, "read": 1, "published": 2}}, False),
        # What one partition has too much of is not what another one lacks.
        ({"0": {"planned": 2, "read": 2, "published": 1}, "1": {"planned": 2, "read": 2, "published": 3}}, False),
        ({"0": {"planned": 1, "read": 1, "published": 1}, "1": {"planned": 1, "read": 1}}, False),
    ],
)
def test_a_batch_balances_where_each_of_its_partitions_does(partitions: dict[str, Any], *, balances: bool) -> None:
    assert make_row(partitions=partitions).identity_balances is balances


@pytest.mark.parametrize(
    ("counts", "partitions", "nothing"),
    [
        ({"read": 2, "published": 2}, {"0": {"planned": 2, "read": 2, "published": 2}}, True),
        ({"read": 2, "published": 1, "replay": 1}, {"0": {"planned": 2, "read": 2, "published": 1, "replay": 1}}, True),
        ({"read": 1, "reported": 1}, {"0": {"planned": 1, "read": 1, "reported": 1}}, False),
        ({"read": 1, "out_of_scope": 1}, {"0": {"planned": 1, "read": 1, "out_of_scope": 1}}, False),
        ({"read": 1, "published": 1}, {"0": {"planned": 2, "read": 1, "published": 1}}, False),
        ({"published": 0}, {}, False),
    ],
)
def test_a_batch_left_nothing_where_all_that_it_read_is_published(
    counts: dict[str, int], partitions: dict[str, Any], *, nothing: bool
) -> None:
    assert make_row(counts=counts, partitions=partitions).left_nothing is nothing


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(make_row().to_json()), **fields})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"partitions": {"x": {}}}, "names a partition of partitions that is no number: 'x'"),
        ({"starts": {"-1": []}}, "names a partition of starts that is no number: '-1'"),
        ({"epochs": {"01": 3}}, "names a partition of epochs that is no number: '01'"),
        ({"written": {"9" * 11: []}}, "names a partition of written that is no number"),
        ({"without_bytes": {"0\n": [1, 2, 3]}}, "names a partition of without_bytes that is no number"),
        *(
            ({"reading": {"0": figures}}, "under reading something else than bytes and seconds")
            for figures in ([1.0], [1.0, 2.0, 3.0])
        ),
        ({"reading": {"0": [1.0, 2.0]}}, "a partition under reading of which it does not say what was planned"),
        *(
            ({"starts": {"0": [b]}}, "has a block of starts that is none")
            for b in ([], [1], [1, 2, 3], [2, 2], [3, 2], [-1, 2], [1, 2, 3, 4, 5])
        ),
        *(
            ({"ranges": [r]}, "has a range of offsets that is none")
            for r in ([0, 1], [0, 2, 1], [0, -1, 1], [-1, 0, 1], [0, 1, 2, 3])
        ),
        ({"slices": [[0, 2, 1]]}, "has a range of offsets that is none"),
        *(
            ({"written": {"0": [run]}}, "under written something else than offsets and leader epochs")
            for run in ([1], [1, 2, 3])
        ),
        *(
            ({"without_bytes": {"0": found}}, "under without_bytes something else than a count and two offsets")
            for found in ([1, 2], [1, 2, 3, 4])
        ),
    ],
)
def test_a_row_that_whoever_plans_by_it_would_stumble_over_is_none(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        batch_row_from_json(changed(**fields))


def test_a_row_that_is_none_of_these_is_read_as_it_was_written() -> None:
    row = make_row(
        partitions={"0": {"planned": 3}, "4294967295": {"planned": 1}},
        reading={"0": [1.0, 2.0]},
        starts={"0": [[0, 1], [1, 3, -5, 7]]},
        ranges=[[0, 0, 3], [1, 2, 2]],
        written={"0": [[0, 4], [2, 6]]},
        without_bytes={"0": [1, 2, 3]},
    )
    assert batch_row_from_json(row.to_json()) == row
    assert row.read_ranges == (span(0, 0, 3), span(1, 2, 2))
