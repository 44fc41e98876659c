"""What was previewed, on disk, until somebody has decided about it: `LANDING/STREAM/rewinds/ID.json` of a rewind,
`LANDING/STREAM/decisions/ID.json` of a decision about what is held. Written once; the id is the digest of the content.
That somebody said no to it is in `LANDING/STREAM/rejected/ID.json`. All of it goes with maintenance (`previews`).
"""

from __future__ import annotations

import re
from pathlib import Path

from wavestitch.contracts.errors import Altered, BadInput, Transient
from wavestitch.contracts.plan import Plan, plan_from_json
from wavestitch.contracts.preview_answer import REJECTED, Rejected
from wavestitch.contracts.rewind_preview import PREVIEWS, RewindPreview
from wavestitch.modes import make_folder
from wavestitch.plain_files import below, plain_text
from wavestitch.write_once import write_first

_ID = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"[0-9a-f]{32}\.json")
_REWINDS, _DECISIONS, _REJECTED = FOLDERS = "rewinds", "decisions", "rejected"


def keep_preview(landing: Path, preview: RewindPreview) -> None:
    _keep(landing, preview.stream, _REWINDS, preview.preview_id, PREVIEWS.text(preview))


def kept_preview(landing: Path, stream: str, preview_id: str) -> RewindPreview:
    """Refused where its id is not the digest of its content, or it is of another stream."""
    path, text = _kept(landing, stream, _REWINDS, preview_id)
    found = PREVIEWS.read(text)
    if found.preview_id != preview_id or found.stream != stream:
        raise Altered(f"{path} is not as it was written; preview the rewind again", file=str(path))
    return found


def keep_decision(landing: Path, plan: Plan) -> None:
    _keep(landing, plan.stream.name, _DECISIONS, plan.plan_id, plan.to_json())


def kept_decision(landing: Path, stream: str, plan_id: str) -> Plan:
    """The same: the plan of a decision about what is held, and of this stream."""
    path, text = _kept(landing, stream, _DECISIONS, plan_id)
    found = plan_from_json(text)
    if found.plan_id != plan_id or found.stream.name != stream or found.choice is None:
        raise Altered(f"{path} is not as it was written; preview the decision again", file=str(path))
    return found


def keep_rejection(landing: Path, stream: str, preview_id: str, said: Rejected) -> None:
    _check(preview_id)
    _keep(landing, stream, _REJECTED, preview_id, REJECTED.text(said))


def kept_rejection(landing: Path, stream: str, preview_id: str) -> Rejected | None:
    _check(preview_id)
    try:
        return REJECTED.read(plain_text(below(landing, stream, _REJECTED) / f"{preview_id}.json"))
    except FileNotFoundError:
        return None


def kept_files(landing: Path, stream: str) -> list[Path]:
    """All that is kept of previews of a stream, and nothing that is called otherwise."""
    folders = [below(landing, stream, kind) for kind in FOLDERS]
    found = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
    return sorted(p for p in found if _FILE.fullmatch(p.name) and p.is_file() and not p.is_symlink())


def _keep(landing: Path, stream: str, kind: str, name: str, text: str) -> None:
    folder = below(landing, stream, kind)
    try:
        for each in (landing, folder.parent, folder):
            make_folder(each)
        write_first(folder / f"{name}.json", text)
    except OSError as error:
        raise Transient(f"cannot write to {folder}: {error.strerror}; free disk space and try again") from None


def _kept(landing: Path, stream: str, kind: str, name: str) -> tuple[Path, str]:
    _check(name)
    path = below(landing, stream, kind) / f"{name}.json"
    try:
        return path, plain_text(path)
    except FileNotFoundError:
        raise BadInput(f"stream {stream} has no preview {name}; preview it again") from None


def _check(name: str) -> None:
    """Ids come from people and from XComs: nothing else becomes a path."""
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise BadInput(f"{ascii(name)[:80]} is not the id of a preview (32 hex digits)")
