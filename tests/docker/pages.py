"""What people see of a composition that runs: Airflow's own UI, our pages behind its login, the Data Docs of a batch.

Asks the API server at its own address, as a browser does; changes nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import httpx

_SECONDS = 60
_DOCS = re.compile(r'href="\.\./(docs/[^"]+/index\.html)"')
_PROBLEM = re.compile(r'<p class="first">(.*)</p>')


def unseen(url: str, *, user: str, password: str, streams: Sequence[str]) -> list[str]:
    """What is not shown that ought to be, and what is shown to nobody in particular. `streams`: with batches."""
    try:
        return _unseen(url, user=user, password=password, streams=streams)
    except httpx.HTTPError as error:
        return [f"the pages do not answer: {type(error).__name__}: {error}"]


def _unseen(url: str, *, user: str, password: str, streams: Sequence[str]) -> list[str]:
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
        found = [] if "<html" in client.get("/").text.lower() else ["Airflow's UI is not there"]
        if (code := client.get("/wavestitch/").status_code) != 401:
            found.append(f"the page of all streams answers {code} without a login")
        token = client.post("/auth/token", json={"username": user, "password": password}).json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        overview = client.get("/wavestitch/").text
        found += [f"the page of all streams does not name {n}" for n in streams if f'href="stream/{n}"' not in overview]
        for name in streams:
            text = _settled(client, name)
            said = " ".join(_PROBLEM.findall(text)) or "it names no trouble"
            found += [] if _DOCS.search(text) else [f"the page of stream {name} has no batch of it; {said}"]
            for page in _DOCS.findall(text)[:1]:
                answer = client.get(f"/wavestitch/{page}")
                if answer.status_code != 200 or "Gate:" not in answer.text:
                    found.append(f"the Data Docs {page} answer {answer.status_code}")
    return found


def _settled(client: httpx.Client, name: str) -> str:
    """The page of a stream, once it was looked at for it."""
    deadline = time.monotonic() + _SECONDS
    while True:
        text = client.get(f"/wavestitch/stream/{name}").text
        if _DOCS.search(text) or time.monotonic() > deadline:
            return text
        time.sleep(1)  # between two looks
