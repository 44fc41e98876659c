"""The pages escape what producers and operators wrote, and Data Docs never lead out of their folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders.heads import make_head, make_row
from tests.security.seen_tags import tags_and_links
from wavestitch.batch.stream_facts import PartitionFacts, StreamFacts
from wavestitch.contracts.freshness import Freshness, Waits
from wavestitch.contracts.headroom import Retention, Room, Thresholds, Unread, judge_room
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import EpochMs, Milliseconds, Offset, Partition, Seconds
from wavestitch.ui.asked import LATE
from wavestitch.ui.bars import bar_of, strip_of
from wavestitch.ui.docs_files import find_page
from wavestitch.ui.facts import one_stream_facts
from wavestitch.ui.looks import NOT_YET
from wavestitch.ui.pages import BatchOfRun, note_page, overview_page, run_page, stream_page
from wavestitch.ui.run_story import RunFacts, Story
from wavestitch.ui.stream_rows import NO_BATCH, FailedRun, State, rows_of

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
FRAME = ["static/theme.js", "static/airflow_links.js", "#main", "./", "waveforms/"]
"""Where every page of ours leads; from one that lies in a folder, up from there."""
OWN = ("docs/", "../docs/", "held/", "../held/", "stream/", "../stream/", "../waveforms/", "../dags/", "../../dags/")
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


def room(**seen: Any) -> Room:
    """Of a partition whose records stay for an hour."""
    unread = Unread(**{"partition": 0, "position": 7, "log_start": 0, "end": 1007, **seen})
    return judge_room(
        [unread], retention=Retention(ms=Milliseconds(3_600_000)), mean_bytes=None, thresholds=Thresholds()
    )


def listed(*streams: tuple[StreamFacts, float | None], failed: dict[str, FailedRun] | None = None) -> str:
    return overview_page(rows_of(streams, failed or {}))


def test_the_overview_shows_where_a_stream_stands_and_leads_to_all_of_it() -> None:
    html = listed((facts(room=room(age_ms=Milliseconds(60_000))), 3.2))
    for said in ("green", "1&#8239;000", "1.0 min", "59.0 min", "1 of 1 partitions have something unread", "3 s ago"):
        assert said in html
    assert "None of 1 streams needs anybody" in html
    assert tags_and_links(html)[1] == [FRAME[0], FRAME[1], "static/live.js", *FRAME[2:], "stream/ecg"]


def test_hundreds_of_streams_are_a_list_in_parts_that_are_laid_out_once_they_are_seen() -> None:
    html = listed(*((facts(name=f"s{n}", room=room()), 0.0) for n in range(45)))
    assert [part.count("<tr ") for part in html.split("<tbody>")[1:]] == [20, 20, 5]
    assert "table.long tbody { content-visibility: auto;" in html
    # A module would be waited for until all of the page is there.
    assert '<script src="static/theme.js"></script>' in html


def test_what_needs_somebody_stands_first() -> None:
    streams = [
        (facts(name="a", room=room(age_ms=Milliseconds(60_000))), 0.0),
        (facts(name="b", room=room(age_ms=Milliseconds(2_000_000))), 0.0),
        (StreamFacts("c", NOT_YET), None),
        (facts(name="d", problem="the broker is away"), 0.0),
        (facts(name="e", room=room(log_start=9, age_ms=Milliseconds(60_000))), 0.0),
        (facts(name="f", room=room(age_ms=Milliseconds(3_500_000))), 0.0),
        (facts(name="g", room=room(age_ms=Milliseconds(60_000))), 0.0),
        (StreamFacts("h", NO_BATCH), 0.0),
    ]
    failed = {"g": FailedRun("ingest_g", "r", EpochMs(HEAD.committed_ms or 0))}
    rows = rows_of(streams, failed)
    assert [(r.facts.name, r.state) for r in rows] == [
        ("e", State.LOST),
        ("f", State.RED),
        ("d", State.UNKNOWN),
        ("b", State.AMBER),
        ("g", State.FAILED),
        ("c", State.LOOKING),
        ("a", State.GREEN),
        ("h", State.NEW),
    ]
    html = overview_page(rows)
    assert "5 of 8 streams need somebody; 1 are still being looked at." in html
    assert 'aria-busy="true"' in html
    assert "../dags/ingest_g/runs/r" in html


def test_a_run_that_failed_before_the_last_batch_is_nobody_s_trouble_any_more() -> None:
    head = make_head(sequence=3, positions={0: Position(Offset(7))}, committed_ms=EpochMs(2000))
    for at, state in ((1999, State.GREEN), (2000, State.FAILED)):
        failed = {"ecg": FailedRun("ingest_ecg", "r", EpochMs(at))}
        [row] = rows_of([(facts(head=head, room=room()), 0.0)], failed)
        assert row.state is state


def test_a_log_that_does_not_answer_leaves_a_sentence_and_no_guess() -> None:
    unknown = facts(problem="the broker is away", partitions=(PartitionFacts(Partition(0), 7, None, None),))
    html = listed((unknown, 3.2))
    assert "the broker is away" in html
    assert html.count('<td class="short">–</td>') == 3
    one = stream_page(rows_of([(unknown, 3.2)], {})[0], None)
    assert '<td class="short">7</td>' in one
    assert one.count('<td class="short">–</td>') == 5
    assert "the log has not said" in one


def test_nobody_s_streams_are_an_empty_page_that_says_what_to_do() -> None:
    html = listed()
    assert "no stream that you may read" in html
    assert "<table" not in html


def test_a_stream_s_page_says_first_what_is_the_matter_and_what_to_do() -> None:
    [row] = rows_of([(facts(room=room(log_start=9, age_ms=Milliseconds(60_000)), batches=(ROW,)), 0.0)], {})
    html = stream_page(row, facts(open=2, quarantined=1, documented=frozenset({PLAN})))
    assert '<span class="failed">lost unread</span>: retention took 2 offsets that nobody had read.' in html
    assert "<code>wavestitch plan ecg</code> shows it" in html
    assert "2 open, 1 quarantined" in html
    links = tags_and_links(html)[1]
    assert {"../held/ecg", f"../docs/ecg/{PLAN}/index.html", "../../dags/rewind_ecg"} <= set(links)


@pytest.mark.parametrize(
    ("late", "state", "first"),
    [
        (False, State.GREEN, "It is as fresh as declared: 2 of 90 waveforms"),
        (True, State.LATE, '<span class="reported">late</span>: is later than the 15.0 s that it declares.'),
    ],
)
def test_a_stream_that_declares_its_freshness_says_how_fresh_it_is(late: bool, state: State, first: str) -> None:
    declared = Seconds(15)
    seen = replace(
        room(age_ms=Milliseconds(60_000)), freshness=Freshness(declared, late, 90, 2, 12.3, 60.0, Partition(0))
    )
    measured = replace(ROW, waits=Waits(90, 2, declared, 3.0, 12.3, 20.0))
    [row] = rows_of([(facts(room=seen, batches=(measured,)), 0.0)], {})
    html = stream_page(row, None)
    assert row.state is state
    assert first in html
    assert '<span class="reported">12.3 s</span>' in html
    assert html.count("2 of 90 waveforms published lately") == 1
    assert ("1 of 1 streams need somebody" in overview_page([row])) is late
    said = one_stream_facts(row, None)
    assert said["freshness"] | {"unread_s": None} == {
        "declared_s": 15,
        "late": late,
        "p99_s": 12.3,
        "waveforms": 90,
        "waveforms_late": 2,
        "unread_s": None,
        "known": True,
        "by_broker": True,
    }
    assert said["batches"][0]["waits"]["longest_s"] == 20.0


def test_what_the_tables_could_not_be_asked_is_a_sentence_and_no_zero() -> None:
    [row] = rows_of([(facts(room=room(age_ms=Milliseconds(60_000))), 0.0)], {})
    failed = StreamFacts("ecg", "the catalog does not answer")
    html = stream_page(row, failed)
    assert "the catalog does not answer" in html
    assert "0 open" not in html
    assert 'aria-busy="true"' not in html, "it would be asked for every second"
    said = one_stream_facts(row, failed)
    assert (said["open"], said["quarantined"], said["remarks"]) == (None, None, ["the catalog does not answer"])


def test_a_page_whose_answer_comes_yet_asks_again_by_itself() -> None:
    late = note_page("Held of ecg", LATE, root="../", late=True)
    assert tags_and_links(late)[1] == [
        f"../{FRAME[0]}",
        f"../{FRAME[1]}",
        "../static/live.js",
        FRAME[2],
        "../",
        "../waveforms/",
    ]
    assert 'data-late aria-busy="true"' in late
    assert "live.js" not in note_page("Held of ecg", "Nothing of it is held.", root="../")


@pytest.mark.parametrize(
    "seen, widths, kind",
    [
        ({"position": 1007}, (0, 120, 0), "unread"),
        ({"position": 0}, (0, 0, 120), "unread"),
        ({"position": 503}, (0, 60, 60), "unread"),
        ({"position": 1006, "age_ms": Milliseconds(2_000_000)}, (0, 117, 3), "soon"),
        ({"position": 0, "log_start": 500, "age_ms": Milliseconds(1)}, (60, 0, 60), "lost"),
    ],
)
def test_a_bar_shows_what_is_read_unread_and_gone_however_little_that_is(
    seen: dict[str, Any], widths: tuple[int, int, int], kind: str
) -> None:
    bar = bar_of(room(**seen).partitions[0])
    assert ((bar.lost, bar.read, bar.rest), bar.kind) == (widths, kind)


def test_a_strip_has_a_column_a_partition_and_a_bounded_number_of_them() -> None:
    seen = [Unread(Partition(p), 7, Offset(0), 1007 if p == 99 else 7) for p in range(100)]
    found = judge_room(seen, retention=Retention(), mean_bytes=None, thresholds=Thresholds())
    columns = strip_of(facts(room=found))
    assert len(columns) == 25
    assert [c.height for c in columns] == [0] * 24 + [20]


def test_nothing_that_others_wrote_becomes_part_of_a_page() -> None:
    remarks = (HOSTILE, f"`{HOSTILE}`")
    hostile = [(facts(name=HOSTILE, problem=HOSTILE, topic=HOSTILE, batches=(ROW,), remarks=remarks), None)]
    run = RunFacts(HOSTILE, HOSTILE, HOSTILE)
    lists = ((HOSTILE, remarks),)
    story = Story("passed", f"`{HOSTILE}", HOSTILE, (HOSTILE,), lists, answer="ask", plan_id=HOSTILE)
    pages = [
        overview_page(rows_of(hostile, {HOSTILE: FailedRun(HOSTILE, HOSTILE, EpochMs(1 << 60))})),
        stream_page(rows_of(hostile, {})[0], hostile[0][0]),
        run_page("ingest", HOSTILE, run, story, BatchOfRun(ROW, documented=True)),
        note_page(HOSTILE, HOSTILE, root="../"),
    ]
    frame = (
        *FRAME,
        "static/live.js",
        "../static/live.js",
        "../static/start_run.js",
        *(f"../{link}" for link in FRAME),
        "../",
    )
    for html in pages:
        tags, links = tags_and_links(html)
        assert not tags & {"script", "img"}
        assert all(link in frame or link.startswith(OWN) for link in links)


@pytest.mark.parametrize(
    "counted, balances",
    [
        ({"planned": 5, "read": 5, "published": 5}, True),
        ({"planned": 5, "holes": 1, "read": 4, "carried_in": 2, "published": 3, "reported": 3}, True),
        ({"planned": 5, "read": 5}, False),
        ({"published": 5}, False),
    ],
)
def test_a_row_that_knows_fewer_fates_is_shown_and_judged_all_the_same(counted: dict[str, int], balances: bool) -> None:
    row = make_row(plan_id=PLAN, partitions={"0": counted})
    [seen] = rows_of([(facts(batches=(row,)), 0.0)], {})
    assert row.identity_balances is balances
    assert one_stream_facts(seen, None)["batches"][0]["balances"] is balances
    assert (">balances<" in stream_page(seen, None)) is balances


def test_a_batch_without_a_row_is_said_to_be_without_one() -> None:
    story = Story("passed", "done", plan_id=PLAN)
    assert "not in the stream's history" in run_page(
        "ingest", "ecg", RunFacts("d", "r", "success"), story, BatchOfRun()
    )


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


def test_a_stream_that_was_never_begun_and_is_late_stands_among_those_that_need_somebody() -> None:
    late = Freshness(Seconds(15), True, unread_s=259_200.0, partition=Partition(0))
    [row] = rows_of([(StreamFacts("ecg", NO_BATCH, room=Room((), freshness=late)), 0.0)], {})
    assert row.state is State.LATE
    assert "the first unread record, in partition 0, is 3.0 d old" in stream_page(row, None)
    assert "1 of 1 streams need somebody" in overview_page([row])
    assert row.strip_says == "where its partitions stand is not known"
