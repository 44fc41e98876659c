"""The list of streams costs the same however long a stream has run: files and questions are counted, not seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.builders.heads import make_head, make_row
from tests.stack.airflow_home import write_settings
from wavestitch.batch.brief_facts import BriefFacts
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.past_cost import RECENT
from wavestitch.contracts.position import HeadKind
from wavestitch.tables.access.durable_file_io import DurableFileIO


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))
    return Deployment()


def commit(deployment: Deployment, batches: int) -> None:
    """So many more heads, each with its row, as batches leave them."""
    tables = deployment.tables("ecg")
    head = tables.head()
    for _ in range(batches):
        if head is None:
            new = make_head(note="x")
        else:
            new = head.next(kind=HeadKind.INGEST, plan_id=f"{head.sequence:032x}", decision=f"{head.sequence:032x}")
        head = tables.commit(head, new, [])
        row = make_row(plan_id=head.plan_id, decision=head.decision, sequence=head.sequence, stream="ecg")
        tables.append_batches([row])


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Files that are opened of the tables, and questions to the catalog."""
    found = {"files": 0, "queries": 0}
    opening = DurableFileIO.new_input

    def opens(self: Any, location: str) -> Any:
        found["files"] += 1
        return opening(self, location)

    def asks(*_: Any) -> None:
        found["queries"] += 1

    event.listen(Engine, "before_cursor_execute", asks)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(DurableFileIO, "new_input", opens)
            yield found
    finally:
        event.remove(Engine, "before_cursor_execute", asks)


def look(brief: BriefFacts, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    with counted(monkeypatch) as found:
        facts = brief.of(Deployment(deployment.settings), "ecg")
    assert facts.problem == ""
    assert len(facts.batches) == RECENT
    return found


MOST = 4 + RECENT + 20
"""Metadata of two tables (twice), the last rows a file each, and as many manifests as are not merged yet."""


def test_a_look_opens_a_bounded_number_of_files_however_many_batches_there_were(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(deployment, RECENT + 1)
    few = look(BriefFacts(), deployment, monkeypatch)
    commit(deployment, 30)
    brief = BriefFacts()
    many, again = look(brief, deployment, monkeypatch), look(brief, deployment, monkeypatch)
    print(few, many, again)
    assert max(few["files"], many["files"]) <= MOST
    assert many["queries"] == few["queries"]
    assert again["files"] <= 1
    assert again["queries"] < many["queries"]
