"""What one expectation found, read from Great Expectations' result: plain values and sentences.

Pure. Decides what a sentence shows of a row: the columns that were looked at and the expectation's limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.stream import Expectation

ID = "waveform_id"
_SUBJECT = ("column", "column_A", "column_B", "column_list", "row_condition", "description")
_SHOWN = 120
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """`met` already takes `mostly` into account. `seen`: about the whole batch. `rows`: waveform id → what was seen,
    for the rows that a row-level expectation found wanting, whether it was met or not."""

    expectation: Expectation
    row_level: bool
    met: bool
    seen: str
    rows: Mapping[str, str]
    crash: str = ""
    """Why it could not be judged at all; it is not met then, and names no rows."""

    @property
    def allowed(self) -> str:
        """The expectation's limits as its author wrote them; empty where it has none."""
        limits = {k: v for k, v in self.expectation.kwargs.items() if k not in _SUBJECT}
        text = ", ".join(f"{key} {_show(value)}" for key, value in limits.items())
        return f"; allowed: {text}" if text else ""

    def row_sentence(self, waveform_id: str) -> str:
        return f"{self.expectation.type}: {self.rows[waveform_id]}{self.allowed}"

    def batch_sentence(self) -> str:
        return f"{self.subject}: {self.seen}{self.allowed}"

    @property
    def subject(self) -> str:
        return f"{self.expectation.type}{_about(self.expectation.kwargs)}"


def unjudged(expectation: Expectation, why: str) -> Outcome:
    """Of an expectation that crashed on these rows: nobody knows whether they meet it."""
    return Outcome(expectation, False, False, f"could not be judged: {_show(why)}", {}, crash=_show(why))


def read_outcome(expectation: Expectation, *, row_level: bool, success: bool, result: Mapping[str, Any]) -> Outcome:
    """`result` must be in the format COMPLETE: fewer rows than were counted is a `Terminal` error, not a guess."""
    listed = result.get("unexpected_index_list") or []
    counted = result.get("unexpected_count") or 0
    if row_level and listed and len(listed) != counted:
        raise Terminal(
            f"{expectation.type} counted {counted} rows and names {len(listed)}; which waveforms to hold is not known"
        )
    rows: dict[str, str] = {}
    if row_level:
        for entry in listed:
            columns = {k: v for k, v in entry.items() if k != ID} or entry
            rows[str(entry[ID])] = ", ".join(f"{name} is {_show(value)}" for name, value in columns.items())
    return Outcome(expectation, row_level, bool(success), _seen(result, rows), rows)


def _seen(result: Mapping[str, Any], rows: Mapping[str, str]) -> str:
    if rows:
        first = ", ".join(f"{_show(waveform)} ({seen})" for waveform, seen in list(rows.items())[:_EXAMPLES])
        return f"{len(rows)} of {result.get('element_count')} rows, first {first}"
    if "observed_value" in result and result["observed_value"] is not None:
        return f"seen {_show(result['observed_value'])}"
    if result.get("partial_unexpected_list"):
        return f"seen {_show(result['partial_unexpected_list'])}"
    if "element_count" in result:
        return f"none of {result['element_count']} rows"
    return "seen nothing to measure" if "observed_value" in result else "seen as it should not be"


def _about(kwargs: Mapping[str, Any]) -> str:
    columns = [kwargs[k] for k in ("column", "column_A", "column_B") if k in kwargs] or kwargs.get("column_list", [])
    where = " where its row_condition holds" if kwargs.get("row_condition") else ""
    return (f" on {', '.join(map(str, columns))}" if columns else "") + where


def _show(value: Any) -> str:
    """`value` in a sentence: instants as ISO text, nothing longer than a line."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        text = "null"
    elif isinstance(value, datetime | date):
        text = value.isoformat()
    elif isinstance(value, str | bool | int):
        text = str(value)
    elif isinstance(value, float):
        text = repr(float(value))  # of numpy's floats, too: without the type's name
    elif isinstance(value, list | tuple):
        text = f"[{', '.join(_show(v) for v in value[:_SHOWN])}]"
    else:
        text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
