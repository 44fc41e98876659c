"""The map of what there is over time, over real tables: published rows, held ones, and never a part of the rows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.builders.table_rows import NOON
from tests.domain.maintenance_rig import STREAM, Rig
from tests.domain.waveform_rig import ecg, hold_one, waveform_rig, waveform_row
from tests.security.seen_tags import tags_and_links
from wavestitch.contracts.completeness import Lane
from wavestitch.contracts.errors import Refused
from wavestitch.reading import published_rows, source_map
from wavestitch.reading.published_rows import Asked, list_published
from wavestitch.reading.source_map import map_of_stream
from wavestitch.ui.map_pages import map_facts, map_page
from wavestitch.ui.waveform_pages import Search

II, V5 = Lane("monitor-1", "II"), Lane("monitor-2", "V5")
NOON_NS = 1_767_614_400 * 10**9
S = 10**9


def second(n: float) -> timedelta:
    return timedelta(seconds=n)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """Of one channel 0–20 s, 40–60 s, of which 50–60 s twice, and one that is held, 70–80 s; of another 0–10 s."""
    about = {"a": (0, 10), "b": (10, 20), "c": (40, 60), "d": (50, 60)}
    rows = [waveform_row(i, ecg(360 * (b - a)), start=NOON + second(a)) for i, (a, b) in about.items()]
    other = waveform_row("e", ecg(1000), source="monitor-2", channel="V5", rate=100.0)
    rig = waveform_rig(tmp_path_factory.mktemp("map"), [*rows, other], files=2)
    said = {"sampling_rate_hz": 360.0, "sample_count": 3600, "start_time_ns": NOON_NS + 70 * S}
    hold_one(rig, "held", source="monitor-1", channel="II", **said)
    return rig


WINDOW = Asked(start=NOON - second(60), end=NOON + second(120))
FOUND = [(0, 20, "there", 2), (20, 40, "missing", 0), (40, 50, "there", 1), (50, 60, "overlapping", 2)]
FOUND += [(60, 70, "missing", 0), (70, 80, "open", 1)]


def told(rig: Rig, asked: Asked) -> dict[Lane, list[tuple[float, float, str, int]]]:
    lanes = map_facts(STREAM, map_of_stream(rig.deployment, STREAM, asked))["lanes"]
    return {
        Lane(lane["source"], lane["channel"]): [
            ((s["start_ns"] - NOON_NS) / S, (s["end_ns"] - NOON_NS) / S, s["kind"], s["waveforms"])
            for s in lane["stretches"]
        ]
        for lane in lanes
    }


def test_published_and_held_waveforms_make_the_stretches_of_their_channels(rig: Rig) -> None:
    assert told(rig, WINDOW) == {II: FOUND, V5: [(0, 10, "there", 1)]}


def test_a_source_a_channel_and_a_window_narrow_it_down(rig: Rig) -> None:
    assert told(rig, Asked(source="monitor-2", start=WINDOW.start, end=WINDOW.end)) == {V5: [(0, 10, "there", 1)]}
    assert told(rig, Asked(channel="II", start=WINDOW.start, end=WINDOW.end)) == {II: FOUND}
    near = Asked(source="monitor-1", start=NOON + second(15), end=NOON + second(45))
    assert told(rig, near) == {II: [(15, 20, "there", 1), (20, 40, "missing", 0), (40, 45, "there", 1)]}


def test_without_a_window_it_is_the_day_before_the_newest_sample(rig: Rig) -> None:
    found = map_of_stream(rig.deployment, STREAM, Asked())
    assert (found.start, found.end) == (NOON + second(60) - timedelta(days=1), NOON + second(60))


def test_each_part_leads_to_the_waveforms_in_it(rig: Rig) -> None:
    html = map_page(STREAM, Search(), map_of_stream(rig.deployment, STREAM, WINDOW))
    links = [link for link in tags_and_links(html)[1] if "start=" in link and link.startswith(f"../{STREAM}?")]
    led = []
    for link in links:
        said = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
        rows = list_published(rig.tables, Search(**said).asked(), None).rows
        led.append(sorted(row["waveform_id"] for row in rows))
    assert led == [["a", "b"], ["c", "d"], ["c", "d"], ["e"]]
    assert f"../../held/{STREAM}?source=monitor-1" in tags_and_links(html)[1]


@pytest.mark.parametrize(("bound", "most"), [("MAP_ROWS", 2), ("MAP_FILES", 1)])
def test_of_a_part_of_the_rows_no_map_is_made(rig: Rig, monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(published_rows, bound, most)
    found = map_of_stream(rig.deployment, STREAM, WINDOW)
    assert found.lanes is None
    assert "take a shorter one" in map_page(STREAM, Search(), found)


def test_where_not_all_that_is_held_was_looked_at_the_page_says_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_map, "MOST_HELD", 0)
    found = map_of_stream(rig.deployment, STREAM, WINDOW)
    assert not found.held_whole
    assert "others may show as missing" in map_page(STREAM, Search(), found)


def test_what_a_producer_says_of_far_times_is_drawn_as_far_as_the_window_goes(tmp_path: Path) -> None:
    rig = waveform_rig(tmp_path, [waveform_row("a", ecg(100))])
    hold_one(rig, "long", source="s", channel="c", sampling_rate_hz=1e-6, sample_count=1 << 40, start_time_ns=0)
    assert told(rig, WINDOW)[Lane("s", "c")] == [(-60, 120, "open", 1)]


@pytest.mark.parametrize(
    "said", [{"start": "0001-01-01"}, {"end": "0001-01-01T06:00"}, {"start": "9999-12-31T23:59:59"}]
)
def test_windows_at_the_ends_of_the_calendar_are_drawn(rig: Rig, said: dict[str, str]) -> None:
    search = Search(**said)
    assert "What there is of" in map_page(STREAM, search, map_of_stream(rig.deployment, STREAM, search.asked()))


def test_a_window_without_a_length_is_refused(rig: Rig) -> None:
    with pytest.raises(Refused, match="let it end later"):
        map_of_stream(rig.deployment, STREAM, Asked(start=NOON, end=NOON))
