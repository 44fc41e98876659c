"""What a page asks of a stream beside how it stands: one answer for all who ask, bounded, and in nobody's way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tests.unit.slow_stream import Stream, looks
from wavestitch.contracts.errors import Transient
from wavestitch.ui.looks import BUSY, NOT_YET, Looks


@pytest.fixture
def stream() -> Iterator[Stream]:
    found = Stream()
    yield found
    found.tables.set()
    found.log.set()


def test_a_question_that_takes_too_long_is_not_waited_for(stream: Stream) -> None:
    async def story() -> None:
        assert await looks(stream).ask(("ecg", "p"), lambda: stream.tables.wait(30)) is None
        assert await looks(stream, wait=10).ask(("ecg", "p"), lambda: "an answer") == "an answer"

    asyncio.run(asyncio.wait_for(story(), 30))


def test_an_answer_that_came_too_late_is_there_for_who_asks_again_and_for_nobody_else(stream: Stream) -> None:
    asked: list[str] = []

    def question(what: str) -> str:
        asked.append(what)
        stream.tables.wait(30)
        return what

    async def story() -> None:
        found = looks(stream, wait=0.1)
        assert await found.ask(("ecg", "p"), lambda: question("p")) is None
        stream.tables.set()
        while found._asked:
            await asyncio.sleep(0)
        assert await found.ask(("ecg", "q"), lambda: question("q"), wait=20) == "q"
        assert await found.ask(("ecg", "p"), lambda: question("p"), wait=20) == "p"
        assert asked == ["p", "q"], "whoever asks again after a page that was late gets what that one asked"
        assert await found.ask(("ecg", "p"), lambda: question("p"), wait=20) == "p"
        assert asked == ["p", "q", "p"], "and is the last who does: it is no cache"

    asyncio.run(asyncio.wait_for(story(), 30))


def test_two_hundred_who_ask_the_same_are_one_question_and_another_stream_is_looked_at_meanwhile(
    stream: Stream,
) -> None:
    asked = []

    def question() -> str:
        asked.append(1)
        stream.log.wait(30)
        return "an answer"

    async def story() -> None:
        stream.tables.set()
        found = looks(stream, wait=10)
        all_of_them = [asyncio.create_task(found.ask(("ecg", "p"), question)) for _ in range(200)]
        other = asyncio.create_task(found.at(["other"]))
        while not stream.asked:
            await asyncio.sleep(0)
        stream.log.set()
        assert {await one for one in all_of_them} == {"an answer"}
        assert (await other)[0][0].problem == ""
        assert len(asked) == 1
        with pytest.raises(KeyError):
            await found.ask(("ecg", "q"), lambda: dict[str, str]()["gone"])

    asyncio.run(asyncio.wait_for(story(), 30))


def test_what_too_many_wait_for_is_refused_and_not_queued(stream: Stream) -> None:
    async def story() -> None:
        found = Looks(stream.ask_tables, stream.ask_log, fresh=0.0, wait=0.1, most=3)
        assert [facts.problem for facts, _ in await found.at(["a", "b", "c", "d"])] == [NOT_YET] * 3 + [BUSY]
        for name in ("a", "b", "c"):
            assert await found.ask((name, "p"), lambda: stream.tables.wait(30)) is None
        with pytest.raises(Transient, match="too many"):
            await found.ask(("d", "p"), lambda: "an answer")
        stream.tables.set()
        stream.log.set()
        while (await found.at(["d"]))[0][0].problem:
            pass

    asyncio.run(asyncio.wait_for(story(), 30))


def test_whatever_is_asked_of_one_stream_leaves_the_others_their_look_and_their_answer(stream: Stream) -> None:
    stream.tables.set()
    stream.log.set()
    let, lock = threading.Event(), threading.Lock()
    side_by_side: list[str] = []
    most = 0

    def asking(what: str) -> str:
        nonlocal most
        with lock:
            side_by_side.append(what)
            most = max(most, len(side_by_side))
        let.wait(30)
        side_by_side.remove(what)
        return what

    async def story() -> None:
        found = looks(stream, wait=1.0)
        flood = [
            asyncio.create_task(found.ask(("mine", f"held {n}"), lambda n=n: asking(f"held {n}")))  # type: ignore[misc]
            for n in range(1100)
        ]
        await asyncio.sleep(0)
        other = asyncio.create_task(found.ask(("theirs", "held"), lambda: "answered"))
        [(facts, _)] = await found.at(["theirs"])
        assert facts.head is not None
        assert await other == "answered"
        assert set(await asyncio.gather(*flood)) == {None}, (
            "one is under way, and the others have waited for their turn"
        )
        assert most == 1
        let.set()
        assert await found.ask(("mine", "another"), lambda: "its turn") == "its turn"

    asyncio.run(asyncio.wait_for(story(), 60))
