"""A sound history written by hand, and what to write another one with: a rewind, a decision, a change of one event."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.builders.records import cut, metadata
from tests.histories.anomaly import Kind
from tests.histories.checker import analyse
from tests.histories.events import (
    Committed,
    Ended,
    Event,
    Held,
    Looked,
    Planned,
    Produced,
    Projected,
    Published,
    Quiet,
    Read,
    Recorded,
    Rewound,
    Settled,
    Started,
    TopicMade,
    Truncated,
)
from tests.histories.history import History
from tests.histories.interval_events import Backfilled
from tests.histories.promotion_events import Spoils
from tests.histories.verify_events import Verified

T = "topic-1"
NOW = 1_700_000_000_000
WAVE = cut("w1", [b"\x01\x00", b"\x02\x00", b"\x03\x00"], meta=metadata(NOW))
OPEN = cut("w2", [b"\x07\x00", b"\x08\x00"], meta=metadata(NOW))[:1]
AUDIT = dict.fromkeys(
    ("published", "duplicate", "replay", "quarantined", "carried_out", "reported", "out_of_scope", "carried_in"), 0
)


(NEW,) = cut("w3", [b"\x05\x00"], meta=metadata(NOW))


def produced(offset: int, letter: Any, seen: str = "committed") -> Produced:
    return Produced(T, 0, offset, NOW, *letter, seen)  # type: ignore[call-arg]


def proof_of(letter: Any) -> str:
    meta = dict(letter.headers)["ws-meta"]
    return hashlib.sha256(hashlib.sha256(meta).digest() + letter.value).hexdigest()


def held(offset: int, letter: Any, decision: str, reason: str = "open") -> Held:
    seq = int(dict(letter.headers)["ws-seq"])
    what = (letter.key.decode(), seq, len(letter.value), proof_of(letter), True)
    return Held("run-1", T, 0, offset, *what, reason, decision, letter.value)


def head(sequence: int, position: int, **more: Any) -> Committed:
    made = Committed("run-1", sequence, 1, "first", T, "", "", {0: position}, ())
    return replace(made, **more)


def projected(offset: int, sequence: int, generation: int = 1, run: str = "run-1") -> Projected:
    return Projected(run, T, {0: offset}, generation, sequence)


CHUNKS = tuple((T, 0, n, 2, proof_of(one)) for n, one in enumerate(WAVE))
ROW = Published("run-1", "p1", 2, "w1", b"\x01\x00\x02\x00\x03\x00", CHUNKS)


def sound() -> list[Event]:
    """A whole waveform, an aborted record, its marker, and a chunk that waits: offsets 0 to 6 of one partition."""
    return [
        TopicMade(T),
        *(produced(n, one) for n, one in enumerate(WAVE)),
        produced(3, WAVE[0], "open"),
        Settled(T, 0, (3,), "aborted"),
        Produced(T, 0, 4, NOW, None, (), None, "marker"),
        produced(5, OPEN[0]),
        Started("run-1", "ingest", 100),
        Looked("run-1", "topic"),
        Looked("run-1", "group"),
        head(1, 0),
        projected(0, 1),
        Planned("run-1", "p1", "ingest", 1, 1, T, {0: 0}, ((0, 0, 6),)),
        Read("run-1", "p1", T, 0, 0, 6, (0, 1, 2, 5)),
        held(5, OPEN[0], "d1"),
        ROW,
        head(2, 6, kind="ingest", plan_id="p1", decision="d1"),
        Recorded(
            "run-1", 2, "d1", {0: {**AUDIT, "published": 3, "carried_out": 1, "read": 4, "planned": 6, "holes": 2}}
        ),
        Looked("run-1", "group"),
        projected(6, 2),
        Ended("run-1", "done", 40),
        Quiet(),
    ]


def kinds(events: list[Event]) -> list[Kind]:
    return [a.kind for a in analyse(History(events))]


def swap(old: Event, *new: Event) -> list[Event]:
    events = sound()
    at = events.index(old)
    return [*events[:at], *new, *events[at + 1 :]]


def swap_type(kind: type, change: Callable[[Any], Any], nth: int = 0) -> list[Event]:
    found = [e for e in sound() if isinstance(e, kind)][nth]
    return swap(found, change(found))


def after(kind: type, *new: Event, nth: int = 0) -> list[Event]:
    found = [e for e in sound() if isinstance(e, kind)][nth]
    return swap(found, found, *new)


def late(what: Event, kind: type) -> list[Event]:
    """The event only after the first one of that kind."""
    events = swap(what)
    at = next(n for n, e in enumerate(events) if isinstance(e, kind)) + 1
    return [*events[:at], what, *events[at:]]


def before_quiet(*new: Event) -> list[Event]:
    return swap(Quiet(), *new, Quiet())


def a_rewind(to: int, *, skipped: Any = (), accepted: bool = True, generation: int = 2) -> list[Event]:
    made = replace(head(3, to), run="run-2", kind="rewind", generation=generation, skipped=skipped)
    return [
        *(produced(n, one) for n, one in zip(range(6, to), WAVE, strict=False)),
        Rewound("run-2", "offsets", accepted),
        Started("run-2", "rewind", 100),
        Looked("run-2", "topic"),
        Looked("run-2", "group"),
        made,
        projected(to, 3, generation, "run-2"),
        Ended("run-2", "done", 9),
    ]


def a_decision(action: str, *events: Event, ids: tuple[str, ...] = ("w1",)) -> list[Event]:
    """An operator's, made on head 2 and committed as head 3."""
    return [
        Started("run-2", "held", 100),
        Planned("run-2", "p2", "held", 1, 2, T, {0: 6}, (), action, ids),
        *events,
        replace(head(3, 6), run="run-2", kind="held", plan_id="p2", decision="d2"),
        projected(6, 3, run="run-2"),
        Ended("run-2", "done", 9),
    ]


def parked(reason: str = "parked") -> list[Event]:
    """The whole waveform is held, and waits for somebody."""
    return [Spoils(("w1",)), *swap(ROW, *(held(n, one, "d1", reason) for n, one in enumerate(WAVE)))]


def then(events: list[Event], *more: Event) -> list[Event]:
    return [*events[:-1], *more, events[-1]]


LATER = replace(ROW, run="run-2", plan_id="p2", sequence=3)
CUT: list[Event] = [Truncated(T, 0, 5), produced(5, WAVE[0])]
"""Offset 5, which was read, comes again."""


def planned(plan_id: str, *, run: str = "run-1", kind: str = "ingest", **more: Any) -> Planned:
    """On head 2 of the sound history."""
    return replace(Planned(run, plan_id, kind, 1, 2, T, {0: 6}, ()), **more)


def committed_by(plan_id: str, kind: str) -> list[Event]:
    return [replace(head(3, 6), run="run-2", kind=kind, plan_id=plan_id), projected(6, 3, run="run-2")]


VERIFIED = Verified("run-1", ((0, 0, 6),), ((0, 0, 6),), (("w1", "same"), ("w2", "held")))
"""What the sound history is."""


def a_skip_and_a_backfill(*published: Event) -> list[Event]:
    """Somebody goes over a waveform by name, and backfills the interval that it is of."""
    scope = (NOW * 10**6, (NOW + 1) * 10**6)
    _, rewound, *rest = a_rewind(7, skipped=((0, 6, 7),))
    back = replace(head(4, 7), run="run-3", generation=2, kind="backfill", plan_id="p3", decision="d3")
    return [
        produced(6, NEW),
        rewound,
        *rest,
        Started("run-3", "backfill", 100),
        Looked("run-3", "topic"),
        Planned("run-3", "p3", "backfill", 2, 3, T, {0: 7}, ((0, 6, 7),), scope=scope),
        Read("run-3", "p3", T, 0, 6, 7, (6,)),
        *published,
        replace(back, skipped=((0, 6, 7),)),
        projected(7, 4, 2, "run-3"),
        Backfilled("run-3", "p3", scope),
        Ended("run-3", "done", 9),
    ]
