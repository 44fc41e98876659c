"""What an expectation's arguments may be: for each kind of argument a check that says what is wrong with a value. Pure.

Decides which values may reach Great Expectations: finite numbers, short printable texts, instants, days, flat lists of
them, columns of a batch's rows, patterns without what only a backtracking engine can do. A mapping is never a value.
Each check takes the value and the columns that the expectation names, and returns a sentence, or None if it is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

from wavestitch.contracts.harmless import harmless, is_plain

Check = Callable[[Any, Sequence[str]], str | None]
MOST_VALUES = 1000
_MOST_CHARS = 200
_MOST_PATTERNS = 20
_MOST_COUNT = 2**53
_SHOWN = 80
# After an even number of backslashes: `(?=`, `(?!`, `(?<=`, `(?<!`, `(?>`, `(?P=`, `(?(`; after an odd one: a digit.
_BACKTRACKS = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:[=!>(]|<[=!]|P=)|\\[1-9])")


class Kind(Enum):
    """What a column holds, as far as comparing goes."""

    NUMBER = "numbers (whole ones up to 2^53)"
    TEXT = "text"
    INSTANT = "instants with a time zone, such as '2024-05-01T00:00:00Z'"
    DAY = "days, such as '2024-05-01'"


# Those of `contracts.rows.STITCHED`, without Arrow: DAG files are parsed again and again, and read streams.
COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("waveform_id", "reason", "evidence", "file"), Kind.TEXT),
    "row": Kind.NUMBER,
    "day": Kind.DAY,
    "byte_length": Kind.NUMBER,
    **dict.fromkeys(("source", "channel"), Kind.TEXT),
    "start_time": Kind.INSTANT,
    **dict.fromkeys(("duration_s", "sampling_rate_hz"), Kind.NUMBER),
    **dict.fromkeys(("sample_format", "units"), Kind.TEXT),
    **dict.fromkeys(("sample_count", "nonfinite_count", "sample_min", "sample_max"), Kind.NUMBER),
    **dict.fromkeys(("physical_min", "physical_max", "chunk_count"), Kind.NUMBER),
}


def kind_of(column: str) -> Kind:
    return COLUMNS[column]


def typed_value(value: Any, kind: Kind) -> int | float | str | datetime | date | None:
    """`value` as a column of `kind` compares it; None where it is none. What has no time zone is never guessed at."""
    if kind is Kind.NUMBER:
        return value if _is_number(value) else None
    if kind is Kind.TEXT:
        return value if isinstance(value, str) and len(value) <= _MOST_CHARS and is_plain(value) else None
    return _instant(value) if kind is Kind.INSTANT else _day(value)


def is_column(value: Any, _columns: Sequence[str]) -> str | None:
    if isinstance(value, str) and value in COLUMNS:
        return None
    return f"there is no column {_show(value)}; the columns are {', '.join(COLUMNS)}"


def is_number_column(value: Any, columns: Sequence[str]) -> str | None:
    if problem := is_column(value, columns):
        return problem
    return None if kind_of(value) is Kind.NUMBER else f"{value} holds {kind_of(value).value}; this needs numbers"


def is_text_column(value: Any, columns: Sequence[str]) -> str | None:
    if problem := is_column(value, columns):
        return problem
    return None if kind_of(value) is Kind.TEXT else f"{value} holds {kind_of(value).value}; this needs text"


def are_columns(value: Any, columns: Sequence[str]) -> str | None:
    if not isinstance(value, list) or not 2 <= len(value) <= len(COLUMNS):
        return f"{_show(value)} is not a list of two columns or more"
    if problem := next((p for v in value if (p := is_column(v, columns))), None):
        return problem
    return None if len(set(value)) == len(value) else f"{_show(value)} names a column twice"


def is_bound(value: Any, columns: Sequence[str]) -> str | None:
    """A value that the column can be compared with."""
    kind = kind_of(columns[0])
    if kind is Kind.TEXT:
        return f"{columns[0]} holds text, which has no bounds; list its values or give a pattern"
    return None if typed_value(value, kind) is not None else _wrong(value, columns[0], kind)


def are_values(value: Any, columns: Sequence[str]) -> str | None:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_VALUES:
        return f"{_show(value)} is not a list of 1 to {MOST_VALUES} values"
    kind = kind_of(columns[0])
    return next((_wrong(v, columns[0], kind) for v in value if typed_value(v, kind) is None), None)


def is_count(value: Any, _columns: Sequence[str]) -> str | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT
    return None if fits else f"{_show(value)} is not a whole number from 0 on"


def is_share(value: Any, _columns: Sequence[str]) -> str | None:
    return None if _is_number(value) and 0 <= value <= 1 else f"{_show(value)} is not a number between 0 and 1"


def is_flag(value: Any, _columns: Sequence[str]) -> str | None:
    return None if isinstance(value, bool) else f"{_show(value)} is neither true nor false"


def is_one_of(*words: str) -> Check:
    def check(value: Any, _columns: Sequence[str]) -> str | None:
        return None if isinstance(value, str) and value in words else f"{_show(value)} is none of {', '.join(words)}"

    return check


def is_pattern(value: Any, _columns: Sequence[str]) -> str | None:
    """RE2's patterns only, which take a time that grows with the text alone. Whether RE2 takes it, RE2 says later."""
    if not isinstance(value, str) or not 1 <= len(value) <= _MOST_CHARS or not is_plain(value):
        return f"{_show(value)} is not a pattern of 1 to {_MOST_CHARS} printable characters"
    if _BACKTRACKS.search(value):
        return f"{_show(value)} is not a pattern of RE2's: it has look-around or a back reference"
    return None


def are_patterns(value: Any, columns: Sequence[str]) -> str | None:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_PATTERNS:
        return f"{_show(value)} is not a list of 1 to {_MOST_PATTERNS} patterns"
    return next((problem for v in value if (problem := is_pattern(v, columns))), None)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # Compared as a double: a larger whole number would be another one there.
    return abs(value) <= _MOST_COUNT if isinstance(value, int) else math.isfinite(value)


def _instant(value: Any) -> datetime | None:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return None if found.tzinfo is None else found.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def _day(value: Any) -> date | None:
    try:
        found = value if isinstance(value, date) else date.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return None if isinstance(found, datetime) else found


def _wrong(value: Any, column: str, kind: Kind) -> str:
    return f"{_show(value)} cannot be compared with {column}, which holds {kind.value}"


def _show(value: Any) -> str:
    return harmless(repr(value), most=_SHOWN)
