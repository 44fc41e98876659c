"""What a process had in memory at most. For tests that run in a process of their own, or look at one call."""

from __future__ import annotations

from pathlib import Path

_SELF = Path("/proc/self")


def peak_rss() -> int:
    """Bytes that this very process had resident at most, since it began its program or since `forget_peak`.

    Not by `getrusage`: what that says of a child begins with the peak of whoever started it, so that the child of a
    large test seems to grow by nothing.
    """
    lines = (_SELF / "status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def forget_peak() -> int:
    """Count the peak anew from what is resident now, which is returned."""
    (_SELF / "clear_refs").write_text("5")
    return peak_rss()
