"""The pages of waveforms over real tables: found in few files, shown in parts, and what is said of their chunks."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.builders.table_rows import NOON
from tests.domain.maintenance_rig import STREAM, Rig
from tests.domain.waveform_rig import RATE, ecg, waveform_rig, waveform_row
from tests.security.hostile_text import HOSTILE_TEXTS
from tests.security.seen_tags import tags_and_links
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.harmless import is_plain
from wavestitch.reading import published_rows, waveform_view
from wavestitch.reading.extremes import Extremes
from wavestitch.reading.published_rows import Asked, Found, find_published, list_published
from wavestitch.reading.waveform_view import KeptBlocks, View, view_of
from wavestitch.ui.waveform_facts import list_facts, one_facts, view_facts
from wavestitch.ui.waveform_pages import Search, waveform_page, waveforms_page

LENGTHS = {"w0": 3000, "w1": 100_000, "w2": 50, "w3": 700_000, "w4": 9, "w5": 4000, "w6": 4001}


def rows() -> list[dict]:
    return [
        waveform_row(
            name,
            ecg(length, seed=n),
            source=f"monitor-{n % 2}",
            channel="II" if n < 4 else "V5",
            start=NOON + timedelta(hours=n),
            chunks=min(length, 7),
        )
        for n, (name, length) in enumerate(LENGTHS.items())
    ]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return waveform_rig(tmp_path_factory.mktemp("waveforms"), rows(), files=3)


def listed(rig: Rig, **said: str) -> list[str]:
    search, found = Search(**said), []
    while True:
        page = list_published(rig.tables, search.asked(), search.place())
        found += [row["waveform_id"] for row in page.rows]
        assert page.opened <= page.files
        if page.after is None:
            return sorted(found)
        search = replace(search, after=list_facts(STREAM, page)["after"])


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, [*LENGTHS]),
        ({"id": "w3"}, ["w3"]),
        ({"id": "nobody"}, []),
        ({"source": "monitor-1"}, ["w1", "w3", "w5"]),
        ({"source": "monitor-1", "channel": "V5"}, ["w5"]),
        # Those that reach into the time: w1 begins at 13:00 and has 277 s.
        ({"start": "2026-01-05T13:04:37", "end": "2026-01-05T13:04:38"}, ["w1"]),
        ({"start": "2026-01-05T13:04:38", "end": "2026-01-05T14:00"}, []),
        ({"start": "2026-01-05T14:04:37+01:00", "end": "2026-01-05T13:04:38Z"}, ["w1"]),
        ({"end": "2026-01-05T12:00"}, []),
    ],
)
def test_waveforms_are_found_by_id_source_channel_and_time(rig: Rig, said: dict[str, str], found: list[str]) -> None:
    assert listed(rig, **said) == found


@pytest.mark.parametrize(("most_rows", "most_files"), [(1, 32), (2, 1), (3, 2), (50, 1)])
def test_a_page_has_so_many_rows_out_of_so_many_files_and_pages_have_each_row_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, most_rows: int, most_files: int
) -> None:
    monkeypatch.setattr(published_rows, "PAGE_ROWS", most_rows)
    monkeypatch.setattr(published_rows, "PAGE_FILES", most_files)
    page = list_published(rig.tables, Asked(), None)
    assert len(page.rows) <= most_rows
    assert page.opened <= most_files
    assert page.after is not None
    assert listed(rig) == [*LENGTHS]


def test_a_list_goes_on_in_the_snapshot_that_it_began_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = waveform_rig(tmp_path, rows(), files=3)
    monkeypatch.setattr(published_rows, "PAGE_ROWS", 2)
    page = list_published(rig.tables, Asked(), None)
    rig.publish("later")
    found = [row["waveform_id"] for row in page.rows]
    while page.after is not None:
        page = list_published(rig.tables, Asked(), page.after)
        found += [row["waveform_id"] for row in page.rows]
    assert sorted(found) == [*LENGTHS]
    gone = replace(list_published(rig.tables, Asked(), None).after, snapshot_id=7)
    with pytest.raises(Refused, match="begin it again"):
        list_published(rig.tables, Asked(), gone)


def test_an_index_of_ids_that_is_made_between_two_pages_leaves_no_row_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    for n in range(4):  # by its bounds each file may have the id
        rig.publish(f"a{n}", f"z{n}", *(["m"] if n == 3 else []))
    monkeypatch.setattr(published_rows, "PAGE_FILES", 2)
    first = list_published(rig.tables, Asked("m"), None)
    assert (first.rows, first.after is None) == ((), False)
    rig.tables.published(["m"])  # as each batch does it
    rest = list_published(rig.tables, Asked("m"), first.after)
    assert [row["waveform_id"] for row in rest.rows] == ["m"]
    assert list_published(rig.tables, Asked("m"), None).files == 1


@pytest.mark.parametrize("said", ["yesterday", "2026-13-01", "0001-01-01T00:00+12:00", "\x00"])
def test_a_time_that_is_none_is_said_on_the_page_with_the_form(rig: Rig, said: str) -> None:
    with pytest.raises(BadInput):
        list_published(rig.tables, Search(start=said).asked(), None)


@pytest.mark.parametrize("said", ["x", "1-2", "1-2-3-4", "-1-2-3", "1-2-99999999999999999999"])
def test_a_place_that_no_page_has_given_out_is_refused(said: str) -> None:
    with pytest.raises(BadInput, match="begin the list again"):
        Search(after=said).place()


def found(rig: Rig, name: str) -> Found:
    one = find_published(rig.tables, name, None)
    assert one is not None
    return one


def view(one: Found, start: int, end: int, *, buckets: int = 500, kept: KeptBlocks | None = None) -> View:
    return view_of(
        len(one.stored),
        (start, end),
        buckets=buckets,
        sample_format=one.row["sample_format"],
        parts=one.parts,
        kept=kept or KeptBlocks(),
        key=one.stored.key,
    )


@pytest.mark.parametrize("name", LENGTHS)
def test_any_part_of_any_waveform_is_what_was_published(rig: Rig, name: str) -> None:
    length = LENGTHS[name]
    whole = ecg(length, seed=[*LENGTHS].index(name))
    one, kept = found(rig, name), KeptBlocks()
    for start, end in ((0, length), (0, 1), (length - 1, length), (length // 3, length // 2), (length - 4000, 10**9)):
        seen = view(one, start, end, kept=kept)
        first, behind = max(0, start), min(length, max(end, start + 1))
        assert seen.start <= first < behind <= seen.end
        if behind - first <= 4000:
            assert (seen.start, seen.end) == (first, behind)
            assert seen.raw.tolist() == whole[first:behind].tolist()
            assert seen.raw.dtype == whole.dtype
            assert view_facts(one.row, seen)["raw"] == [str(x) for x in whole[first:behind].tolist()]
        else:
            assert seen.raw is None
            width = seen.extremes.width
            least = [min(whole[n : n + width].tolist()) for n in range(seen.start, seen.end, width)]
            assert seen.extremes.least.tolist() == least
            assert len(least) <= 500


def test_a_wide_view_is_made_of_blocks_that_are_read_once(rig: Rig) -> None:
    one, kept = found(rig, "w3"), KeptBlocks()
    read = []

    class Counted(Found):
        def parts(self, start: int, end: int):
            read.append((start, end))
            return super().parts(start, end)

    counted = Counted(one.table, one.stored)
    for start, end in ((0, 700_000), (0, 690_000), (5000, 700_000)):
        view(counted, start, end, buckets=100, kept=kept)
    assert read == [(0, 700_000)]
    view(counted, 100_000, 110_000, buckets=100, kept=kept)
    assert read[1][1] - read[1][0] < 11_000


@pytest.mark.parametrize(("most_bytes", "times"), [(1000, 3), (1 << 20, 2)])
def test_blocks_are_kept_within_so_many_bytes(rig: Rig, most_bytes: int, times: int) -> None:
    one = view(found(rig, "w1"), 0, 100_000).extremes
    made = 0

    def make() -> Extremes:
        nonlocal made
        made += 1
        return one

    kept = KeptBlocks(most_bytes)
    for name in ("a", "b", "a"):
        assert kept.of((name,), make) is one
    assert made == times


@pytest.mark.parametrize("gain", [200.0, -200.0])
def test_what_is_shown_is_in_the_unit_and_a_gain_below_nothing_turns_it_round(tmp_path: Path, gain: float) -> None:
    raw = ecg(20_000)
    rig = waveform_rig(tmp_path, [waveform_row("w", raw, gain=gain)])
    one = found(rig, "w")
    wide, near = (view_facts(one.row, view(one, 0, end)) for end in (20_000, 500))
    values = raw / gain
    assert near["physical"] == values[:500].tolist()
    for said, of in (("least", min), ("greatest", max)):
        assert wide[said] == [of(values[n : n + wide["width"]].tolist()) for n in range(0, 20_000, wide["width"])]


def test_samples_that_are_no_number_are_told_as_ranges_and_never_as_numbers(tmp_path: Path) -> None:
    raw = np.sin(np.arange(30_000) / 40).astype("<f4")
    raw[100:150], raw[20_000], raw[29_999] = np.nan, np.inf, -np.inf
    rig = waveform_rig(tmp_path, [waveform_row("w", raw, sample_format="f32le", gain=1.0)], samples="float")
    one = found(rig, "w")
    near = view_facts(one.row, view(one, 90, 160))
    assert near["lacking"] == [[100, 150]]
    assert near["physical"][10:60] == [None] * 50
    assert near["raw"][9:11] == [repr(float(raw[99])), "nan"]
    wide = view_facts(one.row, view(one, 0, 30_000))
    assert {start // 64 * 64 for start, _ in wide["lacking"]} == {64, 19968, 29952}
    json.dumps([near, wide], allow_nan=False)


def test_64_bits_are_told_exactly(tmp_path: Path) -> None:
    raw = np.array([2**63 - 1, -(2**63), 2**53 + 1, 0], "<i8")
    rig = waveform_rig(tmp_path, [waveform_row("w", raw, sample_format="i64le")], samples="long")
    assert view_facts(found(rig, "w").row, view(found(rig, "w"), 0, 4))["raw"] == [str(int(x)) for x in raw]


def test_each_chunk_is_told_with_where_it_lay_and_the_samples_that_it_brought(rig: Rig) -> None:
    one = found(rig, "w1")
    said = one_facts(STREAM, one.row, 0)["chunks"]
    assert [c["chunk"] for c in said] == [*range(7)]
    assert (said[0]["start"], said[-1]["end"]) == (0, 100_000)
    for c, chunk in zip(said, one.row["chunks"], strict=True):
        told = {name: chunk[name] for name in ("topic_id", "partition", "offset", "length")}
        assert told.items() <= c.items()
        assert c["sha256"] == chunk["piece"].hex()
        assert c["batch"] == "plan"
    part = view_facts(one.row, view(one, said[2]["end"] - 5, said[2]["end"] + 5))
    assert part["seams"] == [said[2]["end"]]
    assert part["chunks"] == said[2:4]
    whole = view_facts(one.row, view(one, 0, 100_000))
    assert whole["seams"] == [c["end"] for c in said[:-1]]


def test_what_a_view_sends_is_bounded(tmp_path: Path) -> None:
    """Whatever the samples and however many chunks: the widest texts that a sample has, and 4000 chunks."""
    raw = np.full(200_000, -1.7976931348623157e308)
    row = waveform_row("w", raw, sample_format="f64le", chunks=4000, gain=1.1)
    rig = waveform_rig(tmp_path, [row], samples="double")
    one = found(rig, "w")
    for start, end in ((0, 200_000), (0, 4000), (0, 4001), (100, 200)):
        said = json.dumps(view_facts(one.row, view(one, start, end, buckets=waveform_view.MOST_BUCKETS)))
        assert len(said) < 256 << 10, (start, end)


def test_a_waveform_is_found_by_its_time_without_opening_other_files(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_rows, "PAGE_FILES", 0)
    with pytest.raises(Refused, match="may lie in any of"):
        find_published(rig.tables, "w3", None)
    monkeypatch.setattr(published_rows, "PAGE_FILES", 1)
    start_ns = next(row["start_time_ns"] for row in rows() if row["waveform_id"] == "w3")
    assert find_published(rig.tables, "w3", start_ns).row["waveform_id"] == "w3"
    assert find_published(rig.tables, "w3", start_ns + 10**18) is None


def test_texts_of_strangers_are_harmless_on_every_page_and_found_by_their_links(tmp_path: Path) -> None:
    texts = [HOSTILE_TEXTS[name] for name in HOSTILE_TEXTS if name != "lone surrogates" and "megabyte" not in name]
    made = []
    for text in texts:
        row = waveform_row(text, ecg(50), source=text, channel=text, units=text)
        made.append(row | {"plan_id": text, "topic_id": text})
    rig = waveform_rig(tmp_path, made)
    for text in texts:
        search = Search(id=text, source=text, channel=text)
        page = list_published(rig.tables, search.asked(), None)
        assert [one["waveform_id"] for one in page.rows] == [text]
        one = found(rig, text)
        for html in (
            waveforms_page(STREAM, search, page),
            waveforms_page(STREAM, search, None, text),
            waveform_page(STREAM, one.row, 0, text),
        ):
            tags, _ = tags_and_links(html)
            assert not tags & {"script", "img", "iframe", "svg"}
            assert all(is_plain(line) for line in html.split("\n"))


def test_a_table_without_rows_or_not_there_yet_says_so(tmp_path: Path) -> None:
    empty = waveform_rig(tmp_path / "empty", [])
    assert list_published(empty.tables, Asked(), None).rows == ()
    assert "No published waveform" in waveforms_page(STREAM, Search(), list_published(empty.tables, Asked(), None))
    with pytest.raises(Refused, match="nothing was published"):
        list_published(Rig(tmp_path / "none").tables, Asked(), None)


def test_the_rate_says_how_long_it_is(rig: Rig) -> None:
    page = list_published(rig.tables, Asked("w0"), None)
    assert f'<td class="short">{3000 / RATE:g}</td>' in waveforms_page(STREAM, Search(), page)
