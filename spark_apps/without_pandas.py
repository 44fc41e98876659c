"""Lets Arrow go without pandas, which it imports with the first array of numbers where it is installed.

A fifth of a second of CPU in each new worker of an app of ours, none of which has a data frame.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class _Absent(MetaPathFinder):
    """To this process pandas is not installed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not imported by a stitching worker", name=name)


def go_without_pandas() -> None:
    """For the rest of this process, which must be all ours. Where it is imported already nothing changes."""
    if not any(isinstance(finder, _Absent) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Absent())
