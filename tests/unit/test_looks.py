"""Looks of the API server: bounded, one at a time per stream, off the server's threads, and shown with their age."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.unit.slow_stream import Stream, looks
from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.errors import Transient
from wavestitch.ui.looks import AT_ONCE, AWAY, NO_ANSWER, NOT_YET, Looks


@pytest.fixture
def stream() -> Iterator[Stream]:
    found = Stream()
    yield found
    found.tables.set()
    found.log.set()


def test_a_page_waits_a_bounded_time_and_shows_what_the_tables_know(stream: Stream) -> None:
    async def story() -> None:
        found = looks(stream)
        [(facts, _)] = await found.at(["ecg"])
        assert facts.problem == NOT_YET
        stream.tables.set()
        while True:
            [(facts, _)] = await found.at(["ecg"])
            if facts.head is not None:
                break
        assert facts.problem == NO_ANSWER
        assert facts.partitions[0].end is None
        stream.log.set()
        while facts.partitions[0].end is None:
            [(facts, age)] = await found.at(["ecg"])
        assert facts.problem == ""
        assert age is not None
        assert 0 <= age < 60

    asyncio.run(asyncio.wait_for(story(), 30))


def test_forty_who_ask_are_one_look_and_what_is_fresh_is_not_looked_at_again(stream: Stream) -> None:
    stream.tables.set()
    stream.log.set()

    async def story() -> None:
        found = looks(stream, wait=10)
        answers = await asyncio.gather(*(found.at(["ecg"]) for _ in range(40)))
        assert {a[0][0].problem for a in answers} == {""}
        await found.at(["ecg"])
        assert stream.asked == 1

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_log_that_is_away_does_not_keep_other_streams_tables_waiting(stream: Stream) -> None:
    stream.tables.set()

    async def story() -> None:
        found = looks(stream, wait=0.2)
        names = [f"s{n}" for n in range(20)]
        while any(facts.problem != NO_ANSWER for facts, _ in await found.at(names)):
            pass

    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.mark.parametrize(
    "error, says",
    [(Transient("the broker is away", for_guests=True), "the broker is away"), (KeyError("x"), "KeyError")],
)
def test_an_error_is_a_sentence_and_the_next_look_is_another_chance(error: Exception, says: str) -> None:
    def fails(_: object) -> StreamFacts:
        raise error

    async def story() -> None:
        found = Looks(fails, fails, fresh=0.0, wait=10)
        for _ in range(2):
            [(facts, _age)] = await found.at(["ecg"])
            assert says in facts.problem

    asyncio.run(asyncio.wait_for(story(), 30))


def test_who_takes_what_is_known_waits_for_no_look_that_is_under_way(stream: Stream) -> None:
    stream.tables.set()

    async def story() -> None:
        found = looks(stream, fresh=0.0, wait=10)
        while (await found.at(["ecg"], wait=0.01))[0][0].problem != NO_ANSWER:
            pass
        began = time.monotonic()
        for _ in range(100):
            [(facts, age)] = await found.at(["ecg"], enough=60)
            assert (facts.problem, age is not None) == (NO_ANSWER, True)
        assert time.monotonic() - began < 10, "a log that never answers was waited for"

    asyncio.run(asyncio.wait_for(story(), 30))


def test_what_is_shown_at_once_is_looked_at_again_afterwards_one_stream_after_another() -> None:
    """All at once they would keep the answer, and the scripts that it fetches, from being sent."""
    asked: list[str] = []

    def ask_tables(name: str) -> StreamFacts:
        asked.append(name)
        return StreamFacts(name, topic="t")

    async def story() -> None:
        names = [f"s{n}" for n in range(8)]
        found = Looks(ask_tables, lambda known: known, fresh=0.0, wait=10)
        await found.at(names)
        found._fresh = 3.2
        found._seen = {name: replace(seen, at=seen.at - 10) for name, seen in found._seen.items()}
        asked.clear()
        began = time.monotonic()
        await found.at(names, enough=60)
        assert asked == [], "whoever asked has the answer before anything is looked at"
        while len(asked) < len(names):
            await asyncio.sleep(0.01)
        assert time.monotonic() - began >= 8 * 3.2 / AT_ONCE

    asyncio.run(asyncio.wait_for(story(), 30))


def test_what_log_and_tables_said_stays_until_the_log_has_spoken_again(stream: Stream) -> None:
    """Whoever comes in between would be told that a stream is not known, while nothing is wrong with it."""
    stream.tables.set()
    stream.log.set()

    async def story() -> None:
        found = looks(stream, fresh=0.0, wait=10)
        [(facts, _)] = await found.at(["ecg"])
        assert (facts.problem, facts.partitions[0].end) == ("", 9)
        stream.log.clear()
        asked, later = stream.asked, 0
        while later < 3:
            [(facts, _)] = await found.at(["ecg"], wait=0.1)
            assert (facts.problem, facts.partitions[0].end) == ("", 9)
            later += stream.asked > asked

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_broker_that_is_away_is_asked_about_one_stream_at_a_time_and_says_nothing_of_others(stream: Stream) -> None:
    asked: list[str] = []
    away = True

    def ask_log(known: StreamFacts) -> StreamFacts:
        asked.append(known.name)
        if away:
            raise Transient(f"the topic of {known.name} is not answered for")
        return known

    async def story() -> None:
        nonlocal away
        stream.tables.set()
        found = Looks(stream.ask_tables, ask_log, fresh=0.3, wait=10)
        names = [f"s{n:02}" for n in range(20)]
        said = {facts.name: facts.problem for facts, _ in await found.at(names)}
        assert 2 <= len(asked) <= 4, "it goes on asking a broker that does not answer"
        assert {said[n] for n in set(names) - set(asked)} == {AWAY}
        away = False
        while any(facts.problem for facts, _ in await found.at(names)):
            pass

    asyncio.run(asyncio.wait_for(story(), 30))


def test_one_topic_that_is_away_says_nothing_of_the_broker(stream: Stream) -> None:
    def ask_log(known: StreamFacts) -> StreamFacts:
        if known.name == "s07":
            raise Transient("no leader", for_guests=True)
        return known

    async def story() -> None:
        stream.tables.set()
        found = Looks(stream.ask_tables, ask_log, fresh=0.0, wait=10)
        names = [f"s{n:02}" for n in range(20)]
        for _ in range(3):
            said = {facts.name: facts.problem for facts, _ in await found.at(names)}
            assert said == {n: "no leader" if n == "s07" else "" for n in names}

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_page_begins_a_bounded_number_of_looks_and_in_the_end_all_were_looked_at(stream: Stream) -> None:
    stream.tables.set()
    stream.log.set()

    async def story() -> None:
        found = looks(stream, wait=10)
        names = [f"s{n:03}" for n in range(200)]
        for page in range(1, 8):
            seen = await found.at(names)
            assert stream.asked == min(200, AT_ONCE * page)
            assert sum(age is not None for _, age in seen) == stream.asked

    asyncio.run(asyncio.wait_for(story(), 30))


def test_however_many_pages_ask_so_many_looks_are_renewed_in_a_time(stream: Stream) -> None:
    stream.tables.set()
    stream.log.set()
    fresh, names = 0.5, [f"s{n:03}" for n in range(200)]

    async def story() -> None:
        found = looks(stream, fresh=fresh, wait=10)
        began = time.monotonic()
        while any(age is None for _, age in await found.at(names)):
            pass
        while stream.asked < 200 + 2 * AT_ONCE:
            await found.at(names, wait=0.01)
            assert stream.asked <= 200 + AT_ONCE * (1 + (time.monotonic() - began) / fresh)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_who_keeps_asking_for_many_streams_takes_no_turn_of_the_one_that_somebody_else_asks_for(stream: Stream) -> None:
    stream.tables.set()
    stream.log.set()
    fresh, many = 0.2, [f"s{n:03}" for n in range(2 * AT_ONCE)]

    async def story() -> None:
        found, looked = looks(stream, fresh=fresh, wait=10), set[float]()
        for names in (many, many, ["mine"]):
            await found.at(names)
        began = time.monotonic()
        while time.monotonic() - began < 20 * fresh:
            await found.at(many, wait=0.01)  # takes each place as it comes free
            # 65 streams have their turn within three times; whoever looks asks once in each.
            if time.monotonic() - began > fresh * len(looked):
                [(_, age)] = await found.at(["mine"], wait=0.0)
                assert age is not None
                looked.add(age)
        assert max(looked) < 8 * fresh

    asyncio.run(asyncio.wait_for(story(), 60))


def test_looks_that_never_return_are_replaced(stream: Stream) -> None:
    back = threading.Event()

    def hangs(name: str) -> StreamFacts:
        if not back.is_set():
            stream.tables.wait(60)
        return StreamFacts(name, "fine")

    async def story() -> None:
        found = Looks(hangs, stream.ask_log, wait=0.1, hung=0.5)
        names = ["a", "b", "c"]
        assert {facts.problem for facts, _ in await found.at(names)} == {NOT_YET}
        for question in ("p", "q"):
            assert await found.ask((question, "p"), lambda: stream.tables.wait(60)) is None
        back.set()
        while {facts.problem for facts, _ in await found.at(names)} != {"fine"}:
            pass
        assert await found.ask(("p", "p"), lambda: "an answer") == "an answer"

    asyncio.run(asyncio.wait_for(story(), 30))
