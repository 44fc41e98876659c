"""What was last told of a stream's headroom, on disk: `LANDING/STREAM/told.json`.

There, since all hosts of a deployment see the landing, whoever looks may write there already, and neither the catalog
nor Airflow must be there to remember it. Not write-once, and the truth about nothing: a file that is lost or damaged
costs one notice more.
"""

from __future__ import annotations

from pathlib import Path

from wavestitch.batch.work_folder import plain_text
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.headroom import TOLD, Told
from wavestitch.modes import make_folder
from wavestitch.write_once import disk_errors, scratch_file, sync_file, sync_folder

_NAME = "told.json"


def kept_told(landing: Path, stream: str) -> Told:
    """Nothing yet, where nothing was kept or it cannot be read."""
    try:
        return TOLD.read(plain_text(landing / stream / _NAME))
    except (FileNotFoundError, Altered, BadInput):
        return Told()


def keep_told(landing: Path, stream: str, told: Told) -> None:
    folder = landing / stream
    with disk_errors("keeping what was told"):
        make_folder(landing)
        with scratch_file(folder) as scratch:
            scratch.write_text(TOLD.text(told), encoding="utf-8")
            sync_file(scratch)
            scratch.replace(folder / _NAME)
            sync_folder(folder)
