"""Where a memory edge is about to act: the place at which a test may stop, kill or fail the caller.

Every call of `FakeLog`, `FakeTables` and `FakeStaging` passes through `Edge.act` before its effect and again
after it. Outside a `Steps` run (a test that just calls) both pass freely.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from enum import StrEnum
from typing import Any, NamedTuple

from greenlet import GreenletExit, getcurrent, greenlet

from wavestitch.contracts.errors import WavestitchError
from wavestitch.tables.access.reading import reading


class Fault(StrEnum):
    """What a test does to one call."""

    KILL_BEFORE = "kill before"
    KILL_AFTER = "kill after"
    FAIL_BEFORE = "fail before"
    FAIL_AFTER = "fail after"
    CONFLICT = "conflict"
    RESENT = "resent"
    """A proxy sends a request twice: the first one took effect, the answer is the second one's."""
    LATE = "late"
    """The caller gives up, and the request is still on its way: it takes effect whenever the test lets it land."""


class Foreign(NamedTuple):
    """A fault, too: the call fails in the words of a library that nobody here knows, or of one that is in the list."""

    error: Exception


class Killed(BaseException):
    """The process died here: nothing of the product may catch it."""


def under_way() -> str:
    """The name of the run whose call this is; empty outside a `Steps` run."""
    steps: Steps | None = getattr(getcurrent(), "steps", None)
    return steps.name if steps is not None else ""


class LateEffect(NamedTuple):
    """A request whose caller has given up. `run`: whose it was."""

    run: str
    name: str
    call: Callable[[], Any]

    def land(self) -> None:
        """As if that run had sent it only now. Nobody hears what came of it, and it may land again."""
        Steps(self._unheard, self.run).finish()

    def _unheard(self) -> None:
        with suppress(WavestitchError):
            self.call()


def may_land_late(method: Callable[..., Any]) -> Callable[..., Any]:
    """An effect that `Fault.LATE` can put off: the same call, made again later."""

    @functools.wraps(method)
    def called(*args: Any, **more: Any) -> Any:
        ours: Any = getcurrent()
        before = getattr(ours, "call", None)
        ours.call = functools.partial(method, *args, **more)
        try:
            return method(*args, **more)
        finally:
            ours.call = before

    return called


class Edge:
    """One side of the system. `tell` is called right after every effect, for whoever keeps a history."""

    def tell(self, _what: str, /, **_facts: Any) -> None:
        """Replaced on the instance by whoever listens."""

    def act(
        self, name: str, *, error: Callable[[str], Exception], conflict: Callable[[], Exception] | None = None
    ) -> AbstractContextManager[Fault | None]:
        """The effect of one call. `error` makes an injected failure, `conflict` the failure of a lost race. What a
        request that was sent twice brings is the caller's to say."""
        return _Act(name, error, conflict)


class _Act:
    """Around the effect of one call. There are a thousand in a history: a generator would take twice as long."""

    __slots__ = ("_conflict", "_error", "_fault", "_name")

    def __init__(self, name: str, error: Callable[[str], Exception], conflict: Callable[[], Exception] | None) -> None:
        self._name, self._error, self._conflict = name, error, conflict

    def __enter__(self) -> Fault | None:
        ours = getcurrent()
        steps: Steps | None = getattr(ours, "steps", None)
        self._fault = fault = steps.pause(self._name) if steps is not None else None
        if fault is None or steps is None:
            return None
        if isinstance(fault, Foreign):
            with reading(self._name):  # as the real edges do around a call
                raise fault.error
        if fault is Fault.CONFLICT and self._conflict is not None:
            raise self._conflict()
        call = getattr(ours, "call", None)
        if fault is Fault.LATE and call is not None:
            steps.late.append(LateEffect(steps.name, self._name, call))
        if fault in (Fault.FAIL_BEFORE, Fault.CONFLICT, Fault.LATE):
            # In the same words, whatever becomes of the effect: the caller cannot tell.
            raise self._error(f"{self._name}: injected")
        return fault

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        if self._fault is Fault.KILL_AFTER:
            raise Killed(self._name)
        if self._fault is Fault.FAIL_AFTER:
            raise self._error(f"{self._name}: injected")


class Steps:
    """A call that is carried out one effect at a time.

    A generator cannot yield from inside plain functions, so the call is a greenlet, which runs only while `advance`
    waits for it: never two at once, so that every interleaving is the test's choice and can be repeated.
    """

    def __init__(self, call: Callable[[], Any], name: str = "") -> None:
        self.name = name
        self.at = ""
        self.trace: list[str] = []
        self.late: list[LateEffect] = []
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._call = call
        self._fault: Fault | Foreign | None = None
        self._given_up = False
        self._ours = _Ours(self._run)
        self._ours.steps = self
        self._go_on()

    def advance(self, fault: Fault | Foreign | None = None) -> bool:
        """Let the pending call happen (or fail), up to the next one; False once the run is over."""
        if self.done:
            return False
        self._fault = fault
        self._go_on()
        return not self.done

    def finish(self) -> None:
        while self.advance():
            pass

    def kill(self) -> None:
        self.advance(Fault.KILL_BEFORE)

    @property
    def may_be_late(self) -> bool:
        """Whether the pending call is a request that `Fault.LATE` leaves on its way; any other only fails."""
        return not self.done and getattr(self._ours, "call", None) is not None

    def pause(self, name: str) -> Fault | Foreign | None:
        """Called by the edges, in this run."""
        if self._given_up:
            raise Killed(name)
        self.at = name
        self.trace.append(name)
        try:
            self._ours.parent.switch()
        except GreenletExit:
            # Nobody holds this run any more: it acts no more either, whatever it wants to tidy up.
            self._given_up = True
            raise
        fault, self._fault = self._fault, None
        if fault is Fault.KILL_BEFORE:
            raise Killed(name)
        return fault

    def _go_on(self) -> None:
        """Whoever asks has the next turn, also where that is another run, in which a late request lands.

        And looks for garbage as before, wherever this run stops: one that is never finished has paused that, and goes
        only when somebody looks."""
        looked = gc.isenabled()
        self._ours.parent = getcurrent()
        self._ours.switch()
        if looked:
            gc.enable()

    def _run(self) -> None:
        try:
            self.pause("start")
            self.result = self._call()
        except BaseException as error:
            self.error = error
        self.done = True


class _Ours(greenlet):
    """`steps`: the run that it is."""

    steps: Steps
