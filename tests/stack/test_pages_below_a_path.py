"""Airflow behind a path of a server (`base_url = https://host/airflow`): no page leads out of that path, and each leads
somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

from tests.security.seen_tags import tags_and_links
from tests.stack.airflow_home import ROOT, prepare_airflow
from wavestitch.local.process import wait_until

prepare_airflow()

from tests.stack.pages_lab import BELOW, LOG, RUN, Served, prepare, served  # noqa: E402

_IMPORTED = re.compile(r"""(?:from|import)\s*\(?["']([^"']+)["']""")


def crawl(site: Served) -> set[str]:
    """The paths of all pages that one comes to from the first one; each is there. Links to Airflow's own pages are
    not followed: there is none here."""
    seen: set[str] = set()
    # Of pages that differ by what a parameter says, one is enough: a map leads on for ever.
    tried: set[tuple[str, frozenset[str]]] = set()
    wanted = [f"{site.url}/", f"{site.url}/run/ingest_late?run_id={RUN}"]
    with httpx.Client(cookies={"_token": site.token}, follow_redirects=True, trust_env=False, timeout=60) as client:
        assert wait_until(lambda: "being looked at" not in client.get(wanted[0]).text, seconds=120)
        while wanted:
            url = wanted.pop()
            kind = urlsplit(url).path, frozenset(parse_qs(urlsplit(url).query))
            if kind in tried:
                continue
            tried.add(kind)
            seen.add(url)
            answer = client.get(url)
            # What is beside a stream whose file is wrong says that it cannot be used, and leads on all the same.
            assert answer.status_code == 200 or (answer.status_code == 503 and "/wrong" in url), url
            html = answer.headers["content-type"].startswith("text/html")
            links = tags_and_links(answer.text)[1] if html else _IMPORTED.findall(answer.text)
            for link in links:
                target = urljoin(str(answer.url), link).split("#")[0]
                assert urlsplit(target).netloc == urlsplit(site.url).netloc, f"{url} leads to {target}"
                assert urlsplit(target).path.startswith(f"{BELOW}/"), f"{url} leads out, to {target}"
                if target.startswith(site.url):
                    wanted.append(target)
                else:
                    assert urlsplit(target).path.startswith(f"{BELOW}/dags/"), f"{url} leads to {target}"
    return {urlsplit(url).path.removeprefix(f"{BELOW}/wavestitch") for url in seen}


def test_every_page_leads_somewhere_and_none_out_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, monkeypatch)
    with served() as site:
        found = crawl(site)
        without_slash = httpx.get(site.url, cookies={"_token": site.token}, trust_env=False)
    assert {"/", "/static/theme.js", "/static/live.js", "/run/ingest_late"} <= found
    for name in LOG:
        assert f"/stream/{name}" in found
        assert any(path.startswith((f"/held/{name}", f"/docs/{name}/")) for path in found)
    assert urlsplit(without_slash.headers["location"]).path == f"{BELOW}/wavestitch/"


@pytest.mark.parametrize("base, below", [("https://host/airflow/", "/airflow"), ("https://host", ""), ("/a/b", "/a/b")])
def test_airflow_is_told_where_the_pages_are_as_its_own_address_says(base: str, below: str) -> None:
    code = (
        f"import runpy; made = runpy.run_path({str(ROOT / 'wavestitch' / 'ui' / 'airflow_plugin.py')!r}); "
        "print(*(view['href'] for view in made['WavestitchPlugin'].external_views))"
    )
    env = {**os.environ, "AIRFLOW__API__BASE_URL": base}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    hrefs = done.stdout.split()[-2:]
    assert hrefs == [f"{below}/wavestitch/", f"{below}/wavestitch/run/{{DAG_ID}}?run_id={{RUN_ID}}"]
