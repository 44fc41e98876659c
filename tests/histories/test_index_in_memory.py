"""The index of ids over tables in memory: files in the sense of tables on disk, which nobody writes over."""

from __future__ import annotations

from typing import Any

from tests.builders.table_rows import first_head
from tests.fakes.fake_id_index import FakeIdIndex
from tests.fakes.fake_rows import FakeFiles, PublishedRow
from tests.fakes.fake_tables import FakeTables
from wavestitch.contracts.ports import StagedFile


def test_a_file_that_rows_leave_is_another_one_and_nobody_opens_it_for_them() -> None:
    files = FakeFiles()
    files.staged["a"] = [PublishedRow(one, b"", (), ()) for one in ("w1", "w2")]
    tables = FakeTables(files)
    tables.index = FakeIdIndex()
    idle: list[str] = []

    def tell(_what: str, /, **facts: Any) -> None:
        idle.extend(facts.get("idle", ()))

    tables.tell = tell  # type: ignore[method-assign]
    head = tables.commit(None, first_head(), [StagedFile("a", 0, "", 2)])
    rows = dict(zip(("w1", "w2"), tables.rows, strict=True))
    for there in ({"w1", "w2"}, {"w1"}, {"w2"}, {"w1", "w2"}):  # as where a catalog is set back in between
        tables.rows = [rows[one] for one in sorted(there)]
        assert [set(tables.published({one})) for one in rows] == [{one} & there for one in rows]
    assert idle == []
    assert set(tables.published({"w1"}, of=head.snapshot_id)) == {"w1"}
