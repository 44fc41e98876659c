"""What a page says of an error. Whoever may read one stream is a guest at the deployment: no sentence that names its
files, its folders or other streams is for them.
"""

from __future__ import annotations

from wavestitch.contracts.errors import BadInput, WavestitchError

UNREADABLE = "its file, the settings or a record cannot be used; `wavestitch check` and `wavestitch status` say why"


def said_to_guests(error: Exception) -> str:
    """A sentence of ours, a fixed one for `BadInput`, which names files and what else there is, or the kind of an error
    that is not ours: its text may have anything in it."""
    if isinstance(error, BadInput):
        return UNREADABLE
    return error.message if isinstance(error, WavestitchError) else f"cannot be looked at ({type(error).__name__})"
