"""Metadata by columns say what they say one by one, whatever stands around the start."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.test_chunk_header_metadata import FIELDS, FORMS, REST, STARTS
from wavestitch.contracts import chunk_metadata, metadata_columns
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.metadata_columns import read_metadata

NUMBERS = (
    *(str(n) for n in (0, 5, 17, 99, 123456789, 1_700_000_000_000_000_000, (1 << 62) - 1, 1 << 62, (1 << 62) + 1)),
    *("9999999999999999999", "9223372036854775808", "1000000000000000000", "18446744073709551617", "007", "-5", "5e3"),
)


def forget() -> None:
    chunk_metadata._met.clear()
    chunk_metadata._proven.clear()


def said(texts: list[str]) -> list[Metadata | None]:
    found = read_metadata(pa.array(texts, pa.large_string()))
    return [
        None if form < 0 else found.said[form]._replace(start_time_ns=start)
        for form, start in zip(found.form.tolist(), found.start_ns.tolist(), strict=True)
    ]


def one_by_one(texts: list[str]) -> list[Metadata | None]:
    forget()
    read = [chunk_metadata._parse(text) for text in texts]
    return [one if isinstance(one, Metadata) else None for one in read]


@pytest.mark.parametrize("form", FORMS)
def test_texts_alike_say_by_columns_what_they_say_one_by_one(form: str) -> None:
    starts = [*STARTS, *NUMBERS, *(str(1000 + n) for n in range(20)), *(str(10**18 + 10**9 * n) for n in range(20))]
    texts = [FORMS[form].replace("#", REST).replace("@", start) for start in starts]
    for order in (texts, texts[::-1], [*texts, *texts]):
        wanted = one_by_one(order)
        forget()
        assert said(order) == wanted


def test_texts_of_many_sources_among_each_other_and_some_that_say_nothing() -> None:
    chance = random.Random(5)
    texts = [
        json.dumps({**FIELDS, "start_time_ns": chance.choice([n, 10**18 + n, 7]), "source": f"s-{n % 9}"})
        for n in range(600)
    ]
    for n in range(0, 600, 7):
        texts[n] = chance.choice(
            [texts[n][:-1], texts[n].replace("{", "{ "), "{}", "", texts[n] + "\0", texts[n] + " "]
        )
    texts += [json.dumps({**FIELDS, "note": "x" * n}) for n in range(0, 900, 50) for _ in range(9)]
    assert said(texts) == one_by_one(texts)


def test_what_is_proven_of_a_text_is_not_of_a_longer_one_that_goes_on_with_zeros() -> None:
    alike = [json.dumps({**FIELDS, "start_time_ns": 1000 + n}) for n in range(20)]
    longer = [text + "\0" * n for n in range(1, 8) for text in alike]
    assert said([*alike, *longer]) == [*one_by_one(alike), *[None] * len(longer)]


def test_texts_alike_are_read_as_json_twice_and_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def told(text: str) -> Metadata | str:
        read.append(text)
        return parse_metadata(text)

    monkeypatch.setattr(metadata_columns, "parse_metadata", told)
    alike = [json.dumps({**FIELDS, "start_time_ns": 10**18 + n}) for n in range(40_000)]
    assert [m.start_time_ns if m else None for m in said(alike)] == [10**18 + n for n in range(40_000)]
    assert len(read) == 2


def test_sums_that_are_equal_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_columns, "_WEIGHTS", np.zeros_like(metadata_columns._WEIGHTS))
    texts = [json.dumps({**FIELDS, "start_time_ns": 1000 + n, "channel": "AB"[n % 2]}) for n in range(40)]
    assert said(texts) == one_by_one(texts)


def test_of_each_and_taken_speak_of_the_texts_that_are_asked_for() -> None:
    texts = [json.dumps({**FIELDS, "start_time_ns": 1000 + n, "sampling_rate_hz": 100 + n % 3}) for n in range(30)]
    found = read_metadata(pa.array([*texts, "nothing"], pa.string())).taken(np.array([30, 4, -1, 0]))
    assert found.start_ns.tolist() == [0, 1004, 0, 1000]
    assert found.of_each(lambda m: m.sampling_rate_hz, np.float64).tolist() == [0.0, 101.0, 0.0, 100.0]
    assert found.of_each(lambda m: m.sampling_rate_hz, np.float64, -1.0).tolist() == [-1.0, 101.0, -1.0, 100.0]
    assert len(read_metadata(pa.array([], pa.string())).form) == 0
    sliced = read_metadata(pa.array(texts, pa.string()).slice(10, 12))
    assert sliced.start_ns.tolist() == list(range(1010, 1022))


@pytest.mark.parametrize("odd", ["1e10", "1.25", "12e1", "0123", "-123", "1000 ", " 100", "9 99", "12\t3"])
def test_a_start_that_is_not_digits_all_through_is_read_by_itself_among_others_that_are(odd: str) -> None:
    alike = [json.dumps({**FIELDS, "start_time_ns": 1000 + n}) for n in range(20)]
    texts = [*alike, alike[0].replace("1000", odd), *alike]
    assert said(texts) == one_by_one(texts)
