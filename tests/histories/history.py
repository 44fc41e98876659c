"""A history: what was seen at the edges of a stream, event by event, in the order in which it happened. Never changed.

Kept by witnesses at the log, the tables and the runs, never by the code that is judged. One JSON object a line on disk,
so that a history of another day, or of a real broker, can be analysed by itself. Decides nothing; `checker` does.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from tests.histories.events import Event

_TYPES: dict[str, Any] = {t.__name__: t for t in get_args(Event)}


class History:
    """Events, oldest first. Only ever appended to; given a path, each is on disk before `append` returns."""

    def __init__(self, events: Iterable[Event] = (), path: Path | None = None) -> None:
        self._events: list[Event] = list(events)
        self._path = path
        self.copies: list[History] = []
        """Of copies of the tables that somebody worked on, too."""

    def append(self, event: Event) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(event_to_json(event) + "\n")
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def save(self, path: Path) -> None:
        path.write_text("".join(event_to_json(e) + "\n" for e in self._events))


def load_history(path: Path) -> History:
    """The history in a file; a last line that was cut off by a crash is left out."""
    lines = path.read_text().split("\n")
    return History(event_from_json(line) for line in lines[:-1] if line)


def event_to_json(event: Event) -> str:
    found = {f.name: getattr(event, f.name) for f in fields(event)}
    return json.dumps({"event": type(event).__name__, **{k: _plain(v) for k, v in found.items()}})


def event_from_json(text: str) -> Event:
    found = json.loads(text)
    kind = _TYPES[found.pop("event")]
    hints = get_type_hints(kind)
    made: Event = kind(**{k: _typed(v, hints[k]) for k, v in found.items()})
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _typed(value: Any, hint: Any) -> Any:
    """The value as its field's type has it: JSON knows neither bytes nor tuples nor keys that are numbers."""
    origin, args = get_origin(hint), get_args(hint)
    if value is None:
        return None
    if origin in (types.UnionType, Union):
        return _typed(value, next(a for a in args if a is not type(None)))
    if hint is bytes:
        return bytes.fromhex(value)
    if origin is dict:
        return {args[0](k): _typed(v, args[1]) for k, v in value.items()}
    if origin is tuple:
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else args
        return tuple(_typed(v, k) for v, k in zip(value, kinds, strict=True))
    return value
