"""What a long run came to so far, in a small committed file beside its code: a clone goes on where another stopped.

Counted is what the present code has done; what another one did is written over. One process at a time writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Ranges = list[list[int]]
"""Of numbers, half-open, in order, none next to another."""


def read_run(path: Path, code: str) -> dict[str, Any]:
    """Empty where there is nothing of this code."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found if found.pop("code", None) == code else {}


def keep_run(path: Path, code: str, found: dict[str, Any]) -> None:
    write_account(path, {"code": code, **found})


def write_account(path: Path, found: object) -> None:
    """As a whole, or not at all."""
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    scratch.replace(path)


def with_range(ranges: Ranges, start: int, end: int) -> Ranges:
    """These and one more, which may touch them."""
    joined: Ranges = []
    for a, b in sorted([*ranges, [start, end]]):
        if joined and a <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], b)
        else:
            joined.append([a, b])
    return joined


def numbers_of(ranges: Iterable[list[int]]) -> Iterator[int]:
    for start, end in ranges:
        yield from range(start, end)
