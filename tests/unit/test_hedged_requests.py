"""A question that one client gets no answer to is put by another one; the first answer counts, all causes are told."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from consumers.log_view import KafkaLog
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.kafka import hedged_requests
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.hedged_requests import Client, Failed, ask_hedged

NOWHERE = KafkaSettings("127.0.0.1:1")
Answer = Callable[["Future[str]"], object]


def ask(*answers: Answer, seconds: float = 20.0, nobody: float = 20.0) -> tuple[str, list[Future[str]]]:
    """What comes of a question whose nth client is answered so; and the futures of all clients."""
    put: list[Future[str]] = []

    def question(_admin: Any, _seconds: float) -> dict[str, Future[str]]:
        put.append(Future())
        answers[min(len(put), len(answers)) - 1](put[-1])
        return {"topic": put[-1]}

    _, found = ask_hedged(Client(NOWHERE), question, seconds=seconds, nobody=nobody)
    return found["topic"], put


def never(_: Future[str]) -> None:
    """A broker that has died without a word."""


def says(text: str) -> Answer:
    return lambda future: future.set_result(text)


def fails(code: int, reason: str) -> Answer:
    return lambda future: future.set_exception(KafkaException(KafkaError(code, reason)))


def test_a_client_that_waits_for_a_dead_broker_keeps_no_answer_away() -> None:
    found, put = ask(never, says("here"))
    assert (found, len(put)) == ("here", 2)


def test_a_broker_that_is_only_slow_keeps_its_time_while_others_are_asked() -> None:
    first: list[Future[str]] = []

    def then_the_first(_: Future[str]) -> None:
        first[0].set_result("at last")

    assert ask(first.append, then_the_first)[0] == "at last"


def test_an_error_that_may_pass_is_asked_again_at_once() -> None:
    assert ask(fails(KafkaError._TRANSPORT, "kafka-1 is gone"), says("here"))[0] == "here"


def test_an_error_that_will_not_pass_is_told_at_once() -> None:
    with pytest.raises(Failed) as raised:
        ask(fails(KafkaError.UNKNOWN_TOPIC_OR_PART, "no such topic"))
    assert (raised.value.about, raised.value.error.code()) == ("topic", KafkaError.UNKNOWN_TOPIC_OR_PART)


class Leader:
    """An admin client whose leaders have not heard of a partition until they were asked so often."""

    def __init__(self, refusals: float) -> None:
        self.refusals = refusals
        self.asked = 0

    def poll(self, _timeout: float) -> int:
        return 0

    def list_offsets(self, asked: dict[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        self.asked += 1
        answers: dict[Any, Future[Any]] = {at: Future() for at in asked}
        for future in answers.values():
            if self.asked <= self.refusals:
                future.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
            else:
                future.set_result(SimpleNamespace(offset=7, leader_epoch=1))
        return answers


def test_a_leader_that_has_not_heard_of_a_partition_yet_is_asked_again_until_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, never_hears = Leader(2), Leader(float("inf"))
    monkeypatch.setattr(hedged_requests, "open_admin", lambda *_, **__: late)
    seven = PartitionEnds(Offset(7), Offset(7), Offset(7), LeaderEpoch(1))
    assert KafkaLog(NOWHERE).ends("waves", [Partition(0)]) == {Partition(0): seven}
    monkeypatch.setattr(hedged_requests, "open_admin", lambda *_, **__: never_hears)
    with pytest.raises(
        Transient,
        match=r"partition 0 failed: .*UNKNOWN_TOPIC_OR_PART.* not known to this broker yet",
    ):
        KafkaLog(NOWHERE, deadline=1.0).ends("waves", [Partition(0)])
    assert never_hears.asked > 1


def test_a_topic_that_is_gone_since_it_was_found_is_not_waited_for_as_long_as_brokers_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hedged_requests, "DEADLINE_SECONDS", 1.0)
    monkeypatch.setattr(hedged_requests, "open_admin", lambda *_, **__: Leader(float("inf")))
    began = time.monotonic()
    with pytest.raises(Transient, match="the topic was found, and is gone since"):
        KafkaLog(NOWHERE, deadline=30.0).ends("waves", [Partition(0)])
    assert time.monotonic() - began < 15.0


def test_where_no_client_has_an_answer_all_causes_are_named_once() -> None:
    gone = [fails(KafkaError._TRANSPORT, f"kafka-{n} is gone (after {n}ms in state CONNECT)") for n in (1, 2, 1, 2)]
    with pytest.raises(Failed) as raised:
        ask(*gone, seconds=2.0)
    said = raised.value.error.str()
    assert said.count("kafka-1 is gone") == said.count("kafka-2 is gone") == 1
    assert "after" not in said


def test_the_answer_that_failed_is_named_and_not_the_first_of_those_whose_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hedged_requests, "open_admin", lambda *_, **__: Leader(0))  # that complains of nothing itself
    codes = iter([(None, KafkaError.UNKNOWN_TOPIC_OR_PART)])

    def question(_admin: Any, _seconds: float) -> dict[str, Future[str]]:
        answers: dict[str, Future[str]] = {"partition 0": Future(), "partition 7": Future()}
        for future, code in zip(answers.values(), next(codes, [KafkaError._TIMED_OUT] * 2), strict=True):
            if code is not None:
                future.set_exception(KafkaException(KafkaError(code)))
        return answers

    with pytest.raises(Failed) as raised:
        ask_hedged(Client(NOWHERE), question, seconds=1.0, nobody=20.0, found=True)
    assert raised.value.about == "partition 7"
    assert raised.value.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_where_every_client_fails_at_once_few_of_them_are_made() -> None:
    put: list[Future[str]] = []

    def question(_admin: Any, _seconds: float) -> dict[str, Future[str]]:
        put.append(Future())
        put[-1].set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT, "gone")))
        return {"topic": put[-1]}

    with pytest.raises(Failed):
        ask_hedged(Client(NOWHERE), question, seconds=3.0, nobody=20.0)
    assert 2 < len(put) < 10


def test_where_no_broker_can_be_reached_nobody_waits_for_one_to_be_elected() -> None:
    with pytest.raises(Failed, match="brokers are down"):
        ask(never, seconds=600.0, nobody=1.0)
