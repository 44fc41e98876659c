"""Looks at streams for the API server: bounded, shared and off its thread pool, which also serves tasks' heartbeats.

Decides how long a page waits and how old its facts may be. One look at a time per stream, however many ask, and beside
it one question about what else its tables have, however many ask what; what the tables know is shown at once, what the
log says when it answers. So many looks are begun in a time, of what was looked at longest ago of all that anybody asked
for lately, however many pages ask and how often: with hundreds of streams each is a minute older, and says so. So many
looks wait at most; one that takes longer than `hung` seconds is given up with its threads, and others take their place.
A broker that did not answer for two streams in a row is asked about one at a time, so that the others need not wait for
it. Invariant: a page waits at most `wait` seconds, and no thread of the server waits with it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeVar

from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.errors import Transient
from wavestitch.ui.guest_sentence import said_to_guests

T = TypeVar("T")
About = tuple[str, str, *tuple[str, ...]]
"""What is asked: of which stream, the kind of the question, and what of that kind. Whatever others may choose stands
behind the kind, so that no question has another one's answer."""
FRESH_S = 10.0
WAIT_S = 2.0
PROGRAM_S = 0.7
"""How long a program waits for how streams stand: it asks once, and with all else has its answer within a second."""
FIRST_PAINT_S = 0.1
"""How long a page for people waits for its first facts: it asks again by itself."""
ENOUGH_S = 120.0
"""What is younger is shown to people at once: beside a dead broker some look is always under way."""
AT_ONCE = 32
"""Looks that one page begins, and that are renewed in `fresh` seconds, however many pages there are."""
_LATELY = 3
"""Times `fresh`: a page asks again once in `fresh` seconds, a little later than that."""
_MOST_LEFT = 32
"""Answers that came when nobody waited any more and are kept for who asks again."""
_IN_A_ROW = 2
_THREADS = 2
_MOST_STREAMS = 1000
MOST_WAITING = 1000
"""Looks that wait or are under way: as many as one page may want."""
HUNG_S = 120.0
"""Longer than one wait for the catalog by default (`tables.connect_timeout` and `tables.answer_timeout`), after which
a look fails: only what has no time-out, or a longer one, gets here."""
BUSY = "too many looks are waiting for the tables; load the page again in a moment"
NOT_YET = "still being looked at; load the page again in a moment"
AWAY = "the broker did not answer for other streams; it is asked again in a few seconds"
"""Not the sentence that another stream's look ended with: whoever reads this may have no right to that one."""
NO_ANSWER = "the broker has not answered yet; load the page again in a moment"


@dataclass(frozen=True, slots=True)
class Seen:
    facts: StreamFacts
    at: float


@dataclass(eq=False, slots=True)
class _Look:
    """Under way. `done`: for those who wait; `waiting`: how many do, of a question."""

    done: Future[Any]
    since: float
    waiting: int = 0


class _Answers:
    """Whether the broker answers, whoever asks. One that fails alone may have a topic that is away, not the broker."""

    def __init__(self, *, again: float) -> None:
        self._again = again
        self._lock = Lock()
        self._failed: set[str] = set()
        self._asked = 0.0

    def worth_asking(self) -> bool:
        """Where it is away, once in `again` seconds, by whoever comes first."""
        with self._lock:
            now = time.monotonic()
            if len(self._failed) >= _IN_A_ROW and now - self._asked < self._again:
                return False
            self._asked = now
            return True

    def answered(self) -> None:
        with self._lock:
            self._failed.clear()

    def failed(self, stream: str) -> None:
        with self._lock:
            self._failed.add(stream)


class Looks:
    """`ask_tables` and `ask_log` do the looking, and `ask` any other, in threads of three pools: a broker that is away
    must not keep the tables' part of other streams waiting, nor what somebody wants to know of one the look at all."""

    def __init__(
        self,
        ask_tables: Callable[[str], StreamFacts],
        ask_log: Callable[[StreamFacts], StreamFacts],
        *,
        fresh: float = FRESH_S,
        wait: float = WAIT_S,
        hung: float = HUNG_S,
        most: int = MOST_WAITING,
    ) -> None:
        self._ask_tables, self._ask_log = ask_tables, ask_log
        self._fresh, self._wait, self._hung, self._most = fresh, wait, hung, most
        self._tables, self._log, self._questions = _pools()
        self._broker = _Answers(again=fresh)
        self._lock = Lock()
        self._seen: dict[str, Seen] = {}
        self._renewed: deque[tuple[float, str]] = deque()
        self._wanted: dict[str, float] = {}
        self._under_way: dict[str, _Look] = {}
        self._asked: dict[str, tuple[tuple[str, ...], _Look]] = {}
        self._left: dict[About, tuple[Future[Any], float]] = {}

    async def at(
        self, names: Sequence[str], *, wait: float | None = None, enough: float = 0.0
    ) -> list[tuple[StreamFacts, float | None]]:
        """What is known of the streams, and how old it is in seconds, None where nothing is; waits for looks that are
        under way, `wait` seconds at most. Where all that is known is younger than `enough` seconds it waits for none,
        and what is to be looked at again is, evenly, over the time in which it is fresh."""
        wanted = self._oldest(names[:_MOST_STREAMS])
        if enough and self._younger(names, enough):
            self._begin_evenly(wanted)
        else:
            mine = frozenset(names)
            # Others' looks, whose turn it is, are begun here, too; nobody waits for them here.
            begun = [look for n in wanted if (look := self._begin(n)) is not None and n in mine]
            waiting = [asyncio.wrap_future(look) for look in begun]
            if waiting:
                _, unfinished = await asyncio.wait(waiting, timeout=self._wait if wait is None else wait)
                # They go on for the next page; a cancelled wrapper would cancel a look that has not begun.
                for left in unfinished:
                    left.add_done_callback(_ignore)
        now = time.monotonic()
        with self._lock:
            return [
                (seen.facts, now - seen.at) if (seen := self._seen.get(n)) else (StreamFacts(n, NOT_YET), None)
                for n in names
            ]

    def _begin_evenly(self, names: Sequence[str]) -> None:
        """One after another, the first a moment from now: nobody waits for them, and all at once they would keep the
        answer, and the scripts that it fetches, from being sent."""
        loop = asyncio.get_running_loop()
        for n, name in enumerate(names, start=1):
            loop.call_later(n * self._fresh / AT_ONCE, self._begin, name)

    def _younger(self, names: Sequence[str], seconds: float) -> bool:
        oldest = time.monotonic() - seconds
        with self._lock:
            return all((seen := self._seen.get(name)) is not None and seen.at > oldest for name in names)

    def _oldest(self, names: Sequence[str]) -> list[str]:
        """Those under way; as many that nobody has looked at yet as a page may begin; and those looked at longest ago,
        as many as may be renewed in a time: however many pages ask, each look costs the server what it costs. Whoever
        asks often, or for many, takes no turn of what somebody else has asked for lately."""
        now = time.monotonic()
        with self._lock:
            self._wanted.update(dict.fromkeys(names, now))
            self._wanted = {n: when for n, when in self._wanted.items() if now - when <= _LATELY * self._fresh}
            while self._renewed and now - self._renewed[0][0] >= self._fresh:
                self._renewed.popleft()
            # One that has its turn, and is begun a moment later, is begun at once for whoever waits for it.
            has_its_turn = {n for _, n in self._renewed} | self._under_way.keys()
            turn = [n for n in names if n in has_its_turn]
            new = [n for n in names if n not in self._seen and n not in has_its_turn]
            at = {n: self._seen[n].at for n in self._wanted if n in self._seen and n not in has_its_turn}
            stale = sorted((n for n, when in at.items() if now - when >= self._fresh), key=at.__getitem__)
            again = stale[: max(0, AT_ONCE - len(self._renewed))]
            self._renewed.extend((now, n) for n in again)
            under_way = sum(n in self._under_way for n in names)
        return turn + new[: max(0, AT_ONCE - under_way)] + again

    async def ask(self, about: About, question: Callable[[], T], *, wait: float | None = None) -> T | None:
        """The answer of the tables to something else; None where it takes too long. `about`: the stream, and what is
        asked: all who ask the same while it is under way wait for one answer, and whoever asks something else of the
        stream for its turn. One that came too late is there for the next who asks, so that whoever asks again gets it
        in the end. Raises `Transient` where too many looks are waiting."""
        until = time.monotonic() + (self._wait if wait is None else wait)
        if (left := self._take_left(about)) is not None:
            kept: T = left.result()
            return kept
        while (look := self._question(about, question)) is None:
            with self._lock:
                before = self._asked.get(about[0])
            if before is not None and not await _comes(before[1].done, until):
                return None
        try:
            if await _comes(look.done, until):
                found: T | None = look.done.result()
                return found
            return None
        finally:
            with self._lock:
                look.waiting -= 1

    def _take_left(self, about: About) -> Future[Any] | None:
        with self._lock:
            done, at = self._left.pop(about, (None, 0.0))
        return done if done is not None and time.monotonic() - at < self._fresh else None

    def _question(self, about: About, question: Callable[[], T]) -> _Look | None:
        """The one that is under way, or a new one, and somebody more waits for it; None while something else is asked
        of the stream."""
        self._give_up_hung()
        with self._lock:
            stream, what = about[0], about[1:]
            if stream in self._asked:
                asked, look = self._asked[stream]
                if asked != what:
                    return None
                look.waiting += 1
                return look
            if len(self._asked) >= self._most:
                raise Transient(BUSY, for_guests=True)
            look = _Look(Future(), time.monotonic(), waiting=1)
            self._asked[stream] = what, look
            self._questions.submit(self._answer, about, look, question)
            return look

    def _answer(self, about: About, look: _Look, question: Callable[[], Any]) -> None:
        try:
            answer, error = question(), None
        except Exception as raised:
            answer, error = None, raised
        with self._lock:
            wanted = self._asked.get(about[0]) == (about[1:], look)
            if wanted:
                del self._asked[about[0]]
            with suppress(InvalidStateError):  # whoever waited may be gone
                look.done.set_result(answer) if error is None else look.done.set_exception(error)
            if wanted and not look.waiting:
                self._left[about] = look.done, time.monotonic()
                while len(self._left) > _MOST_LEFT:
                    del self._left[next(iter(self._left))]

    def _begin(self, name: str) -> Future[Any] | None:
        """The look that is under way, or a new one; None where what is known is fresh, or too many are waiting."""
        self._give_up_hung()
        with self._lock:
            if (look := self._under_way.get(name)) is not None:
                return look.done
            now = time.monotonic()
            seen = self._seen.get(name)
            if seen is not None and now - seen.at < self._fresh:
                return None
            if len(self._under_way) >= self._most:
                self._seen.setdefault(name, Seen(StreamFacts(name, BUSY), now - self._fresh))
                return None
            look = self._under_way[name] = _Look(Future(), now)
            self._tables.submit(self._look_at_tables, name, look)
        return look.done

    def _give_up_hung(self) -> None:
        """Where a look has taken too long, all that are under way are given up, and their threads with them."""
        now = time.monotonic()
        with self._lock:
            left = [*self._under_way.values(), *(look for _, look in self._asked.values())]
            if all(now - look.since < self._hung for look in left):
                return
            old = self._tables, self._log, self._questions
            self._under_way.clear()
            self._asked.clear()
            self._tables, self._log, self._questions = _pools()
        for pool in old:
            pool.shutdown(wait=False, cancel_futures=True)
        for look in left:
            with suppress(InvalidStateError):
                look.done.set_result(None)

    def _look_at_tables(self, name: str, look: _Look) -> None:
        try:
            facts = self._ask_tables(name)
        except Exception as error:
            self._end(name, StreamFacts(name, said_to_guests(error)), look)
            return
        if facts.head is None:
            self._end(name, facts, look)
            return
        with self._lock:
            if self._under_way.get(name) is not look:
                return
            known = self._seen.get(name)
            # What log and tables said together stays until the log has spoken again: its age is said beside it.
            if known is None or known.facts.problem or facts.problem:
                before = known.facts.problem if known is not None and known.facts.head is not None else ""
                said = facts.problem or before or NO_ANSWER
                self._seen[name] = Seen(replace(facts, problem=said), time.monotonic())
            self._log.submit(self._look_at_log, facts, look)

    def _look_at_log(self, facts: StreamFacts, look: _Look) -> None:
        try:
            if self._broker.worth_asking():
                found = self._ask_log(facts)
                self._broker.answered()
            else:
                found = replace(facts, problem=AWAY)
        except Exception as error:
            if isinstance(error, Transient):
                self._broker.failed(facts.name)
            found = replace(facts, problem=said_to_guests(error))
        self._end(facts.name, found, look)

    def _end(self, name: str, facts: StreamFacts, look: _Look) -> None:
        with self._lock:
            # Of a look that was given up nothing is kept: a newer one may have said more.
            if self._under_way.get(name) is look:
                self._seen[name] = Seen(facts, time.monotonic())
                del self._under_way[name]
        with suppress(InvalidStateError):  # whoever waited may be gone
            look.done.set_result(None)


def _pools() -> tuple[ThreadPoolExecutor, ThreadPoolExecutor, ThreadPoolExecutor]:
    tables, log, questions = (
        ThreadPoolExecutor(_THREADS, thread_name_prefix=f"wavestitch-{name}") for name in ("tables", "log", "questions")
    )
    return tables, log, questions


async def _comes(done: Future[Any], until: float) -> bool:
    """Whether it is there by then. It goes on in any case, for whoever asks next."""
    asked = asyncio.wrap_future(done)
    await asyncio.wait([asked], timeout=max(0.0, until - time.monotonic()))
    if asked.done():
        asked.exception()
        return True
    asked.add_done_callback(_ignore)
    return False


def _ignore(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()
