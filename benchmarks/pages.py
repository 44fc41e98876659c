"""What the page of all streams takes: `python -m benchmarks.pages`; prints its figures as JSON.

Hundreds of streams with long histories and millions of published waveforms, all real tables; a broker that takes
connections and never answers; fifty people with different rights. The real application is served on loopback below a
path, with Airflow's own login, and asked by a real browser and as JSON. A first look reads every stream's tables anew,
and a page shows what is known by then: so it is measured when its first words are on the screen, how long each answer
takes, and how long until all streams were looked at. In between the browser is shown a page of one word, by the same
server: what a busy machine adds to the one, it adds to the other. Needs a Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.grown_history import lengthen
from benchmarks.synthetic_rows import published_table, write_published

_ROUNDS = 20
_PEOPLE, _TEAMS = 50, 20
_BELOW = "/airflow"
_PAINTED = """new Promise(done => new PerformanceObserver(list => {
  for (const paint of list.getEntriesByName("first-contentful-paint")) done(paint.startTime);
}).observe({ type: "paint", buffered: true }))"""
_OTHERS = ("/stream/s000", "/held/s000", "/waveforms/", "/waveforms/s000", "/waveforms/s000/map")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--streams", type=int, default=200)
    asked.add_argument("--batches", type=int, default=100_000, help="of all streams together")
    asked.add_argument("--waveforms", type=int, default=10_000_000, help="of all streams together")
    wanted = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="wavestitch-pages-") as folder, _deaf_broker() as bootstrap:
        names = _make(Path(folder), bootstrap, wanted.streams, wanted.batches, wanted.waveforms)
        print(json.dumps(_measure(names), indent=1))


@contextmanager
def _deaf_broker() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _make(folder: Path, bootstrap: str, streams: int, batches: int, waveforms: int) -> list[str]:
    """The streams, each with its share, and the environment of an Airflow of its own."""
    text = json.dumps
    (folder / "streams").mkdir()
    config = folder / "wavestitch.toml"
    config.write_text(
        f"landing = {text(str(folder / 'landing'))}\ncache = {text(str(folder / 'cache'))}\n"
        f"docs = {text(str(folder / 'docs'))}\nstreams = {text(str(folder / 'streams'))}\n"
        f"most_streams = {streams}\n[kafka]\nbootstrap = {text(bootstrap)}\n"
        f"[tables]\nuri = {text(f'sqlite:///{folder}/catalog.db')}\nwarehouse = {text(f'file://{folder}/warehouse')}\n"
    )
    os.environ.update(
        WAVESTITCH_CONFIG=str(config),
        AIRFLOW_HOME=str(folder / "airflow"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{folder}/airflow.db",
        AIRFLOW__API_AUTH__JWT_SECRET="of a process that ends soon, but as long as one has to be, in bytes",  # noqa: S106
        AIRFLOW__LOGGING__LOGGING_LEVEL="CRITICAL",
    )
    from airflow.utils.db import initdb  # noqa: PLC0415 - reads the environment

    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415
    from wavestitch.contracts.position import Head, HeadKind, Position  # noqa: PLC0415
    from wavestitch.contracts.quantities import Generation, Offset, Partition  # noqa: PLC0415

    initdb()
    rows = waveforms // streams
    ids = [f"w-{n:010d}" for n in range(rows)]
    kept = folder / "published.parquet"
    write_published(kept, published_table(ids, start_us=0, step_us=800_000, samples=[b"\0\0\1\0"] * rows))
    names = [f"s{n:03d}" for n in range(streams)]
    for name in names:
        (folder / "streams" / f"{name}.yaml").write_text(f"topic: {name}\ngroup: {name}\n")
        tables = Deployment().tables(name)
        positions = {Partition(p): Position(Offset(1_000_000)) for p in range(8)}
        tables.commit(None, Head(1, Generation(1), HeadKind.FIRST, topic_id="t", positions=positions), [])
        lengthen(folder, name, tables, batches // streams, batches // streams)
        path = tables.data_folder() / "published.parquet"
        shutil.copy(kept, path)
        stored = tables.stored()[0]
        stored.commit_files(stored.ensure(), [f"file://{path}"])
    return names


def _measure(names: list[str]) -> dict[str, Any]:
    from fastapi import FastAPI  # noqa: PLC0415
    from fastapi.responses import HTMLResponse  # noqa: PLC0415
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    from tests.stack.browser import QUIET  # noqa: PLC0415
    from tests.stack.pages_lab import listening  # noqa: PLC0415
    from wavestitch.ui.app import make_app  # noqa: PLC0415

    people = _people(names)
    site, app = FastAPI(), make_app()
    app.state.auth_manager = manager = _auth_manager()
    site.mount(f"{_BELOW}/wavestitch", app)
    site.get("/one-word", response_class=HTMLResponse)(lambda: "<!DOCTYPE html><title>x</title><p>word")
    tokens = [manager.generate_jwt(_user(f"person {n}", teams)) for n, teams in enumerate(people.values())]
    with listening(site) as address, sync_playwright() as driver:
        url = f"{address}{_BELOW}/wavestitch"
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        cold = _painted(browser, f"{url}/", tokens[0])
        began = time.perf_counter()
        unknown, seconds, answers = len(names), [], 0
        while unknown:
            time.sleep(1)
            took, said = _asked(url, tokens[0], "json")
            seconds.append(took)
            unknown = said.text.count('"being looked at"')
            answers += 1
        all_seen = time.perf_counter() - began
        painted, one_word = [], []
        for _ in range(_ROUNDS):
            painted.append(_painted(browser, f"{url}/", tokens[0]))
            one_word.append(_painted(browser, f"{address}/one-word", tokens[0]))
        browser.close()
        spent = time.process_time()
        foreign, by_format = _everybody(url, tokens, list(people))
        spent = (time.process_time() - spent) / (2 * len(people))
        others = {path: _slowest(f"{url}{path}", tokens[0]) for path in _OTHERS}
    return {
        "streams": len(names),
        "people": len(people),
        "rows_that_were_not_of_who_asked": foreign,
        "first_paint_of_the_first_request_s": round(cold, 3),
        "first_paint_median_and_slowest_s": _middle_and_most(painted),
        "of_a_page_with_one_word_median_and_slowest_s": _middle_and_most(one_word),
        "answer_html_median_and_slowest_s": by_format["html"],
        "answer_json_median_and_slowest_s": by_format["json"],
        "slowest_answer_until_all_were_seen_s": round(max(seconds), 3),
        "all_seen_s": round(all_seen, 1),
        "cpu_of_an_answer_and_of_who_asks_s": round(spent, 3),
        "other_pages_html_and_json_slowest_s": others,
    }


def _people(names: list[str]) -> dict[frozenset[str], list[str]]:
    """The streams that each may read, and the teams of who may. The first may read all of them, the last none."""
    from tests.security.two_teams import TEAM_OF  # noqa: PLC0415

    drawn = random.Random(7)  # noqa: S311 - nobody is kept out by it
    teams = {name: f"team {n % _TEAMS}" for n, name in enumerate(names)}
    for name, team in teams.items():
        TEAM_OF |= {f"{dag}_{name}": team for dag in ("ingest", "backfill", "rewind", "decide", "verify")}
    found: dict[frozenset[str], list[str]] = {frozenset(names): sorted(set(teams.values()))}
    while len(found) < _PEOPLE - 1:
        mine = drawn.sample(range(_TEAMS), drawn.randrange(1, _TEAMS))
        of = [f"team {n}" for n in mine]
        found[frozenset(name for name, team in teams.items() if team in of)] = of
    return found | {frozenset(): []}


def _auth_manager() -> Any:
    from airflow.api_fastapi import app as airflow_app  # noqa: PLC0415

    from tests.security.two_teams import TeamAuthManager  # noqa: PLC0415

    airflow_app._AuthManagerState.instance = found = TeamAuthManager()
    return found


def _user(name: str, teams: list[str]) -> Any:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    return SimpleAuthManagerUser(username=name, role="viewer", teams=teams)


def _painted(browser: Any, address: str, token: str) -> float:
    """From asking to the first words on the screen, in seconds; in a window of its own, nothing cached."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.add_cookies([{"name": "_token", "value": token, "url": address}])
        page = context.new_page()
        page.goto(address)
        return float(page.evaluate(_PAINTED)) / 1000


def _asked(url: str, token: str, form: str) -> tuple[float, Any]:
    import httpx  # noqa: PLC0415

    began = time.perf_counter()
    answer = httpx.get(
        f"{url}/" if url.endswith("wavestitch") else url,
        params={"format": form},
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=600,
    )
    answer.raise_for_status()
    return time.perf_counter() - began, answer


def _everybody(url: str, tokens: list[str], people: list[frozenset[str]]) -> tuple[int, dict[str, list[float]]]:
    """Rows that somebody saw of a stream that is not theirs, or did not see of one that is; and how long it took."""
    foreign = 0
    took: dict[str, list[float]] = {"html": [], "json": []}
    everything = frozenset().union(*people)
    for token, mine in zip(tokens, people, strict=True):
        for form, seconds in took.items():
            wall, answer = _asked(url, token, form)
            seconds.append(wall)
            if form == "json":
                seen = {one["stream"] for one in answer.json()["streams"]}
            else:
                seen = {name for name in everything if f'id="stream-{name}"' in answer.text}
            foreign += len(seen ^ mine)
    return foreign, {form: _middle_and_most(seconds) for form, seconds in took.items()}


def _slowest(url: str, token: str) -> list[float]:
    return [round(max(_asked(url, token, form)[0] for _ in range(3)), 3) for form in ("html", "json")]


def _middle_and_most(seconds: list[float]) -> list[float]:
    found = sorted(seconds)
    return [round(found[len(found) // 2], 3), round(found[-1], 3)]


if __name__ == "__main__":
    main()
