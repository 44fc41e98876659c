"""Lets Great Expectations be imported without what it has for things that no stream may ask of it.

Its expectations about distributions (none may be declared: `contracts.expectation`) compute with SciPy's statistics and
draw with Altair, one about JSON texts needs their schemas: for these something stands in that loads them where it is
used. For tables in Spark it imports PySpark, and SciPy's matrices with that, for S3 Amazon's clients: where nobody has
imported them yet it goes without, as where they are not installed. Together these are two fifths of what importing it
takes.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

_LATER = ("scipy.stats", "altair", "jsonschema")
_NEVER = frozenset({"pyspark", "boto3", "botocore"})


@contextmanager
def sparing_imports() -> Iterator[None]:
    """Around the import of Great Expectations; what others import is as ever, before and behind it."""
    stand_ins = [_StandIn(name) for name in _LATER if name not in sys.modules]
    absent = _Absent(threading.get_ident())
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
        for one in stand_ins:
            one.leave()


class _StandIn(ModuleType):
    """In the place of a module while others import it, and loads it when one of them uses something of it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        sys.modules[name] = self
        package, _, self._own_name = name.rpartition(".")
        self._package = importlib.import_module(package) if package else None
        if self._package is not None:
            setattr(self._package, self._own_name, self)

    def leave(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        if self._package is not None and vars(self._package).get(self._own_name) is self:
            delattr(self._package, self._own_name)

    def __getattr__(self, name: str) -> Any:
        self.leave()
        return getattr(importlib.import_module(self.__name__), name)


class _Absent(MetaPathFinder):
    """To one thread these are not installed; others may import them meanwhile."""

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name.partition(".")[0] in _NEVER and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not imported for Great Expectations", name=name)
