"""What XComs say, whoever wrote it: a run has a story of it and a JSON, and no text of it becomes part of a page.

The pages themselves are tried in `tests/unit/test_run_story.py`: what marks patterns for the fuzzer cannot read a
template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from tests.fuzz.target import Target
from wavestitch.contracts.harmless import is_plain
from wavestitch.ui.answer import PlainJson
from wavestitch.ui.facts import run_said
from wavestitch.ui.run_story import RunFacts, story_of
from wavestitch.ui.said import plain
from wavestitch.ui.shown import blocks

_TAG = re.compile(r"</?([^\s>/]*)")

SAYS = (
    *(("ingest", task, key) for task, key in (("plan", "plan_id"), ("plan", "nothing"), ("publish", "return_value"))),
    *(("backfill", "report", "return_value"), ("backfill", "plan", "return_value")),
    *(("rewind", "preview", "shown"), ("rewind", "apply", "return_value")),
    *(("decide", "preview", "shown"), ("decide", "keep_plan", "plan_id"), ("decide", "publish", "return_value")),
    *(("verify", "verify", "found"), ("maintain", "ecg", "return_value"), ("watch", "look", "return_value")),
)


def xcom(data: bytes) -> None:
    kind, task, key = SAYS[data[0] % len(SAYS) if data else 0]
    text = data[1:].decode(errors="surrogatepass" if _is_text(data[1:]) else "replace")
    run = RunFacts("d", "r", "success", {}, {(task, key): _as_airflow_has_it(text)})
    story = story_of(kind, run, may={"ecg"})
    shown = Markup().join(cell for block in blocks(story.shown) for row in block.rows for cell in row)
    assert set(_TAG.findall(shown)) <= {"code", "strong", "em"}
    assert is_plain(shown)
    said = PlainJson(run_said(kind, "ecg", run, story, None)).body
    assert json.loads(bytes(said))["kind"] == kind


def _is_text(data: bytes) -> bool:
    try:
        data.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _as_airflow_has_it(text: str) -> Any:
    """Its database's JSON; or the text, of writers that put JSON into it as a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return plain(text)


def _seeds() -> Iterator[bytes]:
    found: list[Any] = [
        {"result": "Finished", "published": {"waveforms": {"published": 3, "open": 1}}},
        {"said": ["a"], "incomplete": ["w"], "published": 1, "batches": 2, "replays": 3},
        {"head": 3, "generation": 1, "undo": "head:2", "asked_by": "a", "approved_by": "b"},
        {"waveforms": [{"waveform_id": "<b>", "found": "differs", "why": "\ud800"}], "compared": 3, "exit_code": 1},
        {"applied": True, "actions": [{"action": "a", "count": 1, "unit": "u", "kept": ["k"]}], "failures": [{}]},
        [{"stream": "ecg", "problem": ""}, {"stream": "ecg", "headroom": {"alarm": "red", "lost": 3}}],
        "| a | b |\n|---|---|\n| `x` | **y** |\n- *z*",
    ]
    yield from (bytes([n]) + json.dumps(one).encode() for n in range(len(SAYS)) for one in found)
    yield b"\x00" + b"[" * 2000


TARGETS = (Target("xcom", xcom, _seeds, ("stream", "headroom", "waveforms", "actions", "kept", "\\ud800", "`", "|")),)
