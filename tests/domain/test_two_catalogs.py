"""Two catalogs over one warehouse (two hosts, a copy): maintenance of one takes nothing from the other (I1, I3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domain.maintenance_rig import DAY_MS, Rig
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.quantities import epoch_ms


def look_anew(rig: Rig) -> None:
    """Open the catalog again, as another process does."""
    rig.read_settings({"WAVESTITCH_CONFIG": str(rig.folder / "wavestitch.toml")})


def test_what_only_another_catalog_over_the_same_warehouse_names_stays_and_is_named(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("w1")
    catalog, aside = tmp_path / "catalog.db", tmp_path / "of-another-host.db"
    catalog.rename(aside)
    look_anew(rig)
    rig.publish("x1")
    now = epoch_ms(tmp_path.stat().st_mtime_ns)
    for days in (4, 8, 12):
        with pytest.raises(Terminal, match="which no table of the catalog names"):
            rig.maintain("orphans", now_ms=now + days * DAY_MS, orphan_age=3 * 86400)
    catalog.unlink()
    aside.rename(catalog)
    look_anew(rig)
    assert rig.ids() == ["w1"]
