"""What the page of all streams takes: `python -m benchmarks.pages`; prints its figures as JSON.

Hundreds of streams with long histories and millions of published waveforms, all real tables; a broker that takes
connections and never answers. The real application is asked, in this process, with Airflow's own login. A first look
reads every stream's tables anew; a page shows what is known by then, so it is measured how long it takes to come, and
how long until all streams were looked at.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
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


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--streams", type=int, default=200)
    asked.add_argument("--batches", type=int, default=100_000, help="of all streams together")
    asked.add_argument("--waveforms", type=int, default=10_000_000, help="of all streams together")
    wanted = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="wavestitch-pages-") as folder, _deaf_broker() as bootstrap:
        names = _make(Path(folder), bootstrap, wanted.streams, wanted.batches, wanted.waveforms)
        print(json.dumps(asyncio.run(_measure(names)), indent=1))


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
        f"[kafka]\nbootstrap = {text(bootstrap)}\n"
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
    from wavestitch.contracts.quantities import FIRST_GENERATION, Offset, Partition  # noqa: PLC0415

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
        tables.commit(None, Head(1, FIRST_GENERATION, HeadKind.FIRST, topic_id="t", positions=positions), [])
        lengthen(folder, name, tables, batches // streams)
        path = tables.data_folder() / "published.parquet"
        shutil.copy(kept, path)
        stored = tables.stored()[0]
        stored.commit_files(stored.ensure(), [f"file://{path}"])
    return names


async def _measure(names: list[str]) -> dict[str, Any]:
    import httpx  # noqa: PLC0415
    from airflow.api_fastapi.app import create_auth_manager  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    from wavestitch.ui.app import make_app  # noqa: PLC0415

    app = make_app()
    app.state.auth_manager = manager = create_auth_manager()
    token = manager.generate_jwt(SimpleAuthManagerUser(username="v", role="viewer"))
    transport, sent = httpx.ASGITransport(app=app), {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=sent, timeout=600) as client:

        async def page() -> tuple[float, str]:
            began = time.perf_counter()
            answer = await client.get("/", headers={"Accept": "text/html"})
            answer.raise_for_status()
            return time.perf_counter() - began, answer.text

        began = time.perf_counter()
        first, text = await page()
        took, shown = [first], [len(names) - text.count(">being looked at<")]
        while ">being looked at<" in text:
            await asyncio.sleep(1)
            wall, text = await page()
            took.append(wall)
            shown.append(len(names) - text.count(">being looked at<"))
        all_seen = time.perf_counter() - began
        spent = time.process_time()
        again = sorted([(await page())[0] for _ in range(_ROUNDS)])
        spent = (time.process_time() - spent) / _ROUNDS
    return {
        "streams": len(names),
        "first_answer_s": round(first, 3),
        "streams_in_the_first_answer": shown[0],
        "slowest_answer_until_all_were_seen_s": round(max(took), 3),
        "all_seen_s": round(all_seen, 1),
        "answers_until_then": len(took),
        "known_answer_median_s": round(again[len(again) // 2], 3),
        "known_answer_slowest_s": round(again[-1], 3),
        "known_answer_cpu_s": round(spent, 3),
        "page_kib": len(text) >> 10,
    }


if __name__ == "__main__":
    main()
