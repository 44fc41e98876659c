"""What a page says of an error. Whoever may read one stream is a guest at the deployment: no sentence that names its
folders or other streams is for them.
"""

from __future__ import annotations

import re

from wavestitch.contracts.errors import BadInput, WavestitchError

UNREADABLE = "its file, the settings or a record cannot be used; `wavestitch check` and `wavestitch status` say why"
_A_PLACE_OF_THIS_MACHINE = re.compile(r"(?:^|\s)/\S")


def said_to_guests(error: Exception) -> str:
    """A sentence of ours; of `BadInput`, which may name folders and what else there is, only what is wrong in the
    stream's own file; or the kind of an error that is not ours: its text may have anything in it."""
    if isinstance(error, BadInput) and ("file" not in error.facts or _A_PLACE_OF_THIS_MACHINE.search(error.message)):
        return UNREADABLE
    return error.message if isinstance(error, WavestitchError) else f"cannot be looked at ({type(error).__name__})"
