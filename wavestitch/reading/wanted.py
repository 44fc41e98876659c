"""Which waveforms are wanted: what a caller says, taken once, and the same for every look at the table. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.instant import Instant, instant_ns
from wavestitch.contracts.plain_text import check_utf8


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that is said must hold, None says nothing. Those whose first sample lies in `[start_ns, end_ns)`."""

    equal: dict[str, str]
    start_ns: int | None
    end_ns: int | None
    ids: frozenset[str] | None


def want(
    *,
    source: str | None = None,
    channel: str | None = None,
    start: Instant | None = None,
    end: Instant | None = None,
    ids: Iterable[str] | None = None,
) -> Wanted:
    """`ids` may be read once. Raises `BadInput` for what no waveform can have."""
    named = {"source": source, "channel": channel}
    begin, behind = (None if said is None else instant_ns(said) for said in (start, end))
    equal = {name: _text(name, said) for name, said in named.items() if said is not None}
    return Wanted(equal, begin, behind, None if ids is None else _ids(ids))


def _text(name: str, said: object) -> str:
    if not isinstance(said, str):
        raise BadInput(f"{name} has {said!r}, which is no text; write the text itself")
    return str(check_utf8(said, of=name))  # NumPy's texts are ones, too


def _ids(ids: Iterable[str]) -> frozenset[str]:
    if isinstance(ids, str):
        raise BadInput(f"ids={ids!r} is one text, whose letters would be taken for ids; write ids=[{ids!r}]")
    return frozenset(_text("ids", one) for one in ids)
