"""A world that was made once, again and again: all that may change in it is made anew, and values are shared."""

from __future__ import annotations

from copy import copy
from itertools import count
from types import MethodType
from typing import Any, TypeVar

from tests.domain.protocol_machine import ProtocolMachine
from tests.fakes.batch import FakeStitching
from tests.fakes.fake_rows import FakeFiles
from tests.fakes.faults import Edge
from tests.fakes.kept_partition import KeptPartition
from tests.guarantees_of_runs import Fenced

World = TypeVar("World")
_CHANGE = (ProtocolMachine, Edge, FakeFiles, FakeStitching, KeptPartition, Fenced)
"""Or lead to what changes. All else that has a name here is never changed once it is made."""


def copied(world: World) -> World:
    """Nobody may be at work in it."""
    found: World = _again(world, {})
    return found


def _again(what: Any, made: dict[int, Any]) -> Any:
    """`made`: by what it is a copy of, so that what was one thing is one thing again."""
    found = made.get(id(what))
    if found is None:
        kind = type(what)
        if kind in (list, set, tuple):
            found = kind(_again(one, made) for one in what)
        elif kind is dict:
            found = {key: _again(value, made) for key, value in what.items()}
        elif kind is MethodType:
            found = MethodType(what.__func__, _again(what.__self__, made))
        elif kind is count:
            found = copy(what)
        elif isinstance(what, _CHANGE):
            found = made[id(what)] = object.__new__(kind)
            vars(found).update(_again(vars(what), made))
        else:
            return what
        made[id(what)] = found
    return found
