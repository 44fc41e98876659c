"""What of the product is no part of a digest of what was played in memory: nothing of it is called there.

Else a history would count that another code has played.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

import pytest

from tests.code_digest import WORLD, modules_of
from tests.histories.random_histories import run_histories
from tests.histories.run import CODE
from tests.schedules.explore import explore
from tests.schedules.played import SCHEDULED
from tests.schedules.scenarios import SCENARIOS
from tests.schedules.state import Bounds


def modules(names: set[str]) -> Iterator[ModuleType]:
    return (importlib.import_module(name) for name in sorted(names))


def test_nothing_of_it_is_called() -> None:
    apart = {m.__file__: m.__name__ for m in modules(modules_of(CODE) - modules_of(CODE, apart=WORLD))}
    called: set[str] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        # A module or a class that is read is no call.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            called.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        run_histories(first_seed=500_000, count=4, deadline_seconds=300)
        explore(next(iter(SCENARIOS.values())), Bounds(1, 0, 0), most=20)
    finally:
        sys.setprofile(None)
    assert len(called) > 200, "what was played was not seen"
    assert not [name for file, name in apart.items() if file in called]


@pytest.mark.parametrize("began_with", [CODE, SCHEDULED])
def test_nor_is_a_value_of_it_used(began_with: str) -> None:
    """But for what can be called, and is not."""
    there = modules_of(began_with, apart=WORLD)
    apart = modules_of(began_with) - there
    taken = [(m.__name__, one) for m in modules(there) for one in ast.walk(ast.parse(inspect.getsource(m)))]
    froms = [(name, one) for name, one in taken if isinstance(one, ast.ImportFrom) and one.module in apart]
    values = {
        f"{name} takes {alias.name} of {one.module}"
        for name, one in froms
        for alias in one.names
        if not callable(getattr(importlib.import_module(str(one.module)), alias.name))
    }
    assert froms
    assert not values
