"""docs/threat-model.md names tests, settings, modules and limits: each of them exists, and says there what it is."""

from __future__ import annotations

import re

from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, MOST_RECORD_BYTES
from consumers.unit_process import _MOST_DATA
from tests.conftest import ROOT
from wavestitch.batch import held_waveforms
from wavestitch.batch.held_page import MOST_CHUNKS, ROWS_SHOWN
from wavestitch.contracts.plain_text import MAX_SAID
from wavestitch.contracts.stream import Limits, Stream
from wavestitch.ui.looks import _LATELY, AT_ONCE, FRESH_S, WAIT_S
from wavestitch.ui.said import MOST_CHARS

TEXT = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")


def test_every_test_and_every_file_that_is_named_is_there() -> None:
    tests = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py")}
    sources = "\n".join(tests.values())
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    assert len(named) > 10
    assert sorted(n for n in named if f"def {n}(" not in sources) == []
    files = set(re.findall(r"`([\w/]+\.py|tests/[\w/]+)`", TEXT))
    assert len(files) > 20
    # What is named without a folder is in tests/security, as the page says at its beginning.
    places = [ROOT, ROOT / "tests" / "security", ROOT / "wavestitch"]
    assert sorted(f for f in files if not any((place / f).exists() for place in places)) == []


def test_every_limit_that_is_named_is_one_and_every_number_is_the_code_s() -> None:
    assert set(re.findall(r"`limits\.(\w+)`", TEXT)) <= Limits.model_fields.keys()
    assert {"proof", "on_reset"} <= Stream.model_fields.keys()
    assert f"{_MOST_DATA >> 30} GiB of memory of its own" in TEXT
    assert f"above {MOST_RECORD_BYTES >> 20} MiB, of more than {MOST_HEADERS:,} headers" in TEXT
    assert f"more than {MOST_ASIDE_BYTES >> 20} MiB of key and headers is held as `unreadable`" in TEXT
    assert f"one line of {MAX_SAID} printable characters" in TEXT
    assert f"a page waits {WAIT_S:.0f} s at most" in TEXT
    assert "a million rows that is 2 GiB" in TEXT
    assert Limits().max_held_rows == 1_000_000
    assert f"load {held_waveforms._ROWS_AT_ONCE:,} rows at a time" in TEXT
    assert f"and {held_waveforms._IDS_AT_ONCE:,}\n  ids" in TEXT
    assert f"more than {MOST_CHUNKS:,} chunks" in TEXT
    assert f"and shows {ROWS_SHOWN}, as JSON" in TEXT
    assert f"renewed {AT_ONCE} in {FRESH_S:.0f} s" in TEXT
    assert f"in the last {FRESH_S * _LATELY:.0f} s" in TEXT
    assert f"more than {MOST_CHARS:,} characters" in TEXT
