"""Previews of rewinds on disk: `LANDING/STREAM/rewinds/ID.json`, written once; the id is the digest of the content."""

from __future__ import annotations

import re
from pathlib import Path

from wavestitch.batch.work_folder import plain_text
from wavestitch.contracts.errors import Altered, BadInput, Transient
from wavestitch.contracts.rewind_preview import PREVIEWS, RewindPreview
from wavestitch.modes import make_folder
from wavestitch.write_once import write_first

_ID = re.compile(r"[0-9a-f]{32}")
_FOLDER = "rewinds"


def keep_preview(landing: Path, preview: RewindPreview) -> None:
    folder = landing / preview.stream / _FOLDER
    try:
        for each in (landing, folder.parent, folder):
            make_folder(each)
        write_first(folder / f"{preview.preview_id}.json", PREVIEWS.text(preview))
    except OSError as error:
        raise Transient(f"cannot write to {folder}: {error.strerror}; free disk space and try again") from None


def kept_preview(landing: Path, stream: str, preview_id: str) -> RewindPreview:
    """Refused where its id is not the digest of its content, or it is of another stream."""
    if not _ID.fullmatch(preview_id):
        raise BadInput(f"{ascii(preview_id)[:80]} is not the id of a preview (32 hex digits)")
    path = landing / stream / _FOLDER / f"{preview_id}.json"
    try:
        found = PREVIEWS.read(plain_text(path))
    except FileNotFoundError:
        raise BadInput(f"stream {stream} has no preview {preview_id}; preview the rewind again") from None
    if found.preview_id != preview_id or found.stream != stream:
        raise Altered(f"{path} is not as it was written; preview the rewind again", file=str(path))
    return found
