"""What is kept of a table's metadata is what stands in its file, and no version changes with a later one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg import manifest
from pyiceberg.io import InputFile
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from tests.builders.table_rows import first_head, published_row, stage
from wavestitch.contracts.errors import BadInput
from wavestitch.tables.access.shared_history import check_version
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.commit.own_place import local_path
from wavestitch.tables.history import heads
from wavestitch.tables.stream_tables import StreamTables


def as_written(table: Table) -> TableMetadata:
    return TableMetadataUtil.parse_raw(Path(local_path(table.metadata_location)).read_text())


def test_every_version_is_what_its_file_says_also_after_later_commits(tmp_path: Path) -> None:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    tables = StreamTables(settings, "ecg")
    head, versions = None, []
    for n in range(4):
        staged = stage(tables.data_folder(), f"rows-{n}", [published_row(f"w-{n}")])
        head = tables.commit(head, first_head() if head is None else head.next(), [staged])
        versions.append(tables.waveforms())
        # Another process's view of the catalog commits, too, and both see it.
        other = StreamTables(settings, "ecg")
        head = other.commit(head, head.next(), [])
        versions += [other.waveforms(), tables.waveforms()]
    for n, version in enumerate(versions):
        assert version.metadata == as_written(version), n
    assert [len(v.metadata.snapshots) for v in versions[::3]] == [1, 3, 5, 7]
    assert [h.sequence for h in tables.heads()] == list(range(8, 0, -1))


def test_a_stored_file_that_was_never_read_here_is_read(tmp_path: Path) -> None:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    for name in (f"s{n}" for n in range(20)):  # more than are kept
        StreamTables(settings, name).commit(None, first_head(plan_id=name), [])
    assert [StreamTables(settings, f"s{n}").head().plan_id for n in range(20)] == [f"s{n}" for n in range(20)]


def test_heads_of_expired_snapshots_are_not_kept(tmp_path: Path) -> None:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    tables = StreamTables(settings, "ecg")
    head = tables.commit(None, first_head(), [])
    for _ in range(4):
        head = tables.commit(head, head.next(), [])
    old = [h.snapshot_id for h in tables.heads()][2:]
    tables.waveforms().maintenance.expire_snapshots().by_ids(old).commit()
    assert [h.sequence for h in tables.heads()] == [5, 4]
    assert set(heads._heads_of[tables.waveforms().metadata.table_uuid]) == {h.snapshot_id for h in tables.heads()}


def test_a_pyiceberg_that_nobody_has_looked_into_is_refused_with_a_sentence() -> None:
    check_version()
    with pytest.raises(BadInput, match=r"pyiceberg 0\.13\.0 is installed, .* 0\.12\.0: install what"):
        check_version("0.13.0")


def test_the_list_of_a_snapshots_manifests_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    tables = StreamTables(settings, "ecg")
    staged = [stage(tables.data_folder(), f"rows-{n}", [published_row(f"w-{n}")]) for n in range(2)]
    head = tables.commit(None, first_head(), staged[:1])
    lists: list[str] = []
    real = manifest.read_manifest_list

    def counted(file: InputFile) -> Iterator[ManifestFile]:
        lists.append(file.location)
        return real(file)

    monkeypatch.setattr(manifest, "read_manifest_list", counted)
    for _ in range(3):
        assert set(tables.published(["w-0", "w-1"])) == {"w-0"}
    tables.commit(head, head.next(), staged[1:])
    for _ in range(3):
        assert set(tables.published(["w-0", "w-1"])) == {"w-0", "w-1"}
    assert len(lists) == len(set(lists)) <= 2


def test_a_file_says_what_the_library_would_write_whatever_was_written_of_its_snapshots_before(tmp_path: Path) -> None:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    tables, other = StreamTables(settings, "ecg"), StreamTables(settings, "eeg")
    head, heads_of_other = None, None
    for n in range(4):
        note = f'{{"snapshots":[]}} {n}'
        head = tables.commit(head, first_head(note=note) if head is None else head.next(note=note), [])
        heads_of_other = other.commit(
            heads_of_other, first_head(note=note) if heads_of_other is None else heads_of_other.next(), []
        )
        for table in (tables.waveforms(), other.waveforms()):
            text = Path(local_path(table.metadata_location)).read_text()
            assert json.loads(text) == json.loads(as_written(table).model_dump_json())
            assert len(json.loads(text)["snapshots"]) == n + 1
    expire = tables.waveforms().maintenance.expire_snapshots()
    expire.by_ids([h.snapshot_id for h in tables.heads()][2:]).commit()
    text = Path(local_path(tables.waveforms().metadata_location)).read_text()
    assert [s["snapshot-id"] for s in json.loads(text)["snapshots"]] == [h.snapshot_id for h in tables.heads()][::-1]
