"""What a reading process is told, and what it says: one line of JSON each (`unit_processes`, `unit_process`).

A job holds passwords: it goes through a pipe alone, and is never shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.versioned import Versioned

_AGAIN = "run the batch's read step again"


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A unit to be read. `plan`: its JSON. `folder`: absolute. `budget`: bytes for all units that are read together.
    `careful`: record batch by record batch, in little memory. `proof_key`: in hex, looked up already, since a child has
    neither our environment nor, perhaps, the right to the file."""

    plan: str
    unit: int
    folder: str
    budget: int
    bootstrap: str
    options: dict[str, str] = field(repr=False)
    token: str | None = field(repr=False)
    proof_key: str = field(repr=False)
    payload: PayloadPlace | None = field(repr=False)
    careful: bool = False


@dataclass(frozen=True, slots=True)
class UnitProgress:
    """Sums of the unit so far: records, bytes, and what counts towards the budget (`ByteBudget.counts`)."""

    records: int
    bytes: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UnitRead:
    """`receipt`: its JSON."""

    receipt: str


@dataclass(frozen=True, slots=True)
class UnitFailed:
    """`error`: as `WavestitchError.to_json` has it."""

    error: dict[str, Any]


UnitWord = UnitProgress | UnitRead | UnitFailed

READ_JOBS = Versioned(ReadJob, "what a reading process was told", _AGAIN)
_WORDS: dict[str, Versioned[Any]] = {
    kind.__name__: Versioned(kind, "what a reading process says", _AGAIN)
    for kind in (UnitProgress, UnitRead, UnitFailed)
}


def word_to_line(word: UnitWord) -> str:
    name = type(word).__name__
    return json.dumps({"word": name, **_WORDS[name].content(word)})


def word_from_line(line: str | bytes) -> UnitWord:
    """Raises `BadInput` for what no reading process says."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("word") not in _WORDS:
        raise BadInput(f"a reading process said what it has no word for; {_AGAIN}")
    word: UnitWord = _WORDS[found.pop("word")].of(found)
    return word
