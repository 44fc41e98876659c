"""The pages as somebody meets them: served on loopback below a path, behind the login, over streams of every kind.

Tables, rights, routes and templates are the real ones; what the log says is given, since it takes days to come to that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.builders.heads import make_head, make_row
from tests.stack.airflow_home import make_database, write_settings
from wavestitch.batch.brief_facts import BriefFacts
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.stream_facts import PartitionFacts, StreamFacts
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.headroom import Retention, Thresholds, Unread, judge_room
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Milliseconds, Offset, Partition
from wavestitch.contracts.reasons import Fate
from wavestitch.local.process import wait_until
from wavestitch.ui.looks import Looks

PLAN = "b" * 32
RUN = "manual__failed"
BELOW = "/airflow"
HOUR = 3_600_000
POSITIONS = {Partition(p): Offset(at) for p, at in enumerate((700, 900, 1000, 40))}
LOG: Mapping[str, tuple[int, int] | None] = {"steady": (0, 1), "late": (0, 40), "gone": (200, 60), "away": None}
"""Of each stream: where its log begins, and how old (h) its first unread record is, of 72; None: it does not answer."""


@dataclass(frozen=True)
class Served:
    """`url`: of the pages, without the last slash. `token`: of somebody who may look."""

    url: str
    token: str
    app: Any


def prepare(folder: Path, monkeypatch: Any) -> None:
    """Streams with a batch each and its Data Docs, one without, one whose file is wrong, and a run that failed."""
    make_database()
    fail_a_run("ingest_late", RUN)
    (folder / "streams").mkdir()
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(folder, streams=folder / "streams")))
    for name in (*LOG, "new"):
        (folder / "streams" / f"{name}.yaml").write_text(f"topic: {name}-topic\ngroup: {name}\n")
    (folder / "streams" / "wrong.yaml").write_text("topic: <script>\n")
    for name in LOG:
        docs = folder / "docs" / name / PLAN
        docs.mkdir(parents=True)
        (docs / "index.html").write_text("<p>the Data Docs</p>")
        tables = Deployment().tables(name)
        at = {p: Position(offset) for p, offset in POSITIONS.items()}
        tables.commit(None, make_head(note="first", plan_id=PLAN, positions=at), [])
        audit = {
            **{fate.value: 0 for fate in Fate},
            "planned": 5,
            "read": 5,
            "carried_in": 0,
            "published": 5,
            "holes": 0,
        }
        row = make_row(plan_id=PLAN, stream=name, note="first", waveforms={"published": 2}, counts={"read": 20})
        tables.append_batches([replace(row, partitions={str(p): audit for p in POSITIONS})])


def fail_a_run(dag_id: str, run_id: str) -> None:
    """A run of this DAG that failed after all batches, in Airflow's database of this process."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415
    from airflow.utils.state import DagRunState  # noqa: PLC0415
    from airflow.utils.types import DagRunType  # noqa: PLC0415

    forget_runs(run_id)
    with create_session() as session:
        run = DagRun(dag_id=dag_id, run_id=run_id, run_type=DagRunType.MANUAL, state=DagRunState.FAILED)
        run.run_after = run.end_date = datetime(2100, 1, 1, tzinfo=UTC)
        session.add(run)


def forget_runs(run_id: str) -> None:
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        session.query(DagRun).filter(DagRun.run_id == run_id).delete()


def see_log(known: StreamFacts) -> StreamFacts:
    """As `see_ends`, of the logs above."""
    said = LOG[known.name]
    if said is None:
        raise Transient("the broker at 127.0.0.1:1 does not answer; start it, or correct its address")
    start, age = said
    seen = [Unread(p, at, Offset(start), 1000, Milliseconds(age * HOUR)) for p, at in POSITIONS.items()]
    room = judge_room(seen, retention=Retention(Milliseconds(72 * HOUR)), mean_bytes=100.0, thresholds=Thresholds())
    found = tuple(PartitionFacts(p.partition, p.position, p.log_start, p.end) for p in room.partitions)
    return replace(known, partitions=found, room=room)


def make_pages() -> tuple[Any, str]:
    """The application and the login of a viewer."""
    from airflow.api_fastapi.app import create_auth_manager  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    from wavestitch.ui.app import make_app  # noqa: PLC0415

    brief = BriefFacts()
    app = make_app(Looks(lambda name: brief.of(Deployment(guest=True), name), see_log))
    app.state.auth_manager = manager = create_auth_manager()
    return app, manager.generate_jwt(SimpleAuthManagerUser(username="viewer", role="viewer"))


@contextmanager
def served(more: Any = None) -> Iterator[Served]:
    """Below `BELOW`, as a proxy would have it. `more`: adds routes of its own to the site."""
    from fastapi import FastAPI  # noqa: PLC0415

    app, token = make_pages()
    site = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    site.mount(f"{BELOW}/wavestitch", app)
    if more is not None:
        more(site)
    with listening(site) as address:
        yield Served(f"{address}{BELOW}/wavestitch", token, app)


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """On loopback, at this address."""
    import uvicorn  # noqa: PLC0415

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert wait_until(lambda: server.started, seconds=60)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
