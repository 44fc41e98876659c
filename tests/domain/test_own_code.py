"""Whoever writes a table's metadata, or answers for its catalog, chooses no code that runs here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog

from tests.builders.table_rows import first_head
from tests.domain.rest_catalog import rest_catalog
from wavestitch.tables.access.durable_file_io import DurableFileIO
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.stream_tables import StreamTables


class Foreign:
    """Stands for any class that can be imported."""

    made = 0

    def __init__(self, *_: Any) -> None:
        Foreign.made += 1


FOREIGN = f"{__name__}.{Foreign.__name__}"


@pytest.mark.parametrize(
    "said",
    [
        {"overrides": {"auth": {"type": "custom", "impl": "subprocess.Popen", "custom": {"args": ["touch", "owned"]}}}},
        {"defaults": {"auth": {"type": "custom", "impl": FOREIGN, "custom": {}}}},
        {"defaults": {"touch": "", "owned": ""}, "overrides": {"py-io-impl": "subprocess.Popen"}},
        {"overrides": {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}},
        {"overrides": {"ssl": {"cabundle": False}}},
    ],
)
def test_what_a_server_says_of_itself_runs_no_command_and_changes_no_login(
    said: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with rest_catalog(tmp_path / "served") as (settings, faults):
        faults.config = said
        tables = StreamTables(settings, "ecg")
        tables.commit(None, first_head(), [])
        assert isinstance(StreamTables(settings, "ecg").waveforms().io, DurableFileIO)
        catalog: Any = open_catalog(settings)
        assert catalog._session.verify is True
    assert not (tmp_path / "owned").exists()
    assert Foreign.made == 0


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("sql", {"py-io-impl": FOREIGN}),
        ("rest", {"py-io-impl": FOREIGN}),
        ("sql", {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}),
    ],
)
def test_a_table_s_property_chooses_no_class(kind: str, properties: dict[str, str], tmp_path: Path) -> None:
    with rest_catalog(tmp_path / "served") as (served, _):
        local = CatalogSettings("local", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/w")
        settings = {"rest": served, "sql": local}[kind]
        tables = StreamTables(settings, "ecg")
        tables.commit(None, first_head(), [])
        change(open_catalog(settings), properties)
        found = StreamTables(settings, "ecg")
        assert isinstance(found.waveforms().io, DurableFileIO)
        (remark,) = found.remarks()
        assert "property py-io-impl of table ecg.waveforms is" in remark
        assert "not obeyed" in remark
    assert Foreign.made == 0


def test_a_table_s_places_for_files_are_chosen_by_no_class_of_its_own(tmp_path: Path) -> None:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/w")
    tables = StreamTables(settings, "ecg")
    head = tables.commit(None, first_head(), [])
    catalog = open_catalog(settings)
    change(catalog, {"write.py-location-provider.impl": FOREIGN})
    catalog.load_table("ecg.waveforms").location_provider().new_data_location("a.parquet")
    assert StreamTables(settings, "ecg").commit(head, head.next(), []).sequence == 2
    assert Foreign.made == 0


def test_what_the_settings_name_is_taken(tmp_path: Path) -> None:
    own = "pyiceberg.io.pyarrow.PyArrowFileIO"
    settings = CatalogSettings("own", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/w", {"py-io-impl": own})
    StreamTables(settings, "ecg").commit(None, first_head(), [])
    assert not isinstance(StreamTables(settings, "ecg").waveforms().io, DurableFileIO)


def change(catalog: Catalog, properties: dict[str, str]) -> None:
    with catalog.load_table("ecg.waveforms").transaction() as transaction:
        transaction.set_properties(properties)
