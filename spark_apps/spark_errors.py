"""Spark's errors in one line: how they begin, and what sounds like the cause."""

from __future__ import annotations

_SHOWN = 400


def brief(error: Exception) -> str:
    """An error of Spark's, which may have hundreds of lines, in one."""
    lines = [x.strip(": \t") for x in str(error).splitlines() if x.strip(": \t")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # which of Spark's methods it was says nothing
    causes = [x for x in lines[1:] if "Python worker exited" in x] or [
        x for x in lines[1:] if x.startswith("Caused by")
    ]
    hint = " (killed, perhaps for want of memory?)" if any("Python worker exited" in x for x in causes) else ""
    return f"{type(error).__name__}: {' … '.join([*lines[:1], *causes[:1]])}"[:_SHOWN] + hint
