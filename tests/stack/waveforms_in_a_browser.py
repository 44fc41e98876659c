"""Waveforms in a real browser: zoomed in by the keyboard until the samples are those of the source, the map against an
oracle, what fails said. By `make test-airflow`: it needs a Chromium.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders.table_rows import NOON
from tests.domain.maintenance_rig import STREAM
from tests.domain.waveform_rig import RATE, ecg, hold_one, waveform_rig, waveform_row
from tests.stack.airflow_home import make_database, prepare_airflow
from tests.stack.browser import QUIET
from tests.stack.pages_lab import Served, served
from tests.unit.test_completeness import oracle
from wavestitch.contracts.completeness import span_of

prepare_airflow()
NOON_NS = 1_767_614_400 * 10**9
LONG = 300_000
HELD_NS = NOON_NS + 3000 * 10**9


def rows() -> list[dict[str, Any]]:
    """A long ECG with a spike; short ones with gaps between them and one twice; floats that are no number."""
    long = ecg(LONG)
    long[123_457] = 2000
    made = [waveform_row("long", long, start=NOON, chunks=900)]
    for n, (start, seconds) in enumerate([(1000, 100), (1100, 50), (1400, 100), (1450, 60)]):
        raw = ecg(round(seconds * RATE), seed=n)
        made.append(waveform_row(f"short-{n}", raw, start=NOON + timedelta(seconds=start), source="monitor-2"))
    return made


@contextmanager
def page_of(pages: Served, path: str, *, refused: bool = False, **how: Any) -> Iterator[Any]:
    """Playwright's `Page`, as somebody sees it who may look. A word on its console, or an error, fails the test;
    `refused`: but for what Chromium says of an answer 422."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it starts a program of its own

    said: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        try:
            how = {"viewport": {"width": 1200, "height": 900}, **how}
            context = browser.new_context(timezone_id="Asia/Tokyo", **how)
            context.add_cookies([{"name": "_token", "value": pages.token, "url": pages.url}])
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.goto(f"{pages.url}{path}")
            yield page
        finally:
            browser.close()
    assert [text for text in said if not refused or "422" not in text] == []


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    make_database()
    rig = waveform_rig(tmp_path, rows(), files=2)
    said = {"sampling_rate_hz": RATE, "sample_count": round(RATE * 60), "start_time_ns": HELD_NS}
    hold_one(rig, "half", source="monitor-1", channel="II", **said)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    with served() as found:
        yield found


def shown(page: Any) -> str:
    page.wait_for_selector("#plot-status[data-state=shown]")
    text: str = page.inner_text("#plot-status")
    return text


def test_zooming_in_by_the_keyboard_ends_with_the_samples_of_the_source(pages: Served) -> None:
    sent = rows()[0]["samples"]
    with page_of(pages, f"/waveforms/{STREAM}") as page:
        page.fill("input[name=id]", "long")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="long").click()
        whole = shown(page)
        assert f"Samples 0 to {LONG} of {LONG}, least and greatest of" in whole
        assert f"to {2000 / 200:g} mV" in whole  # a single sample among 300 000
        assert "899 seams (too many to draw: zoom in)" in whole
        page.focus(".plot")
        while "each of them" not in shown(page):
            page.keyboard.press("+")
        page.keyboard.press("ArrowRight")
        shown(page)
        page.locator("#plot-table summary").click()
        cells = page.locator("#plot-table tr").evaluate_all(
            "rows => rows.slice(1).map(row => [...row.cells].map(cell => cell.textContent))"
        )
        assert len(cells) >= 100
        for sample, physical, raw in cells:
            assert int(raw) == sent[int(sample)]
            assert float(physical) == sent[int(sample)] / 200
        address = page.url
        page.keyboard.press("Tab")
        page.goto(address)  # the address keeps what is looked at
        assert shown(page).split(",")[0] == f"Samples {address.partition('from=')[2].replace('&to=', ' to ')} of {LONG}"
        page.get_by_role("button", name="Whole").click()
        assert shown(page) == whole


def test_the_map_in_the_browser_is_what_an_oracle_finds_and_leads_to_the_waveforms(pages: Served) -> None:
    window = "start=2026-01-05T11:50&end=2026-01-05T13:00"
    with page_of(pages, f"/waveforms/{STREAM}/map?{window}") as page:
        drawn = page.locator("table.map tbody tr").evaluate_all(
            "rows => rows.map(row => [row.cells[0].textContent, [...row.querySelectorAll('rect')].map(rect => "
            "[rect.getAttribute('class'), +rect.getAttribute('x'), +rect.getAttribute('width')])])"
        )
        page.locator("svg a[aria-label^=overlapping]").click()
        page.wait_for_url("**start=*")
        found = page.locator("tbody tr td:first-child").all_inner_texts()
    spans: dict[str, list] = {"monitor-1": [], "monitor-2": []}
    for row in rows():
        at = {"start_ns": row["start_time_ns"], "samples": row["sample_count"], "rate_hz": RATE}
        spans[row["source"]].append(span_of(**at))
    spans["monitor-1"].append(span_of(start_ns=HELD_NS, samples=round(RATE * 60), rate_hz=RATE, held=True))
    start, length = NOON_NS - 600 * 10**9, 4200 * 10**9
    assert [name for name, _ in drawn] == list(spans)
    for name, rects in drawn:
        wanted = oracle(spans[name])
        assert [kind for kind, _, _ in rects] == [kind for _, _, kind in wanted]
        for (_, x, width), (begin, end, _) in zip(rects, wanted, strict=True):
            assert x == pytest.approx(1000 * (begin - start) / length, abs=0.01)
            assert width == pytest.approx(max(1.5, 1000 * (end - begin) / length), abs=0.01)
    assert found == ["short-2", "short-3"]


def test_what_is_there_of_a_waveform_that_is_held_is_drawn_and_what_misses_is_said(pages: Served) -> None:
    with page_of(pages, f"/held/{STREAM}/one?id=half") as page:
        whole = shown(page)
        assert "Samples 0 to 21600 of 21600" in whole  # by ws-meta, where 20 are there
        assert "not there: chunk 1." in whole
        page.focus(".plot")
        page.keyboard.press("Home")
        while "each of them" not in shown(page):
            page.keyboard.press("+")
            page.keyboard.press("Home")
        page.locator("#plot-table summary").click()
        cells = page.locator("#plot-table tr").evaluate_all(
            "rows => rows.slice(1).map(row => [...row.cells].map(cell => cell.textContent))"
        )
        assert len(cells) > 100
        for sample, value, raw in cells:
            assert (value, raw) == (("1", "1") if int(sample) < 20 else ("no number", "not there"))


HOSTILE = ["<script>document.title='run'</script>", "\u202egnp.exe\u202c", "w" * 200, "a b&id=x#y\"'%00"]


def test_hostile_names_are_shown_on_a_phone_and_lead_to_what_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_database()
    raw = ecg(3600)
    rig = waveform_rig(tmp_path, [waveform_row(name, raw, source=name, channel=name) for name in HOSTILE])
    for name in HOSTILE:
        hold_one(rig, f"{name}!", source=name, channel=name, sampling_rate_hz=RATE, sample_count=3600)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    with served() as pages, page_of(pages, f"/waveforms/{STREAM}", viewport={"width": 360, "height": 700}) as page:
        for listed, shown_by in ((f"/waveforms/{STREAM}", "#plot-status[data-state=shown]"), (f"/held/{STREAM}", "h1")):
            page.goto(f"{pages.url}{listed}")
            links = page.locator("tbody td a:has(code)").evaluate_all("links => links.map(link => link.href)")
            assert len(links) == len(HOSTILE)
            for path in (page.url, *links, f"{pages.url}/waveforms/{STREAM}/map"):
                page.goto(path)
                if path in links:
                    page.wait_for_selector(shown_by)
                assert page.title() != "run"
                assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
                assert "\u202e" not in page.content()


def test_samples_that_are_no_number_are_told_and_the_plot_follows_dark_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = np.sin(np.arange(2000) / 30).astype("<f4")
    raw[500:600] = np.nan
    make_database()
    row = waveform_row("gap", raw, sample_format="f32le", gain=1.0)
    waveform_rig(tmp_path, [row], samples="float")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    with served() as pages, page_of(pages, f"/waveforms/{STREAM}/one?id=gap", color_scheme="dark") as page:
        assert "1 place with samples that are no number" in shown(page)
        assert page.locator("#plot canvas").count() == 1


def test_what_cannot_be_shown_is_said_and_can_be_tried_again(pages: Served) -> None:
    with page_of(pages, f"/waveforms/{STREAM}/one?id=short-0", refused=True) as page:
        whole = shown(page)
        page.route("**/view?*", lambda route: route.fulfill(status=422, body=json.dumps({"note": "gone"})))
        page.get_by_role("button", name="Zoom in").click()
        page.wait_for_selector("#plot-status[data-state=error]")
        assert "gone" in page.inner_text("#plot-status")
        page.unroute("**/view?*")
        page.get_by_role("button", name="Whole").click()
        assert shown(page) == whole
