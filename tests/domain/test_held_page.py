"""The pages of what is held, over real tables: filtered by what it is held for, source and age, and one in full."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.domain.held_rig import T, held_rig
from tests.domain.maintenance_rig import STREAM, Rig
from tests.security.hostile_text import HOSTILE_TEXTS
from tests.security.seen_tags import tags_and_links
from wavestitch.batch import held_page
from wavestitch.batch.held_page import HeldList, HeldOne, held_list, held_one
from wavestitch.batch.held_told import waveform_said
from wavestitch.batch.held_waveforms import Crowd, HeldWaveform
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import is_plain
from wavestitch.contracts.held import HeldChunk, HeldLook
from wavestitch.contracts.quantities import EpochMs
from wavestitch.ui.facts import held_list_facts, held_one_facts
from wavestitch.ui.held_pages import Filters, held_list_page, held_one_page

NOW = EpochMs(T + 2 * 3_600_000)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return held_rig(tmp_path)


def listed(rig: Rig, **said: str) -> HeldList:
    return held_list(rig.deployment, STREAM, Filters(**said).selection(now=NOW))


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, ["conflicting", "half", "parked"]),
        ({"reason": "parked"}, ["parked"]),
        ({"source": "nobody"}, []),
        ({"age": "1h"}, ["conflicting", "half", "parked"]),
        ({"age": "1d"}, []),
        ({"after": "half"}, ["parked"]),
    ],
)
def test_the_list_has_what_its_filters_let_through_and_counts_all(
    rig: Rig, said: dict[str, str], found: list[str]
) -> None:
    page = listed(rig, **said)
    assert [one.waveform_id for one in page.waveforms] == found
    assert page.counts == {"conflict": 3, "open": 1, "parked": 2}
    assert page.after is None


def test_a_reason_that_is_none_is_refused(rig: Rig) -> None:
    with pytest.raises(BadInput, match="none of a waveform"):
        listed(rig, reason="corrupt")


@pytest.mark.parametrize("bound", [("MOST", 1), ("MOST_LOOKED_AT", 1), ("MOST_CHUNKS", 3)])
def test_a_look_has_an_end_and_the_page_says_where_it_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, bound: tuple[str, int]
) -> None:
    monkeypatch.setattr(held_page, *bound)
    page = listed(rig)
    assert ([one.waveform_id for one in page.waveforms], page.after) == (["conflicting"], "conflicting")
    html = held_list_page(STREAM, Filters(reason="conflict"), page)
    assert f"{STREAM}?reason=conflict&after=conflicting" in tags_and_links(html)[1]


def test_a_page_on_which_nothing_meets_its_filters_says_whether_all_was_looked_at(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters, bounded = Filters(source="nobody"), "among those that were looked at"
    assert bounded not in held_list_page(STREAM, filters, listed(rig, source="nobody"))
    monkeypatch.setattr(held_page, "MOST_LOOKED_AT", 1)
    assert bounded in held_list_page(STREAM, filters, listed(rig, source="nobody"))


def test_one_waveform_says_which_chunks_miss_and_what_would_become_of_it(rig: Rig) -> None:
    found = held_one(rig.deployment, STREAM, "half")
    assert isinstance(found, HeldOne)
    assert (found.whole, found.missing) == (2, (1,))
    html = held_one_page(STREAM, found)
    for said in ("Of 2 chunks 1 is missing: 1", "0:3", "open", "2026-01-05 12:00:00", "decide_ecg"):
        assert said in html
    whole = held_one(rig.deployment, STREAM, "parked")
    assert isinstance(whole, HeldOne)
    assert "<strong>whole</strong>" in held_one_page(STREAM, whole)
    assert held_one(rig.deployment, STREAM, "nobody") is None


def test_nothing_that_a_producer_or_an_address_says_becomes_part_of_a_page(rig: Rig) -> None:
    found = held_one(rig.deployment, STREAM, "half")
    assert isinstance(found, HeldOne)
    (h,), states = found.waveform.held, found.waveform.states

    def pages(text: str) -> list[str]:
        hostile = replace(h, chunk=h.chunk._replace(waveform_id=text, meta=text), evidence=text)
        one = HeldWaveform(text, (hostile,), states, published=True)
        about = replace(found.partial, waveform_id=text, metadata=found.partial.metadata._replace(units=text))
        return [
            held_list_page(STREAM, Filters(source=text), HeldList({text: 1}, (one,), (Crowd(text, 3),), text)),
            held_one_page(STREAM, HeldOne(one, 2, (1,), text, {hostile: text}, found.mark, about)),
        ]

    plain = [tags_and_links(html)[0] for html in pages("w")]
    assert not plain[0] & {"script", "img"}
    for text in HOSTILE_TEXTS.values():
        for html, allowed in zip(pages(text), plain, strict=True):
            tags, links = tags_and_links(html)
            assert tags == allowed
            ours = (f"{STREAM}?", f"{STREAM}/one?id=", "one?id=", "view?id=", "../", "#main")
            assert all(link.startswith(ours) for link in links)
            assert is_plain(html.replace("\n", ""))


def test_a_waveform_with_more_chunks_than_a_page_looks_at_is_counted_and_not_loaded(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_page, "MOST_CHUNKS", 1)
    loaded: list[str] = []
    look_at = rig.tables.held

    def noting(mark: object, look: HeldLook) -> list[HeldChunk]:
        loaded.extend(look.ids)
        return look_at(mark, look)  # type: ignore[arg-type]

    monkeypatch.setattr(rig.tables, "held", noting)
    [crowd] = [held_one(rig.deployment, STREAM, "conflicting")]
    assert crowd == Crowd("conflicting", 3)
    page = listed(rig)
    assert page.crowds == (crowd, Crowd("parked", 2))
    assert not {"conflicting", "parked"} & set(loaded)
    html = held_list_page(STREAM, Filters(), page)
    assert "<code>conflicting</code> (3 chunks)" in html
    assert held_list_facts(STREAM, page)["not_looked_at"] == {"conflicting": 3, "parked": 2}


def test_a_waveform_is_told_to_programs_some_chunks_at_a_time_and_each_text_of_metadata_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = held_one(rig.deployment, STREAM, "conflicting")
    assert isinstance(found, HeldOne)
    said = held_one_facts(STREAM, found)
    (text,) = {h.chunk.meta for h in found.waveform.held}
    assert said["metadata"] == {said["held"][0]["meta"]: text}
    assert json.dumps(said).count(json.dumps(text)) == 1
    assert said["after"] is None
    monkeypatch.setattr("wavestitch.ui.facts.ROWS_SHOWN", 1)
    monkeypatch.setattr("wavestitch.ui.held_pages.ROWS_SHOWN", 1)
    pages = [held_one_facts(STREAM, found, first) for first in (0, 1, 2)]
    assert [page["after"] for page in pages] == [1, 2, None]
    assert [row for page in pages for row in page["held"]] == said["held"]
    assert "one?id=conflicting&after=1" in tags_and_links(held_one_page(STREAM, found))[1]
    assert "after=" not in held_one_page(STREAM, found, first=2)


def test_a_waveform_whose_chunks_do_not_say_how_many_there_are_is_shown_as_far_as_it_is_known(tmp_path: Path) -> None:
    found = held_one(held_rig(tmp_path, count=None).deployment, STREAM, "parked")  # type: ignore[arg-type]
    assert isinstance(found, HeldOne)
    assert (found.whole, found.missing) == (None, ())
    assert [h.chunk.seq for h, _ in found.rows()] == [0, 1]


def test_a_text_of_metadata_is_known_by_the_beginning_of_its_sha_256(rig: Rig) -> None:
    found = held_one(rig.deployment, STREAM, "half")
    assert isinstance(found, HeldOne)
    (h,) = found.waveform.held
    assert h.chunk.meta is not None
    name = hashlib.sha256(h.chunk.meta.encode()).hexdigest()[:16]
    said = held_one_facts(STREAM, found)
    assert said["metadata"] == {name: h.chunk.meta}
    assert [row["meta"] for row in said["held"]] == [name]


def test_programs_are_told_why_a_waveform_s_first_chunk_is_held(rig: Rig) -> None:
    one = held_one(rig.deployment, STREAM, "parked")
    assert isinstance(one, HeldOne)
    first, second = (replace(h, evidence=why) for h, why in zip(one.waveform.held, ("first", "second"), strict=True))
    said = waveform_said(replace(one.waveform, held=(first, second)))
    assert (said["why"], said["chunks"]) == ("first", 2)
