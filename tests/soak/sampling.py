"""One look at everything that could grow: memory and handles of each process, disk by folder, metadata, rows."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from tests.deployment_rig import STREAM, DeploymentRig
from wavestitch.maintain.landing_folders import tree_size
from wavestitch.tables.commit.own_place import local_path

FOLDERS = ("landing", "warehouse", "docs", "kafka")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def take_sample(
    whole: DeploymentRig, *, processes: Mapping[str, int], began: float, sent_bytes: int, batches: int
) -> dict[str, float]:
    """Figures by name. Bytes, counts and seconds, nothing else."""
    found: dict[str, float] = {
        "seconds": round(time.monotonic() - began, 1),
        "sent_bytes": sent_bytes,
        "batches_run": batches,
        "load": os.getloadavg()[0],
    }
    for name, pid in processes.items():
        found[f"rss_{name}"] = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
        found[f"handles_{name}"] = len(os.listdir(f"/proc/{pid}/fd"))
    for name in FOLDERS:
        files, size = tree_size(whole.folder / name)
        found |= {f"{name}_files": files, f"{name}_bytes": size}
    found["id_index_bytes"] = tree_size(whole.folder / "cache" / "ids")[1]
    found["receipts"] = sum(1 for _ in (whole.folder / "landing").glob("*/*/receipt-*"))
    found["catalog_bytes"] = (
        (whole.folder / "catalog.db").stat().st_size if (whole.folder / "catalog.db").exists() else 0
    )
    for stored in whole.deployment.tables(STREAM).stored():
        table, name = stored.load(), stored.name.rpartition(".")[2]
        if table is not None:
            found[f"snapshots_{name}"] = len(table.metadata.snapshots)
            found[f"metadata_bytes_{name}"] = Path(local_path(table.metadata_location)).stat().st_size
    return found
