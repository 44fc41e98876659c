"""A question to the cluster that outlasts one dead broker: while one client waits, another one asks the same.

librdkafka (2.16) sends an administrator's request to the broker that it takes for the controller or the leader, and
where that one has died it waits for it until the request times out, and for minutes after that. A new client asks the
brokers that are there. So a question that has no answer after a moment is put by a new client as well; the first answer
counts, and no broker that is only slow loses the time it has. What is asked changes nothing, so that it may be asked
twice. Invariant: what is refused (a login, a right, a topic that is looked up and not there) is told at once; where
nobody answers, the error names every cause that was heard of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from wavestitch.kafka.client_log import without_counts
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.clients import open_admin
from wavestitch.kafka.kafka_errors import is_passing, is_refused_login, kafka_error

R = TypeVar("R")
DEADLINE_SECONDS = 20.0
"""So long a question may take. Brokers know after 9 s (broker.session.timeout.ms) that one of them has died; a moment
later its partitions have other leaders."""
NOBODY_SECONDS = 10.0
"""So long where no broker at all can be reached."""
_FIRST_TIME_OUT = 2.0
_MOST_CLIENTS = 4
_LONGEST_PAUSE = 4.0
"""Where every client fails at once the next ones come ever more slowly: each is threads and memory for a while."""
_LEAST_SECONDS = 1.0
_LOOK_SECONDS = 0.25
"""So often a question that has no answer yet is looked after."""
_GRACE_SECONDS = 5.0
"""The client gives up by itself at the deadline; if it does not, we do."""
_MOST_CAUSES = 6

Question = Callable[[Any, float], Mapping[Any, "Future[Any]"]]
"""Asks an admin client, which is to answer in so many seconds; the answers by what they are about."""


class Failed(Exception):
    """No answer. `about`: what it would have been about; `error`: the client's, with all causes."""

    def __init__(self, about: Any, error: KafkaError) -> None:
        super().__init__(error.str())
        self.about = about
        self.error = error


@dataclass
class Client:
    """One admin client, and what it complained of, apart from its answers."""

    settings: KafkaSettings
    complaints: list[tuple[float, KafkaError]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admin = open_admin(self.settings, on_error=self.remember)

    def remember(self, error: KafkaError) -> None:
        self.complaints = [*self.complaints[-_MOST_CAUSES:], (time.monotonic(), error)]

    def heard(self, since: float) -> list[KafkaError]:
        self.admin.poll(0)
        return [error for at, error in self.complaints if at >= since]


@dataclass(frozen=True)
class _Try:
    client: Client
    answers: Mapping[Any, Future[Any]]

    def found(self) -> dict[Any, Any] | None:
        """All answers; None while one is missing. Raises `Failed` as soon as one of them is an error."""
        for about, future in self.answers.items():
            raised = future.exception() if future.done() else None
            if isinstance(raised, KafkaException):
                raise Failed(about, kafka_error(raised))
            if raised is not None:
                raise raised
        if not all(future.done() for future in self.answers.values()):
            return None
        return {about: future.result() for about, future in self.answers.items()}


@dataclass
class _Asking:
    """One question, and all that is known of it so far."""

    ask: Question
    until: float
    nobody: float
    found: bool = False
    began: float = field(default_factory=time.monotonic)
    tries: list[_Try] = field(default_factory=list)
    causes: dict[str, KafkaError] = field(default_factory=dict)
    failed: Failed | None = None

    def put(self, client: Client) -> None:
        left = max(_LEAST_SECONDS, self.until - time.monotonic())
        self.tries.append(_Try(client, self.ask(client.admin, left)))

    def answered(self) -> tuple[Client, dict[Any, Any]] | None:
        """The first answer that is there, and whose it is; raises `Failed` where trying again cannot help."""
        for one in list(self.tries):
            self._listen(one.client, next(iter(one.answers)))
            try:
                found = one.found()
            except Failed as failed:
                self.note(one.client, failed)
                self.tries.remove(one)
                continue
            if found is not None:
                return one.client, found
        return None

    def note(self, client: Client, failed: Failed) -> None:
        """Keep why a client has no answer; raises it where trying again cannot help."""
        self._listen(client, failed.about)
        # Who waits for longer waits for brokers: all of those know by then of a topic that there is.
        found = self.found and time.monotonic() - self.began < DEADLINE_SECONDS
        if not is_passing(failed.error, found=found):
            raise failed
        # Where the time is up every answer fails, the first one by name: what another one said stays.
        if self.failed is None or failed.error.code() != KafkaError._TIMED_OUT:
            self.failed = failed
        self._keep(failed.error)

    @property
    def is_over(self) -> bool:
        now = time.monotonic()
        alone = any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in self.causes.values())
        late = now >= self.until + (_GRACE_SECONDS if self.tries else 0.0)
        return late or (alone and now - self.began >= self.nobody)

    def failure(self) -> Failed:
        """With what brokers were heard of; that the time is up explains less, and is said where nothing else is."""
        told = {said: e for said, e in self.causes.items() if e.code() != KafkaError._TIMED_OUT} or self.causes
        about = self.failed.about if self.failed is not None else next(iter(self.tries[0].answers))
        if not told:
            return Failed(about, KafkaError(KafkaError._TIMED_OUT))
        return Failed(about, KafkaError(next(reversed(told.values())).code(), "; ".join(told)))

    def _listen(self, client: Client, about: Any) -> None:
        for error in client.heard(self.began):
            if is_refused_login(error):
                raise Failed(about, error)
            self._keep(error)

    def _keep(self, error: KafkaError) -> None:
        said = without_counts(error.str())
        if said in self.causes or len(self.causes) < _MOST_CAUSES:
            self.causes[said] = error


def ask_hedged(
    client: Client, ask: Question, *, seconds: float, nobody: float, found: bool = False
) -> tuple[Client, dict[Any, Any]]:
    """The answers, and the client that has them: it knows brokers that live. Raises `Failed`.

    `seconds`: how long at most; `nobody`: how long where no broker can be reached. `found`: as of `is_passing`.
    """
    asking = _Asking(ask, time.monotonic() + seconds, nobody, found)
    asking.put(client)
    time_out, next_at = _FIRST_TIME_OUT, time.monotonic() + _FIRST_TIME_OUT
    pause, again_at = _LOOK_SECONDS, 0.0  # for one that failed there is another one at once, the first time
    while True:
        waiting = [future for one in asking.tries for future in one.answers.values() if not future.done()]
        if waiting:
            wait(waiting, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
        elif not asking.tries:
            time.sleep(_LOOK_SECONDS)
        answered = asking.answered()
        if answered is not None:
            return answered
        if asking.is_over:
            raise asking.failure()
        now = time.monotonic()
        if now >= asking.until:
            continue
        if not asking.tries and now >= again_at:
            asking.put(Client(client.settings))
            pause, again_at = min(2 * pause, _LONGEST_PAUSE), now + pause
        elif asking.tries and now >= next_at and len(asking.tries) < _MOST_CLIENTS:
            asking.put(Client(client.settings))
            time_out *= 2
            next_at = now + time_out


def call_in_turn(client: Client, call: Callable[[Any, float], R], *, seconds: float, nobody: float) -> tuple[Client, R]:
    """The same of a question that keeps its caller waiting: one client after the other, each with more time."""
    asking = _Asking(lambda *_: {}, time.monotonic() + seconds, nobody)
    time_out = _FIRST_TIME_OUT
    while True:
        left = asking.until - time.monotonic()
        try:
            return client, call(client.admin, max(_LEAST_SECONDS, min(time_out, left)))
        except KafkaException as raised:
            asking.note(client, Failed(None, kafka_error(raised)))
        if asking.is_over:
            raise asking.failure()
        time.sleep(_LOOK_SECONDS)
        client, time_out = Client(client.settings), time_out * 2
