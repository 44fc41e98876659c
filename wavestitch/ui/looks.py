"""Looks at streams for the API server: bounded, shared and off its thread pool, which also serves tasks' heartbeats.

Decides how long a page waits and how old its facts may be. One look at a time per stream, however many ask; what the
tables know is shown at once, what the log says when it answers. Never raises an error of ours. Invariant: a page waits
at most `wait` seconds, and no thread of the server waits with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeVar

from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.errors import WavestitchError

T = TypeVar("T")
FRESH_S = 10.0
WAIT_S = 2.0
_THREADS = 2
_MOST_STREAMS = 1000
NOT_YET = "still being looked at; load the page again in a moment"
NO_ANSWER = "the broker has not answered yet; load the page again in a moment"


@dataclass(frozen=True, slots=True)
class Seen:
    facts: StreamFacts
    at: float


class Looks:
    """`ask_tables` and `ask_log` do the looking, in threads of two pools: a broker that is away must not keep the
    tables' part of other streams waiting."""

    def __init__(
        self,
        ask_tables: Callable[[str], StreamFacts],
        ask_log: Callable[[StreamFacts], StreamFacts],
        *,
        fresh: float = FRESH_S,
        wait: float = WAIT_S,
    ) -> None:
        self._ask_tables, self._ask_log = ask_tables, ask_log
        self._fresh, self._wait = fresh, wait
        self._tables = ThreadPoolExecutor(_THREADS, thread_name_prefix="wavestitch-tables")
        self._log = ThreadPoolExecutor(_THREADS, thread_name_prefix="wavestitch-log")
        self._lock = Lock()
        self._seen: dict[str, Seen] = {}
        self._under_way: dict[str, Future[None]] = {}

    async def at(self, names: Sequence[str]) -> list[tuple[StreamFacts, float]]:
        """What is known of the streams, and how old it is in seconds; waits for looks that are under way."""
        waiting = [asyncio.wrap_future(look) for n in names[:_MOST_STREAMS] if (look := self._begin(n)) is not None]
        if waiting:
            _, unfinished = await asyncio.wait(waiting, timeout=self._wait)
            # They go on for the next page; a cancelled wrapper would cancel a look that has not begun.
            for left in unfinished:
                left.add_done_callback(_ignore)
        now = time.monotonic()
        with self._lock:
            return [
                (seen.facts, now - seen.at) if (seen := self._seen.get(n)) else (StreamFacts(n, NOT_YET), 0.0)
                for n in names
            ]

    async def ask(self, question: Callable[[], T]) -> T | None:
        """The answer of the tables to something else; None where it takes too long."""
        asked = asyncio.wrap_future(self._tables.submit(question))
        with suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(asked), self._wait)
        asked.add_done_callback(_ignore)
        return None

    def _begin(self, name: str) -> Future[None] | None:
        """The look that is under way, or a new one; None where what is known is fresh."""
        with self._lock:
            if (look := self._under_way.get(name)) is not None:
                return look
            seen = self._seen.get(name)
            if seen is not None and time.monotonic() - seen.at < self._fresh:
                return None
            done: Future[None] = Future()
            self._under_way[name] = done
        self._tables.submit(self._look_at_tables, name, done)
        return done

    def _look_at_tables(self, name: str, done: Future[None]) -> None:
        try:
            facts = self._ask_tables(name)
        except Exception as error:
            self._end(name, StreamFacts(name, _sentence(error)), done)
            return
        if facts.head is None:
            self._end(name, facts, done)
            return
        with self._lock:
            self._seen[name] = Seen(replace(facts, problem=facts.problem or NO_ANSWER), time.monotonic())
        self._log.submit(self._look_at_log, facts, done)

    def _look_at_log(self, facts: StreamFacts, done: Future[None]) -> None:
        try:
            found = self._ask_log(facts)
        except Exception as error:
            found = replace(facts, problem=_sentence(error))
        self._end(facts.name, found, done)

    def _end(self, name: str, facts: StreamFacts, done: Future[None]) -> None:
        with self._lock:
            self._seen[name] = Seen(facts, time.monotonic())
            self._under_way.pop(name, None)
        with suppress(InvalidStateError):  # whoever waited may be gone
            done.set_result(None)


def _ignore(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


def _sentence(error: Exception) -> str:
    """A sentence of ours, or the kind of an error that is not: its text may have anything in it."""
    return error.message if isinstance(error, WavestitchError) else f"cannot be looked at ({type(error).__name__})"
