"""One look at a stream for whoever watches over it: what is other than was last told is told, once, and kept.

That it was told is kept only after every way has taken it: two that look at once, or a death in between, tell a thing
twice, never not at all. What was seen is kept by each look. Moves nothing of the stream.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from wavestitch.batch.deployment import Deployment, plain_name
from wavestitch.batch.headroom import measure_room
from wavestitch.batch.history import whole_history
from wavestitch.batch.kept_told import keep_told, kept_told
from wavestitch.batch.lag_trigger import Start, start_by_lag
from wavestitch.batch.metrics import tell_metrics
from wavestitch.batch.notify import Fact, notify
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.freshness import said_of_freshness, say_freshness
from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.headroom import Alarm, Room
from wavestitch.contracts.headroom_told import Sight, Told, numbers, say_room
from wavestitch.contracts.past_cost import RECENT
from wavestitch.contracts.quantities import EpochMs, epoch_ms

_SIDE_BY_SIDE = 8
NOT_ASKED = Start(False, "nobody asked")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watched:
    """`room`: None where the stream has not begun, or `problem` says why it could not be looked at. `told`: whether
    something new was to be told; `delivered`: and every way took it, and it was kept. `start`: whether it is to be
    started by its lag."""

    stream: str
    room: Room | None
    problem: str = ""
    told: bool = False
    delivered: bool = True
    start: Start = NOT_ASKED

    @property
    def worrying(self) -> bool:
        alarmed = self.room is not None and self.room.alarm is not Alarm.GREEN
        late = self.room is not None and self.room.late
        return bool(self.problem) or self.start.stands or alarmed or late

    @property
    def stands(self) -> str:
        """What keeps it from being started, though its lag should start it; or nothing."""
        return self.start.why if self.start.stands else ""


def watch_stream(deployment: Deployment, name: str, *, now: EpochMs | None = None) -> Watched:
    """Never raises what the stream's own edges say: that is what is told."""
    settings = deployment.settings
    now = epoch_ms(time.time_ns()) if now is None else now
    kept = kept_told(settings.landing, plain_name(name))
    try:
        seen = Watched(name, _look(deployment, name, kept, now=now))
    except WavestitchError as error:
        seen = Watched(name, None, error.message)
    seen = replace(seen, start=start_by_lag(deployment, seen))
    new = kept.failing() if seen.problem else kept.seeing(seen.room or Room(())).standing(seen.stands, now=now)
    return _tell(deployment, seen, kept, new)


def room_of(deployment: Deployment, name: str) -> Room | None:
    """The headroom as it is now, nothing told or kept; None where the stream has not begun. Raises what its edges
    say."""
    kept = kept_told(deployment.settings.landing, plain_name(name))
    return _look(deployment, name, kept, now=epoch_ms(time.time_ns()))


def watch_streams(deployment: Deployment, names: Sequence[str]) -> list[Watched]:
    """Side by side: one that does not answer keeps no other one waiting, and none ends the look at the others."""
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="watch") as pool:
        return list(pool.map(partial(_watch_one, deployment), names))


def _watch_one(deployment: Deployment, name: str) -> Watched:
    try:
        return watch_stream(deployment, name)
    except Exception as error:
        log.exception("%s: the look at it failed", harmless(name))
        said = error.message if isinstance(error, WavestitchError) else f"{type(error).__name__}; the log says more"
        return Watched(name, None, f"the look at it failed: {said}", told=True, delivered=False)


def room_to_json(room: Room | None) -> dict[str, Fact] | None:
    """For scripts, and for whoever is told; None where nothing could be seen, or the stream has not begun."""
    if room is None or not room.begun:
        return None
    return {
        "alarm": room.alarm.value,
        "backlog": room.backlog,
        "behind_s": room.behind_s,
        "left_s": room.left_s,
        "lost": room.lost,
        "behind_open": room.waiting,
    }


def freshness_to_json(room: Room | None) -> dict[str, Fact] | None:
    """The same; None also where the stream declares none."""
    if room is None or room.freshness is None:
        return None
    of = room.freshness
    return {
        "declared_s": of.declared_s,
        "late": of.alarmed,
        "p99_s": of.p99_s,
        "waveforms": of.waveforms,
        "waveforms_late": of.late,
        "unread_s": of.unread_s,
        "known": of.known,
        "by_broker": of.by_broker,
    }


def watched_line(seen: Watched) -> str:
    """First what is wrong, if anything is; then what was done about it."""
    if seen.problem:
        said = f"cannot be looked at: {seen.problem}"
    elif seen.room is None:
        said = "no batch yet"
    else:
        left = f", {seen.room.shown} until retention takes unread data" if seen.room.shown else ""
        gone = f", {seen.room.lost} offsets lost unread" if seen.room.lost else ""
        said = f"headroom is {seen.room.alarm}{left}{gone}; {seen.room.backlog} offsets unread"
        said = said if seen.room.begun else "no batch yet"
        if seen.room.freshness is not None:
            said += f"; {said_of_freshness(seen.room.freshness)}"
        said = "; ".join((said, *seen.room.remarks))
    said += f"; stands still: {seen.stands}" if seen.stands else ""
    told = "" if not seen.told else "; told" if seen.delivered else "; could not be told, is tried again"
    return f"{seen.stream}: {said}{told}"


def watched_to_json(seen: Watched) -> dict[str, Any]:
    return {
        "stream": seen.stream,
        "headroom": room_to_json(seen.room),
        "freshness": freshness_to_json(seen.room),
        "problem": seen.problem,
        "stands": seen.stands,
        "remarks": [] if seen.room is None else list(seen.room.remarks),
        "told": seen.told,
        "delivered": seen.delivered,
    }


def _look(deployment: Deployment, name: str, kept: Told, *, now: EpochMs) -> Room | None:
    stream, tables = deployment.stream(name), deployment.tables(name)
    head = tables.head()
    past = [] if head is None else whole_history(deployment.history(name), since=head.sequence - RECENT + 1)
    thresholds = deployment.settings.notify.thresholds
    log = deployment.log
    return measure_room(stream, log=log, tables=tables, past=past, now=now, thresholds=thresholds, told=kept)


def _tell(deployment: Deployment, seen: Watched, kept: Told, new: Told) -> Watched:
    settings, delivered = deployment.settings, True
    told = new.must_be_told(kept)
    if told:
        subject, text = _said(seen, new, kept)
        facts = _facts(seen, new, kept)
        delivered = notify(settings.notify, subject=subject, text=text, facts=facts)
    known = new if delivered else new.untold(kept)
    if known != kept:
        try:
            keep_told(settings.landing, seen.stream, known)
        except WavestitchError as error:
            log.error("%s: what was seen and told of it is not kept, and told again: %s", seen.stream, error.message)
            delivered = False
    tell_metrics(deployment, seen.stream, room=seen.room)
    return replace(seen, told=told, delivered=delivered)


def _said(seen: Watched, new: Told, kept: Told) -> tuple[str, str]:
    if new.sight is Sight.BLIND:
        return (
            f"{seen.stream}: cannot be looked at, so nobody sees how close retention is, nor how late it is",
            f"{seen.problem}. `wavestitch status` looks again.",
        )
    room, found = seen.room or Room(()), []
    if new.stands_anew(kept):
        text = f"{seen.stands}. `wavestitch plan {seen.stream}` asks again."
        found.append((f"{seen.stream}: stands still, though its lag should start it", text))
    if new.room_must_be_told(kept):
        found.append(say_room(seen.stream, room, new.worse(kept)))
    if new.late != kept.late:
        found.append(say_freshness(seen.stream, room.freshness, stands=seen.stands))
    if not found:
        found.append((f"{seen.stream}: nothing keeps it from being started any more", "Nothing is to be done."))
    # One notice a look: the first line is of what is most urgent, the others are said beside it.
    (subject, text), *beside = found
    return subject, " ".join([text, *(f"{line}. {more}" for line, more in beside)])


def _facts(seen: Watched, new: Told, kept: Told) -> dict[str, Fact]:
    """`partitions`: those that got worse."""
    room = room_to_json(seen.room) or {}
    blind = new.sight is Sight.BLIND
    worse = numbers(new.worse(kept))
    stands = bool(new.stands)
    return {
        "stream": seen.stream,
        **room,
        "late": new.late,
        "alarm": new.alarm.value,
        "blind": blind,
        "stands": stands,
        "partitions": worse,
    }
