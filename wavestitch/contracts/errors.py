"""The error tree. Whether a step may be tried again is decided by the mixin, and by nothing else.

    WavestitchError
    ├── Terminal          trying again cannot help: somebody has to change something
    │   ├── BadInput              a file, a setting or an argument that is not what it must be
    │   │   └── NewerFormat               a record that a newer Wavestitch wrote: good, but not for this version
    │   ├── Refused               a plan that would break an invariant; the sentence names the way out
    │   ├── Fenced                the head has moved on: this run may neither publish nor move offsets
    │   ├── DataLost              planned offsets that the log no longer delivers
    │   ├── Unbalanced            the audit identity does not hold: the batch does not publish
    │   ├── GateClosed            a critical expectation about the whole batch failed
    │   └── Altered               bytes on disk are not the bytes that were written
    ├── Transient         the same step may succeed later (broker away, disk full, task killed)
    └── StateUnknown      the outcome of a commit is not known: look, then decide

Bad *data* is not an error: a record that is not a valid chunk is a `Rejection` (see `chunk_header`).
"""

from __future__ import annotations

from typing import Any

from wavestitch.contracts.harmless import harmless

_MOST = 8000
_TAKEN = ("self", "message", "for_guests")
"""No fact of ours is called so."""


class WavestitchError(Exception):
    """What happened, where, what was seen against what was allowed, and the next step. Never payload bytes.

    `facts` are small JSON values that survive a process boundary (see `to_json`). A message names ids, files and what a
    library said, and goes to terminals, logs and pages: it is made harmless here, once.

    `for_guests`: whoever may read its stream alone, on a page, may read the sentence, too. It names what is that
    stream's own (its file's words, topic, group, offsets, waveforms), and no place of the machine, no other stream, and
    nothing that a library said of a file. Unsaid, it is what the kind of the error says; over a process's boundary it
    does not go.
    """

    FOR_GUESTS = False

    def __init__(self, message: str, *, for_guests: bool | None = None, **facts: Any) -> None:
        self.message = harmless(message, most=_MOST)
        super().__init__(self.message)
        self.for_guests = self.FOR_GUESTS if for_guests is None else for_guests
        self.facts = facts

    @property
    def kind(self) -> str:
        """The name that every process and reader knows: a part of the product may have a kind of its own."""
        return next(c.__name__ for c in type(self).__mro__ if c.__name__ in _BY_NAME or c is WavestitchError)

    def to_json(self) -> dict[str, Any]:
        return {"error": self.kind, "message": self.message, "facts": self.facts}


class Terminal(WavestitchError):
    """Trying again cannot help."""


class Transient(WavestitchError):
    """Trying the same step again may help."""


class StateUnknown(WavestitchError):
    """A commit may or may not have happened; the table must be read before anything else is done."""


class BadInput(Terminal):
    """A file, setting or argument that is not what it must be."""


class NewerFormat(BadInput):
    """A record that was written by a newer Wavestitch: it counts, so whoever passes over damaged ones must not this."""


class Refused(Terminal):
    """A plan that would break an invariant; the message names the way out."""

    FOR_GUESTS = True


class Fenced(Terminal):
    """The head has moved on since the plan was made."""


class DataLost(Terminal):
    """Planned offsets that the log no longer delivers."""

    FOR_GUESTS = True


class Unbalanced(Terminal):
    """The audit identity does not hold."""


class GateClosed(Terminal):
    """A critical expectation about the whole batch failed; an operator can accept it, or park what can be held."""


class Altered(Terminal):
    """Bytes on disk are not the bytes that were written."""


_BY_NAME: dict[str, type[WavestitchError]] = {
    c.__name__: c
    for c in (
        Terminal,
        Transient,
        StateUnknown,
        BadInput,
        NewerFormat,
        Refused,
        Fenced,
        DataLost,
        Unbalanced,
        GateClosed,
        Altered,
    )
}


def error_from_json(value: dict[str, Any]) -> WavestitchError:
    """The error that another process left behind (`to_json`); an unknown name is terminal."""
    kind = _BY_NAME.get(str(value.get("error")), Terminal)
    said = value.get("facts")
    facts = {key: fact for key, fact in said.items() if key not in _TAKEN} if isinstance(said, dict) else {}
    return kind(str(value.get("message") or "an error without a word"), **facts)
