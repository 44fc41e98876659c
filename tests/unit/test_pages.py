"""The pages escape what producers and operators wrote, and Data Docs never lead out of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.heads import make_head, make_row
from tests.security.seen_tags import tags_and_links
from wavestitch.batch.stream_facts import PartitionFacts, StreamFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.headroom import Retention, Thresholds, Unread, judge_room
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Milliseconds, Offset, Partition
from wavestitch.ui.docs_files import find_page
from wavestitch.ui.pages import batch_page, note_page, overview_page

HOSTILE = '"><script>alert(1)</script><img src=x onerror=y>'
PLAN = "a" * 32
ROW = make_row(
    plan_id=PLAN,
    sequence=3,
    counts={"read": 12345},
    partitions={"0": {"planned": 5, "read": 5}},
    reasons={HOSTILE: 1},
    waveforms={"published": 2, "open": 1, "quarantined": 0},
    seconds={"read": 1.26},
    note=HOSTILE,
)
FRAME = ["static/theme.js", "static/airflow_links.js", "#main", "./"]
"""Where every page of ours leads; from one that lies in a folder, up from there."""
HEAD = make_head(sequence=3, positions={0: Position(Offset(7))}, plan_id=PLAN)


def facts(**changes: object) -> StreamFacts:
    known: dict[str, object] = {
        "name": "ecg",
        "topic": "t",
        "head": HEAD,
        "partitions": (PartitionFacts(Partition(0), 7, Offset(0), 1007),),
        "open": 2,
        "quarantined": 1,
    }
    return StreamFacts(**{**known, **changes})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchRow, "identity_balances", property(lambda _: True))


def test_the_overview_shows_where_a_stream_stands() -> None:
    html = overview_page([(facts(batches=(ROW,), documented=frozenset({PLAN})), None)])
    for said in ("generation 1", "Backlog 1000", "2 open, 1 quarantined", "2026-01-01 00:00:00", "balances"):
        assert said in html
    assert tags_and_links(html)[1] == [*FRAME, "held/ecg", f"docs/ecg/{PLAN}/index.html"]


def test_the_overview_shows_how_long_retention_leaves_what_is_unread() -> None:
    seen = Unread(Partition(0), position=7, log_start=Offset(9), end=1007, age_ms=Milliseconds(3_500_000))
    room = judge_room([seen], retention=Retention(ms=Milliseconds(3_600_000)), mean_bytes=None, thresholds=Thresholds())
    html = overview_page([(facts(room=room), None)])
    assert '<span class="failed">red</span>: 1.7 min until retention takes unread data' in html
    assert "2 offsets lost unread" in html
    assert "Headroom" not in overview_page([(facts(), None)])


def test_a_log_that_does_not_answer_leaves_a_sentence_and_no_guess() -> None:
    html = overview_page(
        [(facts(problem="the broker is away", partitions=(PartitionFacts(Partition(0), 7, None, None),)), 3.2)]
    )
    assert "the broker is away" in html
    assert "Backlog not known" in html
    assert "Looked at 3 s ago" in html
    assert html.count("<td>–</td>") == 3


def test_nothing_that_others_wrote_becomes_part_of_a_page() -> None:
    pages = [
        overview_page([(facts(name=HOSTILE, problem=HOSTILE, topic=HOSTILE, batches=(ROW,)), None)]),
        batch_page(HOSTILE, HOSTILE, ROW, documented=True),
        note_page(HOSTILE, HOSTILE, root="../"),
    ]
    frame = (*FRAME, *(f"../{link}" for link in FRAME), "../")
    for html in pages:
        tags, links = tags_and_links(html)
        assert not tags & {"script", "img"}
        assert all(link in frame or link.startswith(("docs/", "../docs/", "held/")) for link in links)


def test_a_batch_without_a_row_is_said_to_be_without_one() -> None:
    assert "not in the stream's history" in batch_page("ecg", PLAN, None, documented=False)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs" / "ecg" / PLAN / "validations"
    folder.mkdir(parents=True)
    (folder / "page.html").write_text("a result")
    (folder.parent / "index.html").write_text("the index")
    (folder.parent / "data.json").write_text("{}")
    (tmp_path / "secret.html").write_text("a secret")
    (folder / "link.html").symlink_to(tmp_path / "secret.html")
    (tmp_path / "docs" / "outside").symlink_to(tmp_path)
    (tmp_path / "docs" / "ecg" / "up").symlink_to(tmp_path)
    return tmp_path / "docs"


@pytest.mark.parametrize(("name", "text"), [("index.html", "the index"), ("validations/page.html", "a result")])
def test_the_pages_of_a_batch_are_found(docs: Path, name: str, text: str) -> None:
    found = find_page(docs, "ecg", PLAN, name)
    assert found is not None
    assert found.read_text() == text


@pytest.mark.parametrize(
    ("stream", "plan", "name"),
    [
        ("ecg", PLAN, "../../../secret.html"),
        ("ecg", PLAN, "validations/../index.html"),
        ("ecg", PLAN, "/etc/passwd"),
        ("ecg", PLAN, "data.json"),
        ("ecg", PLAN, "validations"),
        ("ecg", PLAN, "validations/link.html"),
        ("ecg", PLAN, ""),
        ("ecg", "..", "secret.html"),
        ("ecg", ".", f"{PLAN}/index.html"),
        ("ecg", "up", "secret.html"),
        ("outside", "docs", "ecg/index.html"),
        ("..", "docs", f"ecg/{PLAN}/index.html"),
        ("ecg/" + PLAN, "validations", "page.html"),
        ("other", PLAN, "index.html"),
    ],
)
def test_no_name_leads_anywhere_else(docs: Path, stream: str, plan: str, name: str) -> None:
    assert find_page(docs, stream, plan, name) is None


def test_without_a_docs_folder_nothing_is_found(tmp_path: Path) -> None:
    assert find_page(tmp_path / "none", "ecg", PLAN, "index.html") is None
