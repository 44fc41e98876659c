"""The pages as a browser shows them, in both of Airflow's colours, in the frame that Airflow puts them in, by keyboard
alone, and by axe-core's rules. By `make test-airflow`: it needs a Chromium.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.domain.maintenance_rig import STREAM
from tests.domain.waveform_rig import hold_one, waveform_rig
from tests.stack.airflow_home import make_database, prepare_airflow

prepare_airflow()

from tests.stack.browser import QUIET  # noqa: E402
from tests.stack.pages_lab import BELOW, RUN, Served, listening, prepare, served  # noqa: E402

PAGES = [
    "/",
    "/stream/steady",
    "/stream/late",
    "/stream/gone",
    "/stream/away",
    "/stream/new",
    "/stream/wrong",
    "/held/steady",
    "/held/steady/one?id=w",
    "/run/ingest_late?run_id=r",
    f"/run/ingest_late?run_id={RUN}",
    "/waveforms/",
    "/waveforms/steady",
    "/waveforms/steady/map",
]
ODD_ID = 'a"><b>\u202e %41'
FRAME = """<!DOCTYPE html><html lang="en" class="dark"><title>Airflow</title><body>
<iframe id="f" title="Wavestitch" width="1200" height="800" src="{page}"
  sandbox="allow-scripts allow-same-origin allow-forms allow-downloads"></iframe></body></html>"""
"""As Airflow 3.3.2 shows an external view: these very words stand in its `sandbox`."""

_started: list[tuple[str, Any]] = []


def _as_airflow(site: Any) -> None:
    """The routes of Airflow's that our scripts use: its own page around ours, and starting a run."""
    from fastapi import Request  # noqa: PLC0415
    from fastapi.responses import HTMLResponse, JSONResponse  # noqa: PLC0415

    async def start(request: Request) -> JSONResponse:
        dag_id = request.path_params["dag_id"]
        _started.append((dag_id, await request.json()))
        refused = dag_id == "ingest_steady"
        return JSONResponse({"detail": "no"} if refused else {"dag_run_id": "manual__1"}, 403 if refused else 200)

    async def frame(request: Request) -> HTMLResponse:
        return HTMLResponse(FRAME.format(page=f"{BELOW}/wavestitch/{request.query_params['of']}"))

    site.router.add_route(BELOW + "/api/v2/dags/{dag_id}/dagRuns", start, methods=["POST"])
    site.router.add_route(BELOW + "/plugin/wavestitch", frame)
    site.router.add_route("/favicon.ico", lambda _: JSONResponse({}))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        prepare(tmp_path_factory.mktemp("pages"), patch)
        with served(_as_airflow) as found:
            yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it starts a program of its own

    program = shutil.which("chromium")
    assert program, "no Chromium is installed here; on Debian: apt-get install chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        browser.close()


@contextmanager
def shown(
    chromium: Any, site: Served, path: str, *, theme: str = "light", frame: bool = False, width: int = 1300
) -> Iterator[Any]:
    """The page once all that it shows was looked at. Whatever the browser complains of fails the test."""
    with chromium.new_context(viewport={"width": width, "height": 900}, locale="en-GB") as context:
        context.add_cookies([{"name": "_token", "value": site.token, "url": site.url}])
        context.add_init_script(f"localStorage.setItem('theme', '{theme}')")
        page = context.new_page()
        page.set_default_timeout(120_000)
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(
            f"{site.url.removesuffix('/wavestitch')}/plugin/wavestitch?of={path[1:]}" if frame else site.url + path
        )
        if not frame:
            page.locator("[aria-busy=true]").wait_for(state="detached")
        yield page
        # What a test brings about itself, and what Chromium has to say of the frame as Airflow makes it.
        expected = ("403", "ERR_FAILED", "can escape its sandboxing")
        assert [c for c in complaints if not any(e in c for e in expected)] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page_in_either_colours(chromium: Any, site: Served, theme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    found = {}
    for path in PAGES:
        with shown(chromium, site, path, theme=theme) as page:
            assert page.locator("html").get_attribute("data-theme") == theme
            violations = Axe().run(page).response["violations"]
            found[path] = [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in violations]
    assert {path: bad for path, bad in found.items() if bad} == {}


def test_no_page_is_wider_than_a_phone(chromium: Any, site: Served) -> None:
    """What is wider in it, a table, is moved by itself."""
    wide = {}
    for path in PAGES:
        with shown(chromium, site, path, width=360) as page:
            wide[path] = page.evaluate("document.documentElement.scrollWidth")
    assert {path: width for path, width in wide.items() if width > 360} == {}


def test_the_colours_follow_airflow_s_own_and_change_with_them(chromium: Any, site: Served) -> None:
    with shown(chromium, site, "/stream/late", frame=True) as page:
        inside = page.frame_locator("#f")
        inside.locator("html[data-theme=dark]").wait_for()
        dark = inside.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        page.evaluate("document.documentElement.className = 'light'")
        inside.locator("html[data-theme=light]").wait_for()
        assert inside.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") != dark


def test_a_link_to_airflow_leads_airflow_there_although_its_frame_may_not(chromium: Any, site: Served) -> None:
    with shown(chromium, site, "/stream/late", frame=True) as page:
        page.frame_locator("#f").get_by_role("link", name="rewind").click()
        page.wait_for_url(f"**{BELOW}/dags/rewind_late")
        assert page.frame_locator("#f").get_by_role("heading", name="late").count() == 1


def test_all_can_be_reached_and_used_by_keyboard(chromium: Any, site: Served) -> None:
    with shown(chromium, site, "/") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("Tab")
        page.keyboard.type("LAT")
        assert page.locator("#streams tbody tr:visible th").all_inner_texts() == ["late"]
        page.locator("#stream-late").focus()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="late", exact=True).wait_for()
        page.get_by_role("button", name="Start a batch now").focus()
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", "who has no mouse must see where they are"


def test_a_batch_is_started_by_airflow_s_own_api_once_it_was_asked_for_twice(chromium: Any, site: Served) -> None:
    _started.clear()
    for stream, said in (("late", "Started: run manual__1."), ("steady", "You may not start runs of this DAG.")):
        with shown(chromium, site, f"/stream/{stream}") as page:
            page.get_by_role("button", name="Start a batch now").click()
            assert len(_started) == (stream == "steady")
            page.get_by_role("button", name="Press again to do it").click()
            page.get_by_text(said).wait_for()
    assert _started == [("ingest_late", {"logical_date": None}), ("ingest_steady", {"logical_date": None})]


@pytest.fixture
def two_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A stream that holds two waveforms, one with an id of a stranger's. For one test: settings are a process's."""
    make_database()
    rig = waveform_rig(tmp_path, [])
    for name in ("half", ODD_ID):
        hold_one(rig, name, source="ward", channel="II")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    with served(_as_airflow) as found:
        yield found


def test_what_is_held_is_chosen_by_keyboard_and_a_preview_of_a_decision_about_exactly_that_is_asked_for(
    chromium: Any, two_held: Served
) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    _started.clear()
    with shown(chromium, two_held, f"/held/{STREAM}") as page:
        page.get_by_label("All of this page").focus()
        page.keyboard.press("Space")
        page.get_by_text("Decision about 2 chosen").wait_for()
        page.get_by_label("half").focus()
        page.keyboard.press("Space")
        page.get_by_text("Decision about 1 chosen").wait_for()
        page.get_by_label("Decision about").focus()
        page.keyboard.type("discard")
        page.keyboard.press("Tab")
        page.keyboard.type("no patient")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="What it would do").wait_for()
        assert Axe().run(page).response["violations"] == []
        assert (
            page.get_by_role("link", name="What it would do")
            .get_attribute("href")
            .endswith(f"run/decide_{STREAM}?run_id=manual__1")
        )
    conf = {"action": "discard", "why": "no patient", "ids": [ODD_ID]}
    assert _started == [(f"decide_{STREAM}", {"logical_date": None, "conf": conf})]
    with shown(chromium, two_held, f"/held/{STREAM}/one?id=half", width=360) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.get_by_label("Decision about").select_option("pick")
        page.get_by_label("Copy").fill("first")
        page.get_by_label("Why").fill("the first is right")
        page.get_by_role("button", name="Show what it would do").click()
        page.get_by_role("link", name="What it would do").wait_for()
        assert Axe().run(page).response["violations"] == []
    assert _started[1][1]["conf"] == {"action": "pick", "why": "the first is right", "ids": ["half"], "copy": "first"}


def test_what_is_shown_is_kept_up_and_who_types_is_not_disturbed(chromium: Any, site: Served) -> None:
    with shown(chromium, site, "/") as page:
        field = page.get_by_label("Show only")
        field.fill("gone")
        field.focus()
        page.evaluate("document.getElementById('streams').dataset.old = 'yes'")
        page.locator("#streams:not([data-old])").wait_for()
        assert page.evaluate("document.activeElement.matches('[data-filter]')")
        assert field.input_value() == "gone"
        assert page.locator("#streams tbody tr:visible th").all_inner_texts() == ["gone"]


def test_a_page_that_is_not_answered_says_that_it_may_be_old(chromium: Any, site: Served) -> None:
    with shown(chromium, site, "/") as page:
        page.route("**/wavestitch/", lambda route: route.abort())
        page.get_by_text("Airflow has not answered").wait_for()
        assert page.locator("#stream-late").count() == 1


@contextmanager
def airflow_with_our_pages() -> Iterator[tuple[str, str]]:
    """Airflow's own API server with its own pages, in this process: its address, and the login of an admin. Nothing is
    scheduled there."""
    from airflow.api_fastapi.app import create_app, get_auth_manager  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    app = create_app(apps="core")
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="admin", role="admin"))
    with listening(app) as address:
        yield address, token


def test_in_airflow_s_own_pages_a_link_leads_to_its_form_and_its_api_is_asked_as_who_is_logged_in(
    chromium: Any, site: Served
) -> None:
    assert site.token
    with (
        airflow_with_our_pages() as (address, token),
        chromium.new_context(viewport={"width": 1300, "height": 900}) as c,
    ):
        c.add_cookies([{"name": "_token", "value": token, "url": address}])
        page = c.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{address}/plugin/wavestitch")
        inside = page.frame_locator("iframe[title=Wavestitch]")
        page.evaluate("localStorage.setItem('theme', 'dark')")
        page.reload()
        inside.locator("html[data-theme=dark]").wait_for()
        inside.get_by_role("link", name="new", exact=True).click()
        inside.get_by_role("button", name="Start a batch now").click()
        inside.get_by_role("button", name="Press again to do it").click()
        # This Airflow has read no DAGs; whoever were not logged in, or had no right, would be told that.
        inside.get_by_text("This DAG is not there, or you may not see it.").wait_for()
        inside.get_by_role("link", name="rewind").click()
        page.wait_for_url(f"{address}/dags/rewind_new**")
        page.get_by_text("rewind_new").first.wait_for()
        assert page.locator("iframe[title=Wavestitch]").count() == 0, "Airflow must show its own page now"
