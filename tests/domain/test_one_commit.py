"""A commit names the snapshot it was decided on, is sent once and deletes nothing: in SQLite, PostgreSQL and REST."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from tests.builders.table_rows import (
    all_held,
    facts,
    first_head,
    held_row,
    hold,
    payloads,
    published_row,
    stage,
    write_landing,
)
from tests.domain.rest_catalog import Faults, rest_catalog
from tests.domain.table_races import commit_on_the_same_head, race, stage_the_same_and_more
from wavestitch.contracts.errors import BadInput, StateUnknown, Transient
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import HeadKind, Position
from wavestitch.contracts.quantities import Offset
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.commit.one_commit import OneCommit
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.held.held_removal import held_places
from wavestitch.tables.maintenance.snapshot_expiry import expire_snapshots
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")

EAGER = {"commit.retry.num-retries": "4", "commit.retry.min-wait-ms": "1"}


@pytest.fixture(params=["sqlite", "postgresql", "rest"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CatalogSettings]:
    if request.param == "sqlite":
        yield CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    elif request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        yield CatalogSettings("local", server.address(server.new_database()), f"file://{tmp_path}/warehouse")
    else:
        with rest_catalog(tmp_path) as (served, _):
            yield served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[CatalogSettings, Faults]]:
    with rest_catalog(tmp_path) as found:
        yield found


@pytest.fixture
def tables(settings: CatalogSettings) -> StreamTables:
    return StreamTables(settings, "ecg")


def set_properties(settings: CatalogSettings, name: str, **properties: str) -> None:
    """As any other program does that may alter the table."""
    with open_catalog(settings).load_table(name).transaction() as change:
        change.set_properties(**properties)  # type: ignore[arg-type]


def metadata_files(tmp_path: Path) -> set[Path]:
    return set(tmp_path.rglob("*.avro"))


class TestWhateverTheTablesPropertiesSay:
    def test_a_stale_run_never_commits_on_top_of_a_rewind(self, tables, settings):
        head = tables.commit(None, first_head(), [])
        set_properties(settings, "ecg.waveforms", **EAGER)
        stored = tables.stored()[0]
        stale = stored.load()
        a = stage(tables.data_folder(), "a", [published_row("x")])
        tables.commit(head, head.next(positions={0: Position(Offset(10)), 1: Position(Offset(0))}), [a])
        rewound = tables.head().next(
            kind=HeadKind.REWIND, generation=2, positions={0: Position(Offset(0)), 1: Position(Offset(0))}
        )
        rewound = tables.commit(tables.head(), rewound, [])
        b = stage(tables.data_folder(), "b", [published_row("x")])
        with pytest.raises(CommitConflict):
            stored.commit_files(stale, ["file://" + b.path], head.next().to_properties())
        assert tables.head() == rewound
        assert tables.waveforms().scan(selected_fields=("waveform_id",)).to_arrow().num_rows == 1

    def test_a_stale_run_never_commits_on_a_table_that_it_saw_empty(self, tables, settings):
        stored = tables.stored()[0]
        stored.ensure()
        set_properties(settings, "ecg.waveforms", **EAGER)
        stale = stored.load()
        one = tables.commit(None, first_head(), [])
        with pytest.raises(CommitConflict):
            stored.commit_files(stale, [], first_head(plan_id="late").to_properties())
        assert tables.heads() == [one]

    def test_of_processes_that_commit_on_the_same_head_exactly_one_wins(self, settings, tmp_path):
        tables = StreamTables(settings, "race")
        tables.stored()[0].ensure()
        set_properties(settings, "race.waveforms", **EAGER)
        rounds, processes = 4, 3
        outcomes = race(commit_on_the_same_head, settings, tmp_path / "staged", processes=processes, rounds=rounds)
        for n in range(rounds):
            assert Counter(o[n] for o in outcomes) == {"committed": 1, "conflict": processes - 1}
        assert [h.sequence for h in tables.heads()] == list(range(rounds, 0, -1))

    def test_processes_that_append_held_rows_lose_and_double_none(self, settings, tmp_path):
        tables = StreamTables(settings, "race")
        tables.stored()[1].ensure()
        set_properties(settings, "race.held", **EAGER)
        tables.commit(None, first_head(), [])
        race(stage_the_same_and_more, settings, tmp_path, processes=3, rounds=3)
        staged = [r for name, r in tables.stored()[1].load().metadata.refs.items() if name.startswith("wavestitch-")]
        table = tables.stored()[1].load()
        rows = sorted(table.scan(snapshot_id=r.snapshot_id).count() for r in staged)
        assert rows == [0] + 9 * [3] + 3 * [4]

    def test_what_others_changed_is_said_and_kept_and_not_obeyed(self, tables, settings):
        head = tables.commit(None, first_head(), [])
        stored = tables.stored()[0]
        assert stored.changed_properties() == []
        set_properties(settings, "ecg.waveforms", **EAGER, **{"write.data.path": "file:///nowhere", "owner": "ops"})
        tables.commit(head, head.next(), [])
        said = stored.changed_properties()
        assert (
            "property commit.retry.num-retries of table ecg.waveforms is 4, ours is 0; what is there is not obeyed"
            in said
        )
        assert any("write.data.path" in s and "ours have none" in s for s in said)
        assert not any("owner" in s for s in said)
        kept = open_catalog(settings).load_table("ecg.waveforms").properties
        assert kept["commit.retry.num-retries"] == "4"
        assert kept["owner"] == "ops"


class TestAChangeOfATable:
    def test_it_is_sent_once(self, tables):
        change = OneCommit(ensured(tables))
        change.set_properties(owner="ops")
        assert change.commit_transaction().properties["owner"] == "ops"
        with pytest.raises(RuntimeError, match="sent before; load the table"):
            change.commit_transaction()

    def test_of_two_that_add_a_column_to_the_same_table_one_is_refused(self, tables):
        table = ensured(tables)
        first, second = OneCommit(table), OneCommit(tables.stored()[0].load())
        for change in (first, second):
            with change.update_schema() as schema:
                schema.add_column("note", StringType())
        first.commit_transaction()
        with pytest.raises(CommitConflict, match="nothing was written"):
            second.commit_transaction()

    @pytest.mark.parametrize("status", [409, 500])
    def test_one_without_a_snapshot_is_not_taken_for_landed(self, status, served):
        settings, faults = served
        change = OneCommit(ensured(StreamTables(settings, "ecg")))
        change.set_properties(owner="ops")
        faults.planned = [("before", status)]
        with pytest.raises(CommitConflict if status == 409 else StateUnknown) as told:
            change.commit_transaction()
        assert status == 409 or told.value.facts["table"] == "ecg.waveforms"
        assert "owner" not in open_catalog(settings).load_table("ecg.waveforms").properties

    def test_a_catalog_that_has_gone_before_anything_was_sent_is_no_conflict(self, tmp_path):
        settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
        tables = StreamTables(settings, "ecg")
        change = OneCommit(ensured(tables))
        change.set_properties(owner="ops")
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as db:
            db.execute("DROP TABLE iceberg_tables")
        with pytest.raises(Transient, match="no such table"):
            change.commit_transaction()

    def test_nobody_goes_on_listening_to_a_catalog(self, tmp_path):
        settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
        table = ensured(StreamTables(settings, "ecg"))
        engine = table.catalog.engine  # type: ignore[attr-defined]
        before = len(engine.dispatch.before_cursor_execute)
        change = OneCommit(table)
        change.set_properties(owner="ops")
        change.commit_transaction()
        assert len(engine.dispatch.before_cursor_execute) == before


WORDS = "what the server says"
FULL = sqlite3.OperationalError(WORDS)
FULL.sqlite_errorcode = sqlite3.SQLITE_FULL


class TestADatabaseThatRefuses:
    @pytest.mark.parametrize(
        ("refusal", "told", "said"),
        [
            (psycopg.errors.ReadOnlySqlTransaction(WORDS), Transient, "takes no changes"),
            (psycopg.errors.InsufficientPrivilege(WORDS), BadInput, "refuses the login or the right"),
            (psycopg.errors.DiskFull(WORDS), Transient, "are used up"),
            (psycopg.errors.OutOfMemory(WORDS), Transient, "are used up"),
            (psycopg.errors.QueryCanceled(WORDS), Transient, "who has locked it"),
            (psycopg.errors.LockNotAvailable(WORDS), Transient, "who has locked it"),
            (psycopg.errors.SerializationFailure(WORDS), CommitConflict, "somebody else changed"),
            (psycopg.errors.DeadlockDetected(WORDS), CommitConflict, "somebody else changed"),
            (FULL, Transient, "are used up"),
            (psycopg.errors.AdminShutdown(WORDS), StateUnknown, "read the table"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
    )
    def test_a_statement_of_its_kind_is_not_done_and_of_a_COMMIT_nobody_knows(self, refusal, told, said, tmp_path):
        settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        engine = tables.stored()[0].load().catalog.engine  # type: ignore[attr-defined]

        def refuse_update(_cursor, statement, *_):
            if statement.startswith("UPDATE"):
                raise DBAPIError(statement, {}, refusal)

        def refuse_commit(_connection):
            raise DBAPIError(None, None, refusal)

        for at, refuse, expected in (("do_execute", refuse_update, told), ("commit", refuse_commit, StateUnknown)):
            event.listen(engine, at, refuse)
            with pytest.raises(expected, match=rf"ecg\.waveforms.*{WORDS}") as caught:
                tables.commit(head, head.next(), [])
            assert said in str(caught.value) or at == "commit"
            event.remove(engine, at, refuse)
        assert tables.commit(head, head.next(), []).sequence == 2

    def test_where_nobody_can_tell_three_times_what_became_of_it_that_is_what_is_said(self, served, tmp_path):
        settings, faults = served
        tables, _ = with_held_rows(settings, tmp_path)
        first, *_ = tables.waveforms().metadata.snapshots
        row = held_row(facts(0, 9, b"x"), landing=write_landing(tmp_path / "b.arrow", [(0, 9, b"x")]), row=0)
        acts = [
            lambda: hold(tables, [row], decision="another"),
            lambda: hold(StreamTables(settings, "eeg"), [row]),
            lambda: expire_snapshots(tables.stored()[0], [first.snapshot_id]),
        ]
        StreamTables(settings, "eeg").commit(None, first_head(), [])
        StreamTables(settings, "eeg").stored()[1].ensure()
        for act in acts:
            faults.planned = [("before", 503)] * 4
            with pytest.raises(StateUnknown, match=r"(held|waveforms) happened is not known: ServiceUnavailable"):
                act()
            assert len(faults.planned) == 1


class TestARequestThatIsSentAgainOnItsWay:
    def test_it_has_landed_and_its_files_are_there(self, served):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        faults.planned = [("twice", 0)]
        staged = stage(tables.data_folder(), "a", [published_row("a")])
        landed = tables.commit(head, head.next(plan_id="f" * 32), [staged])
        assert StreamTables(settings, "ecg").head() == landed
        assert set(tables.published(["a", "b"])) == {"a"}

    def test_rows_that_were_appended_stand_once(self, served, tmp_path):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        landing = write_landing(tmp_path / "a.arrow", [(0, 7, b"bytes")])
        tables.stored()[1].ensure()
        faults.planned = [("twice", 0)]
        hold(tables, [held_row(facts(0, 7, b"bytes"), landing=landing, row=0)])
        assert [r.chunk.coordinate[1:] for r in all_held(tables)] == [(0, 7)]
        assert payloads(tables, [all_held(tables)[0].chunk.key], tmp_path / "out.arrow")

    @pytest.mark.parametrize("fault", [("twice", 0), ("after", 502), ("after", 409), ("after", 500)])
    def test_a_rewrite_keeps_the_files_that_it_put_in(self, fault, served, tmp_path):
        settings, faults = served
        tables, held = with_held_rows(settings, tmp_path)
        head = tables.head()
        (place, *_) = held_places(held.load(), head.held)
        faults.planned = [fault]
        tables.rewrite_held(head, {place.file: {place.row}}, counts={"open": 2}, note="")
        assert [r.chunk.coordinate[2] for r in all_held(tables)] == [1, 2]
        rows = [r.chunk.key for r in all_held(tables)]
        assert len(payloads(tables, rows, tmp_path / "out.arrow")) == 2

    def test_an_answer_that_was_lost_is_found_in_the_table(self, served):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        faults.planned = [("after", 504)]
        assert tables.commit(head, head.next(), []).sequence == 2
        assert tables.head().sequence == 2

    @pytest.mark.parametrize("status", [500, 502, 503, 504, 418])
    def test_what_cannot_be_found_is_not_known_and_deletes_nothing(self, status, served, tmp_path):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        before = metadata_files(tmp_path)
        faults.planned = [("before", status)]
        with pytest.raises(StateUnknown, match=r"ecg\.waveforms"):
            tables.commit(head, head.next(), [])
        assert before < metadata_files(tmp_path)  # what may still be committed has all its files
        assert tables.head() == head

    def test_a_rewrite_of_which_nobody_can_tell_deletes_nothing(self, served, tmp_path):
        settings, faults = served
        tables, held = with_held_rows(settings, tmp_path)
        head = tables.head()
        (place, *_) = held_places(held.load(), head.held)
        before = set(tmp_path.rglob("*.parquet"))
        # The staging's answer is looked up in the table, and staged again; the head's cannot be.
        faults.planned = [("before", 502)]
        tables.rewrite_held(head, {place.file: {place.row}}, counts={"open": 2}, note="")
        assert before < set(tmp_path.rglob("*.parquet"))
        assert [r.chunk.coordinate[2] for r in all_held(tables)] == [1, 2]

    def test_a_conflict_deletes_nothing_that_somebody_may_have_committed(self, served, tmp_path):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        faults.planned = [("before", 409)]
        before = metadata_files(tmp_path)
        with pytest.raises(CommitConflict):
            tables.commit(head, head.next(), [])
        assert before < metadata_files(tmp_path)

    def test_a_bad_request_about_a_table_that_somebody_changed_is_a_conflict(self, served, tmp_path):
        """As servers say of a sequence number that another branch has taken since."""
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        stale = tables.stored()[0].load()
        set_properties(settings, "ecg.waveforms", owner="ops")
        before = metadata_files(tmp_path)
        faults.planned = [("before", 400)]
        with pytest.raises(CommitConflict, match=r"somebody else changed table ecg\.waveforms first"):
            tables.stored()[0].commit_files(stale, [], head.next().to_properties())
        assert before < metadata_files(tmp_path)
        assert tables.head() == head

    def test_what_may_have_been_sent_is_not_known_of_a_table_that_somebody_changed_either(self, served):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        stale = tables.stored()[0].load()
        set_properties(settings, "ecg.waveforms", owner="ops")
        faults.planned = [("before", 502)]
        with pytest.raises(StateUnknown, match=r"ecg\.waveforms"):
            tables.stored()[0].commit_files(stale, [], head.next().to_properties())

    def test_a_bad_request_about_a_table_as_it_was_loaded_is_one(self, served):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        head = tables.commit(None, first_head(), [])
        faults.planned = [("before", 400)]
        with pytest.raises(BadInput, match="cannot be used as it is set up"):
            tables.commit(head, head.next(), [])
        assert tables.head() == head

    def test_an_expiry_that_was_sent_twice_has_expired_once(self, served):
        settings, faults = served
        tables = StreamTables(settings, "ecg")
        one = tables.commit(None, first_head(), [])
        two = tables.commit(one, one.next(), [])
        faults.planned = [("twice", 0)]
        expire_snapshots(tables.stored()[0], [one.snapshot_id])
        assert tables.heads() == [two]


def ensured(tables: StreamTables) -> Table:
    tables.stored()[0].ensure()
    return tables.stored()[0].load()


def with_held_rows(settings: CatalogSettings, tmp_path: Path) -> tuple[StreamTables, StoredTable]:
    tables = StreamTables(settings, "ecg")
    landed = [(0, n, b"bytes %d" % n) for n in range(3)]
    landing = write_landing(tmp_path / "a.arrow", landed)
    rows = [held_row(facts(p, o, b), landing=landing, row=n) for n, (p, o, b) in enumerate(landed)]
    hold(tables, rows)
    return tables, tables.stored()[1]
