"""What a page says of an error. Whoever may read one stream is a guest at the deployment: a sentence is for them where
whoever raised it said so, and else one that is the same for all errors of its kind stands in its place.
"""

from __future__ import annotations

from wavestitch.contracts.errors import Altered, BadInput, StateUnknown, Transient, WavestitchError

_WHY = "`wavestitch check` and `wavestitch status` say why"
_BY_KIND: tuple[tuple[type[WavestitchError], str], ...] = (
    (BadInput, f"its file, the settings or a record cannot be used; {_WHY}"),
    (Altered, f"a file or a table is not as it was written; {_WHY}"),
    (Transient, f"the tables, a file or the broker did not answer; {_WHY}, and the page can be loaded again"),
    (StateUnknown, f"what became of a commit is not known; {_WHY}"),
    (WavestitchError, f"it cannot be looked at; {_WHY}"),
)


def said_to_guests(error: Exception) -> str:
    """Of an error that is not ours, its kind alone: its text may have anything in it."""
    if not isinstance(error, WavestitchError):
        return f"cannot be looked at ({type(error).__name__})"
    if error.for_guests:
        return error.message
    return next(said for kind, said in _BY_KIND if isinstance(error, kind))
